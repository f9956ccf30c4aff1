//! Every type that an inspection can answer: its kind, its family, and what else people call it.
//!
//! Promised: one spelling per type, the one that browsers and model providers use where IANA's differs. Deliberately
//! absent: types that we know no rule for. A declared name that is not here is taken at its word and nothing more.

use super::Kind::{self, Archive, Audio, Document, Image, Other, Text, Video};
use Family::{
    Aac, Ar, Asf, Bmff, Heif, Icon, Jpeg2000, Json, Matroska, Netpbm, Ogg, Ole, Own, Png, Prose, Real, Tiff, Xml, Zip,
};

/// Types among which a declared name may break a tie; `Own` is alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Aac,
    Ar,
    Asf,
    Bmff,
    Heif,
    Icon,
    Jpeg2000,
    Json,
    Matroska,
    Netpbm,
    Ogg,
    Ole,
    Own,
    Png,
    Prose,
    Real,
    Tiff,
    Xml,
    Zip,
}

/// Our own spelling of a lower-case type name, if it is one of ours under any name.
pub(super) fn canonical(name: &str) -> Option<&'static str> {
    let own = TYPES.iter().find(|row| row.0 == name);
    own.or_else(|| TYPES.iter().find(|row| row.3.contains(&name))).map(|row| row.0)
}

/// The kind of a type; what is not in the table goes by its top-level name.
pub(super) fn kind(name: &str) -> Kind {
    if let Some(row) = TYPES.iter().find(|row| row.0 == name) {
        return row.1;
    }
    match name.split('/').next() {
        Some("image") => Image,
        Some("audio") => Audio,
        Some("video") => Video,
        Some("text") => Text,
        _ if name.ends_with("+json") || name.ends_with("+xml") => Text,
        _ => Other,
    }
}

/// The family of a type. Names outside the table belong to one only by their suffix or as plain text.
pub(super) fn family(name: &str) -> Family {
    if let Some(row) = TYPES.iter().find(|row| row.0 == name) {
        return row.2;
    }
    if name.ends_with("+xml") {
        Xml
    } else if name.ends_with("+json") {
        Json
    } else if name.ends_with("+zip") {
        Zip
    } else if name.starts_with("text/") {
        Prose
    } else {
        Own
    }
}

/// True for types that inspection finds by itself whenever the bytes are such.
pub(super) fn known(name: &str) -> bool {
    TYPES.iter().any(|row| row.0 == name)
}

