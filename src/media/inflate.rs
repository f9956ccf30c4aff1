//! DEFLATE (RFC 1951), as far as a bound allows.
//!
//! Promised: never more output than asked for, whatever the input claims; damage ends the output. Deliberately absent:
//! checksums, and speed beyond what a list of parts or an index of objects needs.

use super::reader::Walk;
use super::reader::{Broken, OrBad};

/// The beginning of what a stream inflates to, up to `most` bytes, and whether that is all of it.
pub(super) fn prefix(data: &[u8], most: usize) -> (Vec<u8>, bool) {
    let mut inflater = Inflater { data, at: 0, out: Vec::new(), most };
    // Damage, the end of the data and the bound all end it; what came before is the answer.
    let whole = inflater.run().is_ok();
    (inflater.out, whole)
}

#[derive(Debug)]
struct Inflater<'a> {
    data: &'a [u8],
    /// In bits, least significant first.
    at: usize,
    out: Vec<u8>,
    most: usize,
}

impl Inflater<'_> {
    fn run(&mut self) -> Walk {
        loop {
            let last = self.bits(1)? == 1;
            match self.bits(2)? {
                0 => self.stored()?,
                1 => self.block(&fixed_literals(), &Code::new(&[5; 30]))?,
                2 => {
                    let (literals, distances) = self.tables()?;
                    self.block(&literals, &distances)?;
                }
                _ => return Err(Broken::Bad),
            }
            if last {
                return Ok(());
            }
        }
    }

    fn bits(&mut self, count: usize) -> Walk<usize> {
        let mut value = 0;
        for n in 0..count {
            let byte = self.data.get(self.at / 8).ok_or(Broken::Short)?;
            value |= usize::from(byte >> (self.at % 8) & 1) << n;
            self.at += 1;
        }
        Ok(value)
    }

    fn put(&mut self, byte: u8) -> Walk {
        if self.out.len() >= self.most {
            return Err(Broken::Spent);
        }
        self.out.push(byte);
        Ok(())
    }

    fn stored(&mut self) -> Walk {
        self.at = self.at.div_ceil(8) * 8;
        let length = self.bits(16)?;
        self.bits(16)?;
        for _ in 0..length {
            let byte = self.bits(8)? as u8;
            self.put(byte)?;
        }
        Ok(())
    }

    fn tables(&mut self) -> Walk<(Code, Code)> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let (literals, distances) = (self.bits(5)? + 257, self.bits(5)? + 1);
        let mut lengths = [0u8; 19];
        for &symbol in ORDER.iter().take(self.bits(4)? + 4) {
            lengths[symbol] = self.bits(3)? as u8;
        }
        let code = Code::new(&lengths);
        let mut lengths = Vec::with_capacity(literals + distances);
        while lengths.len() < literals + distances {
            let (value, count) = match self.symbol(&code)? {
                16 => (*lengths.last().or_bad()?, 3 + self.bits(2)?),
                17 => (0, 3 + self.bits(3)?),
                18 => (0, 11 + self.bits(7)?),
                length => (length as u8, 1),
            };
            lengths.extend(std::iter::repeat_n(value, count));
        }
        if lengths.len() > literals + distances {
            return Err(Broken::Bad);
        }
        Ok((Code::new(&lengths[..literals]), Code::new(&lengths[literals..])))
    }

    fn symbol(&mut self, code: &Code) -> Walk<usize> {
        let (mut value, mut first, mut index) = (0, 0, 0);
        for count in code.counts.iter().skip(1) {
            value |= self.bits(1)?;
            if value < first + count {
                return code.symbols.get(index + value - first).copied().map(usize::from).or_bad();
            }
            index += count;
            first = (first + count) << 1;
            value <<= 1;
        }
        Err(Broken::Bad)
    }

    fn block(&mut self, literals: &Code, distances: &Code) -> Walk {
        const LENGTHS: [usize; 29] = [
            3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
            227, 258,
        ];
        loop {
            let symbol = self.symbol(literals)?;
            if symbol < 256 {
                self.put(symbol as u8)?;
                continue;
            }
            if symbol == 256 {
                return Ok(());
            }
            let index = symbol - 257;
            let extra = if (8..28).contains(&index) { (index - 4) / 4 } else { 0 };
            let length = LENGTHS.get(index).or_bad()? + self.bits(extra)?;
            let symbol = self.symbol(distances)?;
            let extra = (symbol / 2).saturating_sub(1);
            let base = if symbol < 4 { symbol + 1 } else { ((2 + symbol % 2) << extra) + 1 };
            let distance = base + self.bits(extra)?;
            let from = self.out.len().checked_sub(distance).or_bad()?;
            for n in 0..length {
                let byte = self.out[from + n];
                self.put(byte)?;
            }
        }
    }
}

/// A canonical Huffman code: how many codes of each length, and their symbols in order.
#[derive(Debug)]
struct Code {
    counts: [usize; 16],
    symbols: Vec<u16>,
}

impl Code {
    fn new(lengths: &[u8]) -> Self {
        let mut counts = [0; 16];
        let mut symbols = Vec::with_capacity(lengths.len());
        for length in 1..16u8 {
            for (symbol, _) in lengths.iter().enumerate().filter(|(_, own)| **own == length) {
                counts[usize::from(length)] += 1;
                symbols.push(symbol as u16);
            }
        }
        Self { counts, symbols }
    }
}

fn fixed_literals() -> Code {
    let mut lengths = [8; 288];
    lengths[144..256].fill(9);
    lengths[256..280].fill(7);
    Code::new(&lengths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_fixed_and_repeated() {
        assert_eq!(prefix(&[1, 3, 0, 0xFC, 0xFF, b'a', b'b', b'c'], 100), (b"abc".to_vec(), true));
        // "a" and a repetition of nine more, with fixed codes.
        assert_eq!(prefix(&[0x4B, 0x4C, 0x84, 0x01, 0x00], 100), (b"aaaaaaaaaa".to_vec(), true));
    }

    #[test]
    fn a_bound_is_a_bound() {
        assert_eq!(prefix(&[0x4B, 0x4C, 0x84, 0x01, 0x00], 4), (b"aaaa".to_vec(), false));
    }

    #[test]
    fn damage_ends_the_output() {
        for damaged in [[0x07].as_slice(), &[], &[0xFF; 64]] {
            assert_eq!(prefix(damaged, 100), (Vec::new(), false));
        }
    }
}
