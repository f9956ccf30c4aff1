//! Netpbm's family, X bitmaps and X pixmaps: pictures whose headers are text.

use crate::media::{
    Facts, Found, Provenance,
    reader::{Broken, Bytes, Walk},
};

pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    match head {
        [b'P', kind @ b'1'..=b'6', space, ..] if space.is_ascii_whitespace() => anymap(bytes, head, *kind),
        [b'P', b'7', b'\n', ..] => arbitrary(head),
        [b'/', b'*', ..] if head.starts_with(b"/* XPM */") => Some(pixmap(head)),
        [b'#', b'd', ..] => bitmap(head),
        _ => None,
    }
}

fn anymap(bytes: &mut Bytes<'_>, head: &[u8], kind: u8) -> Option<Found> {
    let mut words = Words { from: head, at: 2 };
    let (width, height) = (words.number()?, words.number()?);
    let has_depth = !matches!(kind, b'1' | b'4');
    let depth = if has_depth { words.number()? } else { 1 };
    if !(1..=65_535).contains(&depth) {
        return None;
    }
    let (name, samples) = match kind {
        b'1' | b'4' => ("image/x-portable-bitmap", 1),
        b'2' | b'5' => ("image/x-portable-graymap", 1),
        _ => ("image/x-portable-pixmap", 3),
    };
    let mut found = Found::of(name);
    found.facts.size(width, height);
    found.facts.pictures(1, Provenance::Container);
    let row = match kind {
        b'1'..=b'3' => 0,
        b'4' => u64::from(width).div_ceil(8),
        _ => u64::from(width) * samples * if depth > 255 { 2 } else { 1 },
    };
    let needed = row.saturating_mul(height.into()).saturating_add(words.at as u64 + 1);
    let walk = if kind <= b'3' { Ok(()) } else { bytes.reaches(needed) };
    found.facts.settle(walk);
    Some(found)
}

/// Words and numbers with comments between them.
#[derive(Debug)]
struct Words<'a> {
    from: &'a [u8],
    at: usize,
}

impl Words<'_> {
    fn number(&mut self) -> Option<u32> {
        while let Some(&byte) = self.from.get(self.at) {
            if byte == b'#' {
                self.at += self.from[self.at..].iter().position(|&byte| byte == b'\n')?;
            } else if !byte.is_ascii_whitespace() {
                break;
            }
            self.at += 1;
        }
        let rest = self.from.get(self.at..)?;
        let length = rest.iter().take(11).take_while(|byte| byte.is_ascii_digit()).count();
        self.at += length;
        std::str::from_utf8(&rest[..length]).ok()?.parse().ok()
    }
}

/// `P7`: lines of a name and a value until `ENDHDR`.
fn arbitrary(head: &[u8]) -> Option<Found> {
    let mut found = Found::of("image/x-portable-arbitrarymap");
    let walk = arbitrary_size(&head[3..], &mut found.facts);
    found.facts.width?;
    found.facts.settle(walk);
    Some(found)
}

fn arbitrary_size(lines: &[u8], facts: &mut Facts) -> Walk {
    let mut size = (0, 0);
    for line in lines.split(|&byte| byte == b'\n').take(64) {
        let line = std::str::from_utf8(line).map_err(|_| Broken::Bad)?;
        match line.split_once(' ') {
            Some(("WIDTH", value)) => size.0 = value.trim().parse().unwrap_or(0),
            Some(("HEIGHT", value)) => size.1 = value.trim().parse().unwrap_or(0),
            None if line == "ENDHDR" => {
                facts.size(size.0, size.1);
                return Ok(());
            }
            _ => {}
        }
    }
    Err(Broken::Short)
}

/// The first string of the array: columns, rows, colours, characters per pixel.
fn pixmap(head: &[u8]) -> Found {
    let mut found = Found::plain("image/x-xpixmap");
    if let Some(text) = head.split(|&byte| byte == b'"').nth(1) {
        let mut words = Words { from: text, at: 0 };
        if let (Some(width), Some(height)) = (words.number(), words.number()) {
            found.facts.size(width, height);
        }
    }
    found
}

/// `#define name_width 16`, `#define name_height 16`, and an array of bits.
fn bitmap(head: &[u8]) -> Option<Found> {
    let start = std::str::from_utf8(&head[..head.len().min(1024)]).ok()?;
    let side = |suffix: &str| {
        let line = start.lines().find(|line| line.starts_with("#define") && line.contains(suffix))?;
        line.split_ascii_whitespace().nth(2)?.parse::<u32>().ok()
    };
    let (width, height) = (side("_width")?, side("_height")?);
    if !start.contains("_bits[]") {
        return None;
    }
    let mut found = Found::plain("image/x-xbitmap");
    found.facts.size(width, height);
    Some(found)
}

#[cfg(test)]
mod tests {
    use crate::media::tests::look;

    #[test]
    fn comments_do_not_hide_the_size() {
        let found = look(b"P2\n# made by hand\n24 7\n# more\n15\n0 0 0");
        assert_eq!(found.mime_type, "image/x-portable-graymap");
        assert_eq!((found.facts.width, found.facts.height), (Some(24), Some(7)));
    }

    #[test]
    fn missing_pixels_are_a_truncation() {
        assert!(look(b"P6 1 1 255 abc").facts.well_formed);
        assert!(!look(b"P6 2 1 255 abc").facts.well_formed);
    }

    #[test]
    fn a_paragraph_is_not_a_picture() {
        assert_eq!(look(b"P1 is the first priority of all.").mime_type, "text/plain");
    }
}
