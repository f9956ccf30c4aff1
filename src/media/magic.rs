//! Everything else that a signature names: programs, fonts, databases, and odd media.
//!
//! Promised: signatures of four bytes or more, or shorter ones with structure behind them. Deliberately absent: facts.
//! The last word before text has `infer`, for formats that have no rule here.

use super::{
    Found, Provenance, catalogue,
    reader::{Bytes, Fields},
};

/// By signature.
pub(super) fn probe(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    let signature = SIGNATURES.iter().find(|(at, bytes, _)| head.has(*at, bytes)).map(|(_, _, name)| *name);
    let name = signature
        .or_else(|| program(head))
        .or_else(|| font(head))
        .or_else(|| animation(head))
        .or_else(|| lettered(bytes, head))?;
    let mut found = Found::plain(name);
    if name == "video/x-ivf"
        && let (Some(width), Some(height)) = (head.le16(12), head.le16(14))
    {
        found.facts.size(width.into(), height.into());
        // A rate, its scale, and how many frames there are.
        if let (Some(rate), Some(scale), Some(frames)) = (head.le32(16), head.le32(20), head.le32(24))
            && rate > 0
            && u64::from(frames) <= bytes.size() / 12
        {
            found.facts.lasts(f64::from(frames) * f64::from(scale) / f64::from(rate), Provenance::Container);
        }
    }
    if name == "video/x-yuv4mpeg2" {
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let side = |mark: u8| {
            let word = line.split(|&byte| byte == b' ').skip(1).find(|word| word.first() == Some(&mark))?;
            std::str::from_utf8(&word[1..]).ok()?.parse().ok()
        };
        found.facts.size(side(b'W').unwrap_or(0), side(b'H').unwrap_or(0));
    }
    Some(found)
}

/// True for a file that ends within a signature: the start of something cut short, whatever its letters spell.
pub(super) fn is_stub(head: &[u8]) -> bool {
    head.len() >= 3 && STUBS.iter().any(|signature| signature.len() > head.len() && signature.starts_with(head))
}

const STUBS: &[&[u8]] = &[
    b"GIF87a",
    b"GIF89a",
    b"BZh91AY",
    b"MThd\0\0\0\x06",
    b"Cr24\x02",
    b"RE~^\0",
    b"\xCF\xFA\xED\xFE\0",
    b"\xCE\xFA\xED\xFE\0",
    b"\xFE\xED\xFA\xCE\0",
    b"\xFE\xED\xFA\xCF\0",
    b"fLaC\0",
    b"LZIP\x01",
    b"xar!\0",
    b"wOFF\0",
    b"wOF2\0",
    b"OTTO\0",
    b"8BPS\0",
    b"#!AMR\n",
    b"!<arch>\n",
    b"Rar!\x1A",
    b"7z\xBC\xAF\x27\x1C\0",
    b"MSCF\0",
];

/// What `infer` knows and we have no rule for, under our spelling. Its textual guesses and short marks are not used.
pub(super) fn probe_faint(_: &mut Bytes<'_>, head: &[u8]) -> Option<Found> {
    if let Some(found) = packet(head) {
        return Some(found);
    }
    let guess = infer::get(head)?;
    let name = catalogue::canonical(guess.mime_type())?;
    SECOND_OPINIONS.contains(&name).then(|| Found::plain(name))
}

const SECOND_OPINIONS: &[&str] =
    &["application/x-lz4", "application/vnd.rar", "application/vnd.ms-fontobject", "application/dicom"];

type Signature = (usize, &'static [u8], &'static str);

const SIGNATURES: &[Signature] = &[
    (0, b"\0asm\x01\0\0\0", "application/wasm"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"\xD4\xC3\xB2\xA1", "application/vnd.tcpdump.pcap"),
    (0, b"\xA1\xB2\xC3\xD4", "application/vnd.tcpdump.pcap"),
    (0, b"\x4D\x3C\xB2\xA1", "application/vnd.tcpdump.pcap"),
    (0, b"\xA1\xB2\x3C\x4D", "application/vnd.tcpdump.pcap"),
    (0, b"L\0\0\0\x01\x14\x02\0\0\0\0\0\xC0\0\0\0\0\0\0\x46", "application/x-ms-shortcut"),
    (0, b"\x89HDF\r\n\x1A\n", "application/x-hdf5"),
    (0, b"SIMPLE  =                    T", "application/fits"),
    (0, b"ttcf\0", "font/collection"),
    (0, b"glTF\x02\0\0\0", "model/gltf-binary"),
    (0, b"YUV4MPEG2 ", "video/x-yuv4mpeg2"),
    (0, b"DKIF\0\0", "video/x-ivf"),
    (0, b"nut/multimedia container\0", "video/x-nut"),
    (0, b"GRIB\0\0", "application/grib"),
    (0, b"ARROW1\0\0", "application/vnd.apache.arrow.file"),
    (0, b"\0\x01\0\0Standard Jet DB\0", "application/x-msaccess"),
    (0, b"\0\x01\0\0Standard ACE DB\0", "application/x-msaccess"),
    (7, b"**ACE**", "application/x-ace-compressed"),
    (36, b"acsp", "application/vnd.iccprofile"),
    (128, b"DICM", "application/dicom"),
];

