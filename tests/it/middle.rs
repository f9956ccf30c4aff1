//! The first 64 KiB and the last decide what bytes are: whatever lies between may be anything.
//!
//! One exception is stated: JSON of up to 1 MiB is parsed, so that a log that begins like JSON is not taken for it.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageFormat, RgbImage};
use mediakeep::media::identify;

use crate::harness::bytes::{noise, wav};

/// What is never changed, at either end.
const END: usize = 64 << 10;

/// Of a picture of noise.
const SIDE: usize = 320;

/// How long what is put into a file is.
const LONG: usize = 300 << 10;

#[test]
fn a_type_follows_from_the_first_64_kib_and_the_last() {
    let files = [pictures(), from_fixtures(), by_hand(), texts()].concat();
    let mut wrong = Vec::new();
    for (name, right, bytes) in files {
        assert!(bytes.len() > 2 * END + (64 << 10), "{name} is too short to have a middle");
        let itself = ("itself", bytes.clone());
        for (with, other) in middles(&bytes).into_iter().chain([itself]) {
            let told = told(&other);
            if told != right {
                wrong.push(format!("{name} with {with} in the middle: {told}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// `MEDIAKEEP_CORPUS` names a folder of other projects' files.
#[test]
fn a_type_in_a_named_collection_follows_from_the_first_64_kib_and_the_last() {
    let Some(folder) = std::env::var_os("MEDIAKEEP_CORPUS") else { return };
    for entry in fs::read_dir(Path::new(&folder).join("dev/files")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).expect("a file");
        for (with, other) in middles(&bytes) {
            assert_eq!(told(&other), told(&bytes), "{} with {with} in the middle", path.display());
        }
    }
}

#[test]
fn json_is_json_only_where_all_of_it_is() {
    let json = format!("[\n{}0]", "{\"a\":[1,2,3]},\n".repeat(20_000));
    assert_eq!(told(json.as_bytes()), "application/json");
    for (with, other) in middles(json.as_bytes()) {
        assert_ne!(told(&other), "application/json", "with {with} in the middle");
    }
}

fn told(bytes: &[u8]) -> String {
    identify(&mut Cursor::new(bytes), bytes.len() as u64, None).mime_type
}

/// The file with other bytes between its ends.
fn middles(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let Some(length) = bytes.len().checked_sub(2 * END).filter(|length| *length > 0) else {
        return Vec::new();
    };
    let page: Vec<u8> = b"<script>PK\x03\x04%PDF-1.7\n".iter().copied().cycle().take(length).collect();
    let others = [("zeros", vec![0; length]), ("noise", noise(length, 4)), ("other signatures", page)];
    others.map(|(name, middle)| (name, [&bytes[..END], &middle, &bytes[END + length..]].concat())).into()
}

type File = (&'static str, &'static str, Vec<u8>);

fn pictures() -> Vec<File> {
    let picture = RgbImage::from_raw(SIDE as u32, SIDE as u32, noise(SIDE * SIDE * 3, 3)).expect("so many samples");
    let picture = DynamicImage::from(picture);
    let formats = [
        ("image/png", ImageFormat::Png),
        ("image/bmp", ImageFormat::Bmp),
        ("image/webp", ImageFormat::WebP),
        ("image/tiff", ImageFormat::Tiff),
    ];
    let mut files = Vec::new();
    for (right, format) in formats {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).expect("memory takes it");
        files.push((right, right, bytes.into_inner()));
    }
    let mut jpeg = Vec::new();
    picture.write_with_encoder(image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 100)).expect("memory");
    files.push(("image/jpeg", "image/jpeg", jpeg));
    files
}

/// Small files whose frames, pages or clusters go on and on, and which end as they did.
fn from_fixtures() -> Vec<File> {
    let going_on = [
        ("vbr-noxing.mp3", "audio/mpeg"),
        ("vorbis-q0.ogg", "audio/ogg"),
        ("opus-audio.mka", "audio/matroska"),
        ("streamed-no-duration.webm", "audio/webm"),
        ("streamed-total-0.flac", "audio/flac"),
        ("pcm24.aiff", "audio/aiff"),
        ("rf64-forced.wav", "audio/wav"),
        ("two-page-be.tif", "image/tiff"),
    ];
    let mut files: Vec<File> = going_on
        .map(|(name, right)| {
            let bytes = fixture(name);
            let long = bytes.iter().copied().cycle().take(bytes.len() * LONG.div_ceil(bytes.len())).collect();
            (name, right, long)
        })
        .into();
    for (name, right) in [
        ("h264-aac.mp4", "video/mp4"),
        ("aac-faststart.m4a", "audio/mp4"),
        ("aac-fragmented.m4a", "audio/mp4"),
        ("rot90.avif", "image/avif"),
    ] {
        files.push((name, right, with_free_space(&fixture(name))));
    }
    files
}

/// An ISO base media file with an empty box behind its first.
fn with_free_space(bytes: &[u8]) -> Vec<u8> {
    let first = u32::from_be_bytes(bytes[..4].try_into().expect("a size")) as usize;
    let length = u32::try_from(LONG).expect("a size").to_be_bytes();
    [&bytes[..first], &length, b"free", &noise(LONG - 8, 5), &bytes[first..]].concat()
}

fn by_hand() -> Vec<File> {
    let mut pdf = b"%PDF-1.4\n1 0 obj\n<</Length 307200>>stream\n".to_vec();
    pdf.extend(noise(LONG, 6));
    pdf.extend(b"\nendstream\nendobj\ntrailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF\n");
    let word = [
        ("[Content_Types].xml", &br#"<?xml version="1.0"?><Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#[..]),
        ("word/media/image1.bin", &noise(LONG, 7)),
        ("word/document.xml", &b"<w:document/>"[..]),
    ]
    .map(|(name, bytes)| (name, bytes.to_vec()));
    let docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    let mut gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec();
    gzip.extend(noise(LONG, 8));
    let mut gif = b"GIF89a\x01\x02\x01\x02\0\0\0,\0\0\0\0\x01\x02\x01\x02\0\x08".to_vec();
    for block in noise(LONG, 10).chunks(255) {
        gif.push(block.len() as u8);
        gif.extend(block);
    }
    gif.extend(b"\0;");
    vec![
        ("a GIF", "image/gif", gif),
        ("a wave", "audio/wav", wav(40)),
        ("a document", "application/pdf", pdf),
        ("a zip", "application/zip", zip(&[("a.bin", noise(LONG, 9)), ("b.txt", b"words".to_vec())])),
        ("a letter", docx, zip(&word)),
        ("a gzip", "application/gzip", gzip),
    ]
}

/// A zip whose members are stored as they are.
fn zip(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in members {
        let at = file.len() as u32;
        let mut common = b"\x14\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        common[10..14].copy_from_slice(&crc32(bytes).to_le_bytes());
        common.extend((bytes.len() as u32).to_le_bytes());
        common.extend((bytes.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(name.as_bytes());
        file.extend(bytes);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (at, count) = (file.len() as u32, members.len() as u16);
    file.extend(&directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    }) ^ !0
}

fn texts() -> Vec<File> {
    let long = |line: &str| line.repeat(LONG.div_ceil(line.len())).into_bytes();
    let around = |begin: &str, line: &str, end: &str| [begin.as_bytes(), &long(line), end.as_bytes()].concat();
    vec![
        ("prose", "text/plain", long("It was a bright cold day in April, and the clocks were striking.\n")),
        ("a table", "text/csv", long("1,two,3.5,\"four, five\"\n")),
        ("lines of JSON", "application/x-ndjson", long("{\"a\":1}\n")),
        ("a page", "text/html", around("<!DOCTYPE html><title>t</title>", "<p>words</p>\n", "</html>")),
        (
            "a drawing",
            "image/svg+xml",
            around("<svg xmlns=\"http://www.w3.org/2000/svg\">", "<path d=\"M0 0\"/>\n", "</svg>"),
        ),
    ]
}

fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/media").join(name);
    fs::read(path).expect("a fixture")
}
