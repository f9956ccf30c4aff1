//! What a zip is beyond a zip: office documents, books, programs.
//!
//! Promised: an Office Open XML type only when its list of content types says so and its main part is there, in any
//! order; OpenDocument and EPUB by their stored `mimetype`. Deliberately absent: guessing by folder names alone.

use memchr::memmem;

use super::zip::{self, Entry};
use crate::media::{catalogue, reader::Bytes};

/// A list of content types is a few kilobytes; one that inflates further is not read on.
const MOST_TYPES: usize = 1 << 20;

pub(super) fn name(bytes: &mut Bytes<'_>, entries: &[Entry]) -> &'static str {
    stored_type(bytes, entries)
        .or_else(|| open_packaging(bytes, entries))
        .or_else(|| by_parts(entries))
        .unwrap_or("application/zip")
}

/// OpenDocument and EPUB put a file `mimetype` first, unpacked.
fn stored_type(bytes: &mut Bytes<'_>, entries: &[Entry]) -> Option<&'static str> {
    let entry = entries.iter().find(|entry| entry.name == b"mimetype")?;
    let stated = zip::content(bytes, entry, 256)?;
    let stated = std::str::from_utf8(&stated).ok()?.trim();
    let stated = stated.split('\0').next()?;
    let named = stated == "application/epub+zip"
        || stated == "image/openraster"
        || stated.starts_with("application/vnd.oasis.opendocument.");
    catalogue::canonical(stated).filter(|_| named)
}

/// Office Open XML by the content type of its main part (ECMA-376 part 2).
fn open_packaging(bytes: &mut Bytes<'_>, entries: &[Entry]) -> Option<&'static str> {
    let list = entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(b"[Content_Types].xml"))?;
    let types = zip::content(bytes, list, MOST_TYPES)?;
    let (_, folder, name) = MAIN_PARTS.iter().find(|(main, ..)| {
        let quoted = |quote| memmem::find(&types, format!("{quote}{main}{quote}").as_bytes()).is_some();
        quoted('"') || quoted('\'')
    })?;
    entries.iter().any(|entry| entry.name.starts_with(folder.as_bytes())).then_some(*name)
}

fn by_parts(entries: &[Entry]) -> Option<&'static str> {
    let has = |name: &[u8]| entries.iter().any(|entry| entry.name == name);
    if has(b"AndroidManifest.xml") && (has(b"classes.dex") || has(b"resources.arsc")) {
        Some("application/vnd.android.package-archive")
    } else if has(b"META-INF/MANIFEST.MF") {
        Some("application/java-archive")
    } else if has(b"doc.kml") || is_place(entries) {
        Some("application/vnd.google-earth.kmz")
    } else {
        None
    }
}

/// Google Earth opens the first KML at the root, whatever its name; among other documents one is only one of them.
fn is_place(entries: &[Entry]) -> bool {
    let at_root = |entry: &&Entry| !entry.name.contains(&b'/');
    let mut root = entries.iter().filter(at_root);
    let first = root.next().is_some_and(|entry| entry.name.to_ascii_lowercase().ends_with(b".kml"));
    first && root.next().is_none()
}

/// Content type of the main part, the folder that it lies in, and our name for the whole.
const MAIN_PARTS: &[(&str, &str, &str)] = &[
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        "word/",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
        "word/",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
    ),
    (
        "application/vnd.ms-word.document.macroEnabled.main+xml",
        "word/",
        "application/vnd.ms-word.document.macroenabled.12",
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml",
        "xl/",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.template.main+xml",
        "xl/",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
    ),
    ("application/vnd.ms-excel.sheet.macroEnabled.main+xml", "xl/", "application/vnd.ms-excel.sheet.macroenabled.12"),
    (
        "application/vnd.ms-excel.sheet.binary.macroEnabled.main",
        "xl/",
        "application/vnd.ms-excel.sheet.binary.macroenabled.12",
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
        "ppt/",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
        "ppt/",
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
    ),
    (
        "application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
        "ppt/",
        "application/vnd.openxmlformats-officedocument.presentationml.template",
    ),
    (
        "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
        "ppt/",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    ),
    (
        "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
        "word/",
        "application/vnd.ms-word.template.macroenabled.12",
    ),
    (
        "application/vnd.ms-excel.template.macroEnabled.main+xml",
        "xl/",
        "application/vnd.ms-excel.template.macroenabled.12",
    ),
    ("application/vnd.ms-excel.addin.macroEnabled.main+xml", "xl/", "application/vnd.ms-excel.addin.macroenabled.12"),
    (
        "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
        "ppt/",
        "application/vnd.ms-powerpoint.slideshow.macroenabled.12",
    ),
    (
        "application/vnd.ms-powerpoint.template.macroEnabled.main+xml",
        "ppt/",
        "application/vnd.ms-powerpoint.template.macroenabled.12",
    ),
    ("application/vnd.ms-visio.drawing.main+xml", "visio/", "application/vnd.ms-visio.drawing"),
];

#[cfg(test)]
mod tests {
    use crate::media::{archive::zip::tests::zip, tests::look};

    const WORD: &str = r#"<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;

    #[test]
    fn a_word_document_is_one_in_any_order() {
        let mut parts =
            [("[Content_Types].xml", WORD.as_bytes()), ("_rels/.rels", b"<x/>"), ("word/document.xml", b"<x/>")];
        for _ in 0..3 {
            parts.rotate_left(1);
            let found = look(&zip(&parts));
            assert_eq!(found.mime_type, "application/vnd.openxmlformats-officedocument.wordprocessingml.document");
        }
    }

    #[test]
    fn a_place_is_one_whatever_its_file_is_called() {
        let place = |names: &[&str]| {
            look(&zip(&names.iter().map(|name| (*name, b"<kml/>".as_slice())).collect::<Vec<_>>())).mime_type
        };
        assert_eq!(place(&["doc.kml", "files/a.png"]), "application/vnd.google-earth.kmz");
        assert_eq!(place(&["files/a.png", "My tour.KML"]), "application/vnd.google-earth.kmz");
        assert_eq!(place(&["a.txt", "b.kml"]), "application/zip");
        assert_eq!(place(&["maps/doc.kml"]), "application/zip");
    }

    #[test]
    fn a_folder_does_not_make_a_document() {
        assert_eq!(look(&zip(&[("word/document.xml", b"<x/>")])).mime_type, "application/zip");
        assert_eq!(look(&zip(&[("[Content_Types].xml", WORD.as_bytes())])).mime_type, "application/zip");
    }

    #[test]
    fn a_stored_type_names_books_and_open_documents_only() {
        for (stated, name) in [
            ("application/epub+zip", "application/epub+zip"),
            ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
            ("text/html", "application/zip"),
        ] {
            assert_eq!(look(&zip(&[("mimetype", stated.as_bytes())])).mime_type, name);
        }
    }
}