type Row = (&'static str, Kind, Family, &'static [&'static str]);

#[rustfmt::skip]
const TYPES: &[Row] = &[
    ("image/apng", Image, Png, &["image/vnd.mozilla.apng"]),
    ("image/avif", Image, Heif, &[]),
    ("image/bmp", Image, Own, &["image/x-ms-bmp", "image/x-bmp", "image/x-bitmap"]),
    ("image/bpg", Image, Own, &["image/x-bpg"]),
    ("image/emf", Image, Own, &["image/x-emf"]),
    ("image/flif", Image, Own, &[]),
    ("image/gif", Image, Own, &[]),
    ("image/heic", Image, Heif, &[]),
    ("image/heic-sequence", Image, Heif, &[]),
    ("image/heif", Image, Heif, &[]),
    ("image/heif-sequence", Image, Heif, &[]),
    ("image/icns", Image, Own, &["image/x-icns"]),
    ("image/jls", Image, Own, &["image/x-jls"]),
    ("image/jp2", Image, Jpeg2000, &[]),
    ("image/jpeg", Image, Own, &["image/pjpeg", "image/jpg"]),
    ("image/jpm", Image, Jpeg2000, &[]),
    ("image/jpx", Image, Jpeg2000, &[]),
    ("image/jxl", Image, Own, &[]),
    ("image/jxr", Image, Own, &["image/vnd.ms-photo", "image/x-jxr"]),
    ("image/ktx", Image, Own, &[]),
    ("image/ktx2", Image, Own, &[]),
    ("image/openraster", Image, Zip, &[]),
    ("image/png", Image, Png, &[]),
    ("image/sgi", Image, Own, &["image/x-sgi", "image/x-rgb"]),
    ("image/svg+xml", Image, Xml, &["image/svg"]),
    ("image/tiff", Image, Tiff, &["image/tif", "image/x-tiff"]),
    ("image/vnd.adobe.photoshop", Image, Own, &["image/x-photoshop", "application/photoshop", "image/psd", "application/vnd.adobe.photoshop", "application/x-photoshop"]),
    ("image/vnd.djvu", Image, Own, &["image/x-djvu", "image/vnd.djvu+multipage", "image/x.djvu"]),
    ("image/vnd.dwg", Image, Own, &[]),
    ("image/vnd.microsoft.icon", Image, Icon, &["image/x-icon", "image/ico"]),
    ("image/vnd.ms-dds", Image, Own, &["image/vnd-ms.dds", "image/x-dds", "image/dds"]),
    ("image/vnd.radiance", Image, Own, &["image/x-hdr", "image/hdr"]),
    ("image/vnd.zbrush.pcx", Image, Own, &["image/x-pcx", "image/pcx", "image/vnd.zsoft.pcx"]),
    ("image/webp", Image, Own, &["image/x-webp"]),
    ("image/wmf", Image, Own, &["image/x-wmf", "application/x-msmetafile", "windows/metafile"]),
    ("image/x-adobe-dng", Image, Tiff, &["image/x-raw-adobe", "image/dng"]),
    ("image/x-canon-cr2", Image, Tiff, &[]),
    ("image/x-canon-cr3", Image, Own, &[]),
    ("image/x-dpx", Image, Own, &["image/dpx"]),
    ("image/x-exr", Image, Own, &["image/aces", "image/exr"]),
    ("image/x-farbfeld", Image, Own, &[]),
    ("image/x-fujifilm-raf", Image, Own, &["image/x-fuji-raf", "image/x-raw-fuji"]),
    ("image/x-jp2-codestream", Image, Jpeg2000, &["image/j2c", "image/jp2-codestream", "image/x-j2c"]),
    ("image/x-nikon-nef", Image, Tiff, &["image/x-raw-nikon"]),
    ("image/x-olympus-orf", Image, Tiff, &[]),
    ("image/x-panasonic-rw2", Image, Tiff, &["image/x-panasonic-raw"]),
    ("image/x-pict", Image, Own, &["image/pict"]),
    ("image/x-portable-arbitrarymap", Image, Netpbm, &["image/x-portable-anymap"]),
    ("image/x-portable-bitmap", Image, Netpbm, &[]),
    ("image/x-portable-graymap", Image, Netpbm, &["image/x-portable-greymap"]),
    ("image/x-portable-pixmap", Image, Netpbm, &[]),
    ("image/x-qoi", Image, Own, &["image/qoi"]),
    ("image/x-sony-arw", Image, Tiff, &["image/x-raw-sony", "image/arw"]),
    ("image/x-tga", Image, Own, &["image/x-targa", "image/tga", "image/targa", "image/x-icb"]),
    ("image/x-win-bitmap", Image, Icon, &["image/vnd.microsoft.cursor", "image/x-cursor"]),
    ("image/x-xbitmap", Image, Own, &[]),
    ("image/x-xcf", Image, Own, &["image/xcf", "application/x-xcf"]),
    ("image/x-xpixmap", Image, Own, &["image/x-xpm"]),
    ("audio/3gpp", Audio, Bmff, &[]),
    ("audio/3gpp2", Audio, Bmff, &[]),
    ("audio/aac", Audio, Aac, &["audio/aacp", "audio/x-aac", "audio/x-hx-aac-adts", "audio/mp4a-latm", "audio/x-mp4a-latm", "audio/x-hx-aac-adif"]),
    ("audio/ac3", Audio, Own, &["audio/vnd.dolby.dd-raw", "audio/x-ac3"]),
    ("audio/aiff", Audio, Own, &["audio/x-aiff", "audio/x-aifc"]),
    ("audio/amr", Audio, Own, &["audio/amr-nb"]),
    ("audio/amr-wb", Audio, Own, &[]),
    ("audio/basic", Audio, Own, &["audio/x-au", "audio/au"]),
    ("audio/eac3", Audio, Own, &["audio/vnd.dolby.dd-raw.eac3", "audio/x-eac3"]),
    ("audio/flac", Audio, Own, &["audio/x-flac"]),
    ("audio/matroska", Audio, Matroska, &["audio/x-matroska"]),
    ("audio/midi", Audio, Own, &["audio/mid", "audio/x-midi", "audio/sp-midi"]),
    ("audio/mp4", Audio, Bmff, &["audio/m4a", "audio/x-m4a", "audio/x-m4b"]),
    ("audio/mpeg", Audio, Own, &["audio/mp3", "audio/x-mp3", "audio/mpeg3", "audio/x-mpeg"]),
    ("audio/ogg", Audio, Ogg, &["audio/x-ogg", "audio/vorbis", "audio/opus", "audio/speex", "audio/x-speex", "audio/vorbis-config", "audio/x-opus+ogg", "audio/x-vorbis+ogg", "audio/vnd.speex", "audio/x-opus"]),
    ("audio/qcelp", Audio, Own, &[]),
    ("audio/wav", Audio, Own, &["audio/x-wav", "audio/wave", "audio/vnd.wave", "audio/x-pn-wav"]),
    ("audio/wavpack", Audio, Own, &["audio/x-wavpack"]),
    ("audio/webm", Audio, Matroska, &[]),
    ("audio/x-adif", Audio, Aac, &[]),
    ("audio/x-ape", Audio, Own, &["audio/ape", "audio/x-monkeys-audio"]),
    ("audio/x-caf", Audio, Own, &["audio/caf"]),
    ("audio/x-dff", Audio, Own, &["audio/x-dsdiff", "audio/dsdiff"]),
    ("audio/x-dsf", Audio, Own, &["audio/dsf"]),
    ("audio/x-it", Audio, Own, &["audio/it"]),
    ("audio/x-mod", Audio, Own, &[]),
    ("audio/x-ms-wma", Audio, Asf, &["audio/wma"]),
    ("audio/x-musepack", Audio, Own, &["audio/musepack", "audio/x-mpc"]),
    ("audio/x-pn-realaudio", Audio, Real, &["audio/vnd.rn-realaudio", "audio/x-realaudio"]),
    ("audio/x-s3m", Audio, Own, &["audio/s3m"]),
    ("audio/x-tta", Audio, Own, &["audio/x-trueaudio", "audio/tta"]),
    ("audio/x-voc", Audio, Own, &["audio/x-unknown", "audio/voc"]),
    ("audio/x-w64", Audio, Own, &["audio/vnd.sony-wave64"]),
    ("audio/x-xm", Audio, Own, &["audio/xm"]),
    ("application/mxf", Video, Own, &[]),
    ("application/ogg", Video, Ogg, &[]),
    ("application/vnd.rn-realmedia", Video, Real, &["application/vnd.rn-realmedia-vbr", "video/x-pn-realvideo", "video/vnd.rn-realvideo"]),
    ("video/3gpp", Video, Bmff, &[]),
    ("video/3gpp2", Video, Bmff, &[]),
    ("video/matroska", Video, Matroska, &["video/x-matroska", "application/x-matroska"]),
    ("video/mp2t", Video, Own, &["video/m2ts", "video/vnd.dlna.mpeg-tts"]),
    ("video/mp4", Video, Bmff, &["application/mp4"]),
    ("video/mpeg", Video, Own, &["video/mp1s", "video/mp2p", "video/x-mpeg"]),
    ("video/ogg", Video, Ogg, &["video/theora"]),
    ("video/quicktime", Video, Bmff, &["video/x-quicktime"]),
    ("video/webm", Video, Matroska, &[]),
    ("video/x-flv", Video, Own, &["video/flv"]),
    ("video/x-ivf", Video, Own, &[]),
    ("video/x-m4v", Video, Bmff, &["video/m4v"]),
    ("video/x-ms-asf", Video, Asf, &["application/vnd.ms-asf", "video/asf"]),
    ("video/x-ms-wmv", Video, Asf, &["video/wmv"]),
    ("video/x-msvideo", Video, Own, &["video/avi", "video/vnd.avi", "video/msvideo"]),
    ("video/x-nut", Video, Own, &[]),
    ("video/x-yuv4mpeg2", Video, Own, &["video/x-raw", "video/x-yuv4mpeg"]),
    ("application/epub+zip", Document, Zip, &[]),
    ("application/msword", Document, Ole, &[]),
    ("application/onenote", Document, Own, &[]),
    ("application/pdf", Document, Own, &["application/x-pdf"]),
    ("application/postscript", Document, Own, &["application/eps", "image/x-eps"]),
    ("application/rtf", Document, Own, &["text/rtf"]),
    ("application/vnd.fdf", Document, Own, &[]),
    ("application/vnd.ms-excel", Document, Ole, &[]),
    ("application/vnd.ms-excel.addin.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-excel.sheet.binary.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-excel.sheet.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-excel.template.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-htmlhelp", Document, Own, &["application/x-chm", "chemical/x-chm"]),
    ("application/vnd.ms-outlook", Document, Ole, &[]),
    ("application/vnd.ms-powerpoint", Document, Ole, &[]),
    ("application/vnd.ms-powerpoint.presentation.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-powerpoint.slideshow.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-powerpoint.template.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-visio.drawing", Document, Zip, &[]),
    ("application/vnd.ms-word.document.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.ms-word.template.macroenabled.12", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.chart", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.database", Document, Zip, &["application/vnd.oasis.opendocument.base"]),
    ("application/vnd.oasis.opendocument.formula", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.graphics", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.graphics-template", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.image", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.presentation", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.presentation-template", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.spreadsheet", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.spreadsheet-template", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.text", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.text-master", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.text-template", Document, Zip, &[]),
    ("application/vnd.oasis.opendocument.text-web", Document, Zip, &[]),
    ("application/vnd.openxmlformats-officedocument.presentationml.presentation", Document, Zip, &[]),
    ("application/vnd.openxmlformats-officedocument.presentationml.slideshow", Document, Zip, &[]),
    ("application/vnd.openxmlformats-officedocument.presentationml.template", Document, Zip, &[]),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", Document, Zip, &[]),
    ("application/vnd.openxmlformats-officedocument.spreadsheetml.template", Document, Zip, &[]),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", Document, Zip, &[]),
    ("application/vnd.openxmlformats-officedocument.wordprocessingml.template", Document, Zip, &[]),
    ("application/vnd.visio", Document, Ole, &["application/x-visio", "application/vnd.ms-visio"]),
    ("application/x-mobipocket-ebook", Document, Own, &[]),
    ("application/x-ole-storage", Document, Ole, &[]),
    ("application/atom+xml", Text, Xml, &[]),
    ("application/dash+xml", Text, Xml, &[]),
    ("application/geo+json", Text, Json, &[]),
    ("application/gml+xml", Text, Xml, &[]),
    ("application/gpx+xml", Text, Xml, &[]),
    ("application/json", Text, Json, &["text/json"]),
    ("application/rss+xml", Text, Xml, &[]),
    ("application/toml", Text, Prose, &["text/x-toml"]),
    ("application/vnd.apple.mpegurl", Text, Prose, &["application/x-mpegurl", "audio/x-mpegurl", "audio/mpegurl"]),
    ("application/vnd.google-earth.kml+xml", Text, Xml, &[]),
    ("application/x-ndjson", Text, Json, &["application/ndjson", "application/jsonl"]),
    ("application/x-pem-file", Text, Prose, &[]),
    ("application/x-subrip", Text, Prose, &["text/srt", "text/x-subrip"]),
    ("application/xhtml+xml", Text, Xml, &[]),
    ("application/xml", Text, Xml, &["text/xml"]),
    ("message/rfc822", Text, Prose, &[]),
    ("model/gltf+json", Text, Json, &[]),
    ("model/vnd.collada+xml", Text, Xml, &[]),
    ("text/calendar", Text, Prose, &[]),
    ("text/css", Text, Prose, &[]),
    ("text/csv", Text, Prose, &["application/csv", "text/x-csv"]),
    ("text/html", Text, Own, &[]),
    ("text/javascript", Text, Prose, &["application/javascript", "application/x-javascript", "text/ecmascript", "application/ecmascript", "text/x-javascript"]),
    ("text/markdown", Text, Prose, &["text/x-markdown"]),
    ("text/plain", Text, Prose, &[]),
    ("text/tab-separated-values", Text, Prose, &[]),
    ("text/vcard", Text, Prose, &["text/x-vcard"]),
    ("text/vtt", Text, Prose, &[]),
    ("text/x-c", Text, Prose, &[]),
    ("text/x-diff", Text, Prose, &[]),
    ("text/x-java-source", Text, Prose, &[]),
    ("text/x-lua", Text, Prose, &[]),
    ("text/x-perl", Text, Prose, &[]),
    ("text/x-php", Text, Prose, &["application/x-php", "application/x-httpd-php"]),
    ("text/x-python", Text, Prose, &["text/x-script.python"]),
    ("text/x-ruby", Text, Prose, &[]),
    ("text/x-shellscript", Text, Prose, &["application/x-sh", "application/x-shellscript", "text/x-sh"]),
    ("text/x-ssa", Text, Prose, &[]),
    ("text/x-tcl", Text, Prose, &[]),
    ("text/yaml", Text, Prose, &["application/yaml", "application/x-yaml", "text/x-yaml"]),
    ("application/gzip", Archive, Own, &["application/x-gzip"]),
    ("application/java-archive", Archive, Zip, &["application/x-java-archive"]),
    ("application/vnd.android.package-archive", Archive, Zip, &[]),
    ("application/vnd.debian.binary-package", Archive, Ar, &["application/x-deb", "application/x-debian-package"]),
    ("application/vnd.google-earth.kmz", Archive, Zip, &[]),
    ("application/vnd.ms-cab-compressed", Archive, Own, &["application/x-cab"]),
    ("application/vnd.rar", Archive, Own, &["application/x-rar-compressed", "application/x-rar", "application/rar"]),
    ("application/warc", Archive, Own, &[]),
    ("application/x-7z-compressed", Archive, Own, &[]),
    ("application/x-ace-compressed", Archive, Own, &[]),
    ("application/x-apple-diskimage", Archive, Own, &[]),
    ("application/x-archive", Archive, Ar, &["application/x-unix-archive"]),
    ("application/x-arj", Archive, Own, &["application/arj"]),
    ("application/x-bzip2", Archive, Own, &["application/bzip2", "application/x-bzip"]),
    ("application/x-chrome-extension", Archive, Own, &[]),
    ("application/x-compress", Archive, Own, &["application/x-compressed"]),
    ("application/x-cpio", Archive, Own, &[]),
    ("application/x-iso9660-image", Archive, Own, &["application/x-cd-image"]),
    ("application/x-lz4", Archive, Own, &["application/lz4"]),
    ("application/x-lzma", Archive, Own, &["application/lzma"]),
    ("application/x-lzip", Archive, Own, &["application/lzip"]),
    ("application/x-rpm", Archive, Own, &["application/x-redhat-package-manager"]),
    ("application/x-tar", Archive, Own, &["application/tar", "application/x-gtar", "application/x-ustar"]),
    ("application/x-xar", Archive, Own, &[]),
    ("application/x-xz", Archive, Own, &["application/xz"]),
    ("application/zip", Archive, Zip, &["application/x-zip-compressed", "application/x-zip"]),
    ("application/zlib", Archive, Own, &[]),
    ("application/zstd", Archive, Own, &["application/x-zstd"]),
    ("application/dicom", Other, Own, &[]),
    ("application/fits", Other, Own, &["image/fits"]),
    ("application/grib", Other, Own, &[]),
    ("application/java-vm", Other, Own, &["application/x-java-applet", "application/java", "application/x-java-vm", "application/x-java", "application/x-java-class"]),
    ("application/pgp-encrypted", Other, Own, &["application/pgp", "text/pgp"]),
    ("application/vnd.apache.arrow.file", Other, Own, &[]),
    ("application/vnd.apache.parquet", Other, Own, &["application/x-parquet"]),
    ("application/vnd.iccprofile", Other, Own, &["application/x-icc"]),
    ("application/vnd.microsoft.portable-executable", Other, Own, &["application/x-dosexec", "application/x-msdownload", "application/x-msdos-program", "application/exe", "application/x-winexe"]),
    ("application/vnd.ms-fontobject", Other, Own, &[]),
    ("application/vnd.sqlite3", Other, Own, &["application/x-sqlite3", "application/x-sqlite"]),
    ("application/vnd.tcpdump.pcap", Other, Own, &["application/x-pcap"]),
    ("application/wasm", Other, Own, &[]),
    ("application/x-bytecode.python", Other, Own, &[]),
    ("application/x-elf", Other, Own, &["application/x-executable", "application/x-object", "application/x-sharedlib", "application/x-pie-executable", "application/x-coredump"]),
    ("application/x-hdf5", Other, Own, &[]),
    ("application/x-mach-binary", Other, Own, &["application/x-mach-o"]),
    ("application/x-ms-shortcut", Other, Own, &["application/x.ms.shortcut"]),
    ("application/x-msaccess", Other, Own, &[]),
    ("application/x-shockwave-flash", Other, Own, &["application/vnd.adobe.flash.movie"]),
    ("font/collection", Other, Own, &[]),
    ("font/otf", Other, Own, &["application/vnd.ms-opentype", "application/x-font-otf", "application/font-sfnt", "font/sfnt"]),
    ("font/ttf", Other, Own, &["application/x-font-ttf"]),
    ("font/woff", Other, Own, &["application/font-woff", "application/x-font-woff"]),
    ("font/woff2", Other, Own, &["application/font-woff2"]),
    ("model/gltf-binary", Other, Own, &[]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_means_two_types() {
        let mut seen = BTreeSet::new();
        for row in TYPES {
            assert!(seen.insert(row.0), "{} twice", row.0);
            for alias in row.3 {
                assert!(seen.insert(alias), "{alias} twice");
            }
        }
    }

    #[test]
    fn aliases_lead_to_our_spelling() {
        assert_eq!(canonical("image/jpg"), Some("image/jpeg"));
        assert_eq!(canonical("audio/x-wav"), Some("audio/wav"));
        assert_eq!(canonical("text/xml"), Some("application/xml"));
        assert_eq!(canonical("application/x-thing"), None);
    }

    #[test]
    fn unknown_names_keep_their_top_level_kind() {
        assert_eq!(kind("audio/x-new"), Audio);
        assert_eq!(kind("application/x-new"), Other);
        assert_eq!((kind("application/ld+json"), family("application/ld+json")), (Text, Json));
    }
}
