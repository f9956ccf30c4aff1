//! Bits, most significant first, as MPEG writes them.

/// Reads from the front of a slice; `None` beyond its end.
#[derive(Debug)]
pub(in crate::media) struct Bits<'a> {
    from: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(in crate::media) fn new(from: &'a [u8]) -> Self {
        Self { from, at: 0 }
    }

    /// Up to 32 bits.
    pub(in crate::media) fn take(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = *self.from.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    pub(in crate::media) fn skip(&mut self, count: usize) -> Option<()> {
        self.at = self.at.checked_add(count)?;
        (self.at <= self.from.len() * 8).then_some(())
    }

    /// An Exp-Golomb number (ITU-T H.264 section 9.1).
    pub(in crate::media) fn golomb(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.take(1)? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1u32 << zeros) - 1 + self.take(zeros)?)
    }

    pub(in crate::media) fn signed_golomb(&mut self) -> Option<i32> {
        let code = i64::from(self.golomb()?);
        i32::try_from(if code % 2 == 0 { -(code / 2) } else { (code + 1) / 2 }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golomb_numbers_count_their_zeros() {
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0000]);
        assert_eq!([bits.golomb(), bits.golomb(), bits.golomb(), bits.golomb()], [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(Bits::new(&[0; 8]).golomb(), None);
    }
}
