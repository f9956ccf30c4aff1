//! Files of 5 MiB that are nothing but the smallest pieces of a format: no collection has them, and no reader likes them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// How long each is.
const LENGTH: usize = 5 << 20;

/// A file before it is written.
pub(crate) struct Tiny {
    /// What it is nothing but.
    pub(crate) name: &'static str,
    head: Vec<u8>,
    piece: Vec<u8>,
    tail: Vec<u8>,
}

impl Tiny {
    /// Writes it, without ever having it in memory.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        let ends = self.head.len() + self.tail.len();
        let pieces = LENGTH.saturating_sub(ends) / self.piece.len();
        file.write_all(&self.head)?;
        for _ in 0..pieces {
            file.write_all(&self.piece)?;
        }
        file.write_all(&self.tail)?;
        file.flush()
    }
}

/// All of them.
pub(crate) fn files() -> Vec<Tiny> {
    [pictures(), boxes(), chunks(), frames(), streams(), archives(), texts(), zips()].into_iter().flatten().collect()
}

fn of(name: &'static str, head: &[u8], piece: &[u8]) -> Tiny {
    Tiny { name, head: head.to_vec(), piece: piece.to_vec(), tail: Vec::new() }
}

fn pictures() -> Vec<Tiny> {
    let header = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90\x77\x53\xde";
    vec![
        of("empty chunks of a PNG", header, b"\0\0\0\0tEXt\xbf\x1f\x0e\x47"),
        of(
            "empty frames of an APNG",
            &[&header[..], b"\0\0\0\x08acTL\0\x0f\0\0\0\0\0\0\0\0\0\0"].concat(),
            b"\0\0\0\0fcTL\0\0\0\0",
        ),
        of("empty segments of a JPEG", b"\xff\xd8", b"\xff\xe0\0\x02"),
        of("fill bytes of a JPEG", b"\xff\xd8", b"\xff"),
        of("restarts of a JPEG", b"\xff\xd8\xff\xda\0\x02", b"\xff\xd0"),
        of("scans of a JPEG", b"\xff\xd8", b"\xff\xda\0\x02\0"),
        of("empty extensions of a GIF", b"GIF89a\x01\0\x01\0\0\0\0", b"!\xfe\0"),
        of("empty frames of a GIF", b"GIF89a\x01\0\x01\0\0\0\0", b",\0\0\0\0\x01\0\x01\0\0\x02\0"),
        of("short blocks of a GIF", b"GIF89a\x01\0\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02", b"\x01\0\x01"),
        of("empty chunks of a WebP", b"RIFF\xf8\xff\x4f\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\0\0\0\0\0\0", b"ANMF\0\0\0\0"),
        of("a directory of a TIFF that is its own next", b"II*\0\x08\0\0\0", b"\x01\0\x08\0\0\0"),
        of("makers of a TIFF, far away", b"II*\0\x08\0\0\0\xff\xff", b"\x0f\x01\x02\0\x64\0\0\0\0\0\x4f\0"),
        of("a directory of a TIFF with all entries", b"II*\0\x08\0\0\0\xff\xff", b"\0\x01\x03\0\x01\0\0\0\x01\0\0\0"),
        of("icons", b"\0\0\x01\0\xff\xff", b"\x10\x10\0\0\x01\0\x20\0\x08\0\0\0\x16\0\0\0"),
        of("boxes of a JPEG 2000", b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 \0\0\0\0jp2 ", b"\0\0\0\x08free"),
        of("boxes of a JPEG XL", b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl \0\0\0\0jxl ", b"\0\0\0\x08free"),
        of(
            "resources of a PSD",
            b"8BPS\0\x01\0\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x01\0\x08\0\x03\0\0\0\0\0\x4f\xf0\0",
            b"8BIM\0\0\0\0\0\0\0\0",
        ),
    ]
}

fn boxes() -> Vec<Tiny> {
    let movie = |inside: &[u8]| {
        let length = u32::try_from(LENGTH - 24).expect("a size").to_be_bytes();
        [b"\0\0\0\x18ftypisom\0\0\0\0isommp42", &length[..], b"moov", inside].concat()
    };
    let table = |name: &[u8]| {
        // A track whose only table claims as many entries as there are bytes.
        let size = |less: usize| u32::try_from(LENGTH - less).expect("a size").to_be_bytes();
        let mut file = movie(b"");
        for parent in [b"trak", b"mdia"] {
            file.extend(size(file.len()));
            file.extend(parent);
        }
        file.extend(b"\0\0\0\x20mdhd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\xe8\0\0\0\0\x55\xc4\0\0");
        file.extend(b"\0\0\0\x20hdlr\0\0\0\0\0\0\0\0vide\0\0\0\0\0\0\0\0\0\0\0\0");
        for parent in [b"minf", b"stbl"] {
            file.extend(size(file.len()));
            file.extend(parent);
        }
        file.extend(size(file.len()));
        file.extend(name);
        file.extend([0; 4]);
        file.extend(600_000u32.to_be_bytes());
        file
    };
    let cluster = b"\x1a\x45\xdf\xa3\x87\x42\x82\x84webm\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff";
    vec![
        of("empty boxes", b"\0\0\0\x18ftypisom\0\0\0\0isommp42", b"\0\0\0\x08free"),
        of("empty tracks", &movie(b""), b"\0\0\0\x08trak"),
        of("movies that follow each other", b"\0\0\0\x18ftypisom\0\0\0\0isommp42", b"\0\0\0\x10moov\0\0\0\x08trak"),
        of("fragments", b"\0\0\0\x18ftypisom\0\0\0\0isommp42", b"\0\0\0\x10moof\0\0\0\x08traf"),
        of("a table of times", &table(b"stts"), b"\0\0\0\x01\0\0\0\x01"),
        of("a table of sizes", &table(b"stsz"), b"\0\0\0\x01"),
        of("a table of descriptions", &table(b"stsd"), b"\0\0\0\x08mp4v"),
        of(
            "properties of an AVIF",
            b"\0\0\0\x18ftypavif\0\0\0\0avifmif1\0\x4f\xff\xe8meta\0\0\0\0\0\x4f\xff\xdciprp\0\x4f\xff\xd4ipco",
            b"\0\0\0\x08ispe",
        ),
        of("voids of a Matroska", cluster, b"\xec\x80"),
        of("clusters of a Matroska", cluster, b"\x1f\x43\xb6\x75\x80"),
        of(
            "blocks of a Matroska",
            &[&cluster[..], b"\x1f\x43\xb6\x75\x01\xff\xff\xff\xff\xff\xff\xff"].concat(),
            b"\xa3\x80",
        ),
        of(
            "tracks of a Matroska",
            &[&cluster[..], b"\x16\x54\xae\x6b\x01\xff\xff\xff\xff\xff\xff\xff"].concat(),
            b"\xae\x80",
        ),
    ]
}

fn chunks() -> Vec<Tiny> {
    let asf = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c\0\0\x50\0\0\0\0\0\xff\xff\xff\x7f\x01\x02";
    let key = b"\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02\x01\x01\x02\x04\0\0";
    vec![
        of("empty chunks of a WAVE", b"RIFF\xf8\xff\x4f\0WAVE", b"junk\0\0\0\0"),
        of("empty chunks of an AIFF", b"FORM\0\x4f\xff\xf8AIFF", b"NAME\0\0\0\0"),
        of("empty chunks of a CAF", b"caff\0\x01\0\0", b"free\0\0\0\0\0\0\0\0"),
        of("empty lists of an AVI", b"RIFF\xf8\xff\x4f\0AVI ", b"LIST\x04\0\0\0hdrl"),
        of("chunks of an AVI", b"RIFF\xf8\xff\x4f\0AVI LIST\xe0\xff\x4f\0movi", b"00dc\0\0\0\0"),
        of(
            "empty objects of an ASF",
            asf,
            b"\x33\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c\x18\0\0\0\0\0\0\0",
        ),
        of("packets of an MXF", key, key),
        of("tags of an FLV", b"FLV\x01\x05\0\0\0\x09\0\0\0\0", b"\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\x0b"),
        of("chunks of a RealMedia", b".RMF\0\0\0\x12\0\0\0\0\0\0\0\0\0\0", b"DATA\0\0\0\x0a\0\0"),
        of("events of a MIDI", b"MThd\0\0\0\x06\0\0\0\x01\0\x60MTrk\0\x4f\xff\0", b"\0\xff\x01\0"),
        of("chunks of a VOC", b"Creative Voice File\x1a\x1a\0\x0a\x01\x29\x11", b"\x02\0\0\0"),
    ]
}

fn frames() -> Vec<Tiny> {
    let small = [&b"\xff\xf3\x14\xc4"[..], &[0; 20]].concat();
    vec![
        of("the smallest frames of an MP3", &small, &small),
        of("frames everywhere of an MP3", b"", b"\xff\xfb\x90\x64"),
        of("syncs of an MP3", b"ID3\x04\0\0\0\0\0\0", b"\xff\xf3\x14"),
        of("tags of an MP3", b"ID3\x04\0\0\0\0\0\0", b"ID3\x04\0\0\0\0\0\0"),
        of("a tag's frames", b"ID3\x04\0\0\x02\x3f\x7f\x7f", b"TIT2\0\0\0\0\0\0"),
        of("the smallest frames of an AAC", b"\xff\xf1\x50\x80\0\xff\xfc", b"\xff\xf1\x50\x80\0\xff\xfc"),
        of("syncs of an AC-3", b"\x0b\x77", b"\x0b\x77\0\0\0\x40"),
        of(
            "empty blocks of a FLAC",
            b"fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0\x0a\xc4\x42\xf0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            b"\x01\0\0\0",
        ),
        of(
            "frames everywhere of a FLAC",
            b"fLaC\x80\0\0\x22\x10\0\x10\0\0\0\0\0\0\0\x0a\xc4\x42\xf0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            b"\xff\xf8\xc9\x18",
        ),
        of("frames of an AMR", b"#!AMR\n", b"\x7c"),
        of(
            "empty blocks of a WavPack",
            b"wvpk\x18\0\0\0\x10\x04\0\0\0\0\0\0",
            b"wvpk\x18\0\0\0\x10\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ),
        of("frames of a DTS", b"\x7f\xfe\x80\x01", b"\x7f\xfe\x80\x01"),
    ]
}

fn streams() -> Vec<Tiny> {
    let page = b"OggS\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0";
    let packet = [&b"\x47\0\0\x10"[..], &[0; 184]].concat();
    vec![
        of(
            "empty pages of an Ogg",
            b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead\x01\x02\0\0\x80\xbb\0\0\0\0\0",
            page,
        ),
        of("beginnings of an Ogg", b"", b"OggS\0\x02\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0"),
        of("packets of a transport stream", b"", &packet),
        of("syncs of a transport stream", b"", b"\x47"),
        of("pads of a programme stream", b"\0\0\x01\xba\x44\0\x04\0\x04\x01\0\0\x03\xf8", b"\0\0\x01\xbe\0\0"),
        of("packs of a programme stream", b"", b"\0\0\x01\xba\x44\0\x04\0\x04\x01\0\0\x03\xf8"),
        of("sequences of an MPEG video", b"\0\0\x01\xb3\x16\0\xf0\x15\xff\xff\xe0\x18", b"\0\0\x01\xb8"),
        of("zeros", b"", b"\0"),
        of("ones", b"", b"\xff"),
        of("units of an H.264", b"\0\0\0\x01\x67\x42\0\x1e", b"\0\0\x01\x09"),
    ]
}

fn archives() -> Vec<Tiny> {
    let mut member =
        [&b"a"[..], &[0; 99], b"0000644\0", b"0000000\0", b"0000000\0", b"00000000000\0", b"00000000000\0"].concat();
    member.extend(b"        0");
    member.resize(257, 0);
    member.extend(b"ustar\x0000");
    member.resize(512, 0);
    let sum: u32 = member.iter().map(|&byte| u32::from(byte)).sum();
    member[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let ole = [
        &b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"[..],
        &[0; 16],
        b"\x3e\0\x03\0\xfe\xff\x09\0\x06\0",
        &[0; 6],
        &[0; 4],
        b"\xff\0\0\0\x01\0\0\0",
        &[0; 4],
        b"\0\x10\0\0",
        b"\xfe\xff\xff\xff",
        &[0; 4],
        b"\xfe\xff\xff\xff",
        &[0; 4],
    ]
    .concat();
    vec![
        of("members of a tar", b"", &member),
        of("sectors of an OLE 2", &ole, b"\x01\0\0\0"),
        of("local headers", b"", b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        of("members of an ar", b"!<arch>\n", b"a               0           0     0     100644  0         `\n"),
        of("members of a cpio", b"", b"0707010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000100000000"),
        of("empty blocks of a deflate", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\0\0\0\xff\xff"),
    ]
}

fn texts() -> Vec<Tiny> {
    vec![
        of("objects of a PDF", b"%PDF-1.4\n", b"1 0 obj\n"),
        of("ends of a PDF", b"%PDF-1.4\n", b"%%EOF\n"),
        of("dictionaries of a PDF", b"%PDF-1.4\n1 0 obj\n", b"<<"),
        of("streams of a PDF", b"%PDF-1.4\n", b"stream\r\n"),
        of("names of a PDF", b"%PDF-1.4\n", b"/JS/AA#20"),
        of("open angles", b"", b"<"),
        of("elements within elements", b"", b"<a>"),
        of("comments before a root", b"<?xml version=\"1.0\"?>", b"<!---->"),
        of("an open comment", b"<svg ", b"<!--"),
        of("attributes", b"<svg ", b"a=\"\" "),
        of("handlers of a drawing", b"<svg xmlns=\"http://www.w3.org/2000/svg\">", b"<g o=\"on\"/>"),
        of("entities", b"<!DOCTYPE svg [", b"<!ENTITY a \"&a;\">"),
        of("brackets", b"", b"["),
        of("objects within objects", b"", b"{\"\":"),
        of("escapes", b"[\"", b"\\u0000"),
        of("lines of JSON", b"", b"{}\n"),
        of("commas", b"", b","),
        of("quotes", b"", b"\""),
        of("rows of two", b"", b"a,b\n"),
        of("line feeds", b"", b"\n"),
        of("letters", b"", b"a"),
        of("UTF-16", b"\xff\xfe", b"<\0"),
        of("UTF-32", b"\xff\xfe\0\0", b"<\0\0\0"),
        of("headers of a message", b"", b"From: a\n"),
        of("properties of a calendar", b"BEGIN:VCALENDAR\r\n", b"A:\r\n"),
        of("cues", b"WEBVTT\n\n", b"00:00.000 --> 00:00.001\n\n"),
        of("keys of a playlist", b"#EXTM3U\n", b"#EXTINF:1,\na\n"),
        of("comments of a PPM", b"P6 ", b"#\n"),
    ]
}

/// Zips whose directories are as long as may be.
fn zips() -> Vec<Tiny> {
    let entry = |name: &[u8]| {
        let mut entry = b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0".to_vec();
        entry.resize(28, 0);
        entry.extend((name.len() as u16).to_le_bytes());
        entry.resize(46, 0);
        entry.extend(name);
        entry
    };
    let with = |name, piece: &[u8]| {
        let (head, end) = (b"PK\x03\x04", 22);
        let length = (LENGTH - head.len() - end) / piece.len() * piece.len();
        let mut tail = b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff".to_vec();
        tail.extend(u32::try_from(length).expect("a size").to_le_bytes());
        tail.extend(b"\x04\0\0\0\0\0");
        Tiny { tail, ..of(name, head, piece) }
    };
    vec![
        with("entries without a name", &entry(b"")),
        with("entries of a package", &entry(b"[Content_Types].xml")),
        with("ends of a directory", b"PK\x05\x06"),
    ]
}