fn program(head: &[u8]) -> Option<&'static str> {
    match head.get(..4)? {
        b"\x7FELF" if head.len() >= 16 => Some("application/x-elf"),
        // Java's version of this mark has a class file's version behind it, Apple's a small count of architectures.
        [0xCA, 0xFE, 0xBA, 0xBE] => match head.be32(4)? {
            1..=30 => Some("application/x-mach-binary"),
            version if version & 0xFFFF >= 45 => Some("application/java-vm"),
            _ => None,
        },
        [0xCE | 0xCF, 0xFA, 0xED, 0xFE] | [0xFE, 0xED, 0xFA, 0xCE | 0xCF] if head.len() >= 28 => {
            Some("application/x-mach-binary")
        }
        [b'M', b'Z', ..] => {
            let at = usize::try_from(head.le32(60)?).ok()?;
            let windows = head.has(at, b"PE\0\0") || is_dos(head);
            windows.then_some("application/vnd.microsoft.portable-executable")
        }
        _ => None,
    }
}

/// A program for DOS or for Windows of sixteen bits: pages of 512 bytes, a header of two paragraphs or more, and relocations behind it.
fn is_dos(head: &[u8]) -> bool {
    let field = |at| head.le16(at).unwrap_or(0);
    let (last, pages, header, relocations) = (field(2), field(4), field(8), field(24));
    last < 512 && (1..=2048).contains(&pages) && (2..=64).contains(&header) && (28..=512).contains(&relocations)
}

fn font(head: &[u8]) -> Option<&'static str> {
    // Web fonts name what they wrap; four letters alone could begin any text.
    let wrapped = head.get(4..8).is_some_and(|flavor| matches!(flavor, [0, 1, 0, 0] | b"OTTO" | b"true" | b"ttcf"));
    if wrapped && head.starts_with(b"wOFF") {
        return Some("font/woff");
    }
    if wrapped && head.starts_with(b"wOF2") {
        return Some("font/woff2");
    }
    let open_type = head.starts_with(b"OTTO");
    if open_type || head.starts_with(&[0, 1, 0, 0]) || head.starts_with(b"true") {
        // A table directory: a count, and tags of four letters.
        let count = head.be16(4)?;
        let tag = head.get(12..16)?;
        let tagged = tag.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        return ((1..=64).contains(&count) && tagged).then_some(if open_type { "font/otf" } else { "font/ttf" });
    }
    // Embedded OpenType: versions and a mark deep in the header.
    let versions = matches!(head.le32(8)?, 0x0001_0000 | 0x0002_0001 | 0x0002_0002);
    (versions && head.has(34, b"LP")).then_some("application/vnd.ms-fontobject")
}

/// Flash states its length, which no text's letters could be.
fn animation(head: &[u8]) -> Option<&'static str> {
    let mark = matches!(head.get(..3)?, b"FWS" | b"CWS" | b"ZWS");
    let version = head.get(3).is_some_and(|version| (1..=50).contains(version));
    let length = head.le32(4).is_some_and(|length| (8..1 << 29).contains(&length));
    (mark && version && length).then_some("application/x-shockwave-flash")
}

/// Marks of letters at both ends, or with a version behind.
fn lettered(bytes: &mut Bytes<'_>, head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"PAR1") && bytes.tail(4).1 == b"PAR1" && bytes.size() >= 12 {
        return Some("application/vnd.apache.parquet");
    }
    let drawing = head.starts_with(b"AC10")
        && head.get(4..6)?.iter().all(u8::is_ascii_digit)
        && head.get(6).is_none_or(|&end| end == 0);
    drawing.then_some("image/vnd.dwg")
}

/// An OpenPGP message that begins with a session key encrypted to a key (RFC 9580 section 5.1).
fn packet(head: &[u8]) -> Option<Found> {
    let (version, algorithm) = match *head.first()? {
        0x84 => (*head.get(2)?, *head.get(11)?),
        0x85 => (*head.get(3)?, *head.get(12)?),
        0xC1 if *head.get(1)? < 192 => (*head.get(2)?, *head.get(11)?),
        0xC1 => (*head.get(3)?, *head.get(12)?),
        _ => return None,
    };
    (version == 3 && matches!(algorithm, 1 | 2 | 16 | 18)).then(|| Found::plain("application/pgp-encrypted"))
}

#[cfg(test)]
mod tests {
    use crate::media::{declared::UNKNOWN, tests::look};

    #[test]
    fn one_mark_two_programs() {
        assert_eq!(look(b"\xCA\xFE\xBA\xBE\0\0\0\x34\0\x10").mime_type, "application/java-vm");
        assert_eq!(look(b"\xCA\xFE\xBA\xBE\0\0\0\x02\x01\0\0\x07").mime_type, "application/x-mach-binary");
    }

    #[test]
    fn two_letters_are_not_a_program() {
        let mut dos = b"MZ\x20\0\x02\0\0\0\x02\0".to_vec();
        dos.resize(600, 0);
        dos[24] = 28;
        assert_eq!(look(&dos).mime_type, "application/vnd.microsoft.portable-executable");
        assert_eq!(look(&[b"MZ\x90\0".as_slice(), &[0; 100]].concat()).mime_type, UNKNOWN);
    }
}
