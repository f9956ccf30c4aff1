//! How found bytes may be handed to a browser.
//!
//! Promised: nothing that a browser runs is shown in its window, whatever was declared or asked for. Deliberately
//! absent: the caller's wish. It can turn `Inline` into `Attachment`, never the other way, and that is not decided here.

use super::{Facts, Flag, Kind, catalogue};

/// What a response says about showing the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// A browser may show it in place.
    Inline,
    /// A browser is to save it.
    Attachment,
}

/// Inline for passive image, audio and video, and for a PDF that has nothing odd about it.
pub fn disposition(mime_type: &str, facts: &Facts) -> Disposition {
    if is_clean_pdf(mime_type, facts) || is_passive(mime_type) { Disposition::Inline } else { Disposition::Attachment }
}

/// Whether it may be shown by somebody who sends its type and none of our other headers: passive media in which nothing was found that a
/// browser could take for a page.
pub fn is_safe_bare(mime_type: &str, facts: &Facts) -> bool {
    let odd = [Flag::EmbeddedMarkup, Flag::ActiveContent];
    is_passive(mime_type) && !odd.iter().any(|flag| facts.flags.contains(flag))
}

/// Whether the content policy carries `sandbox`: always, but for the clean PDF, which viewers refuse to show inside one.
pub fn sandboxed(mime_type: &str, facts: &Facts) -> bool {
    !is_clean_pdf(mime_type, facts)
}

/// The `Content-Type` to send: the found type, and the charset of text that is valid UTF-8.
pub fn content_type(mime_type: &str, facts: &Facts) -> String {
    let textual =
        catalogue::kind(mime_type) == Kind::Text || mime_type.ends_with("+xml") || mime_type.ends_with("+json");
    if textual && facts.charset.as_deref() == Some("utf-8") {
        format!("{mime_type}; charset=utf-8")
    } else {
        mime_type.to_owned()
    }
}

fn is_clean_pdf(mime_type: &str, facts: &Facts) -> bool {
    mime_type == "application/pdf" && facts.well_formed && facts.flags.is_empty()
}

/// A media type that is data only. SVG runs scripts; a name with a suffix such as `+xml` is never taken on trust.
fn is_passive(mime_type: &str) -> bool {
    let media = matches!(catalogue::kind(mime_type), Kind::Image | Kind::Audio | Kind::Video);
    media && catalogue::known(mime_type) && !mime_type.contains('+') && !mime_type.starts_with("application/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passive_media_are_shown() {
        let facts = Facts::default();
        for name in ["image/png", "image/avif", "audio/mpeg", "video/mp4"] {
            assert_eq!(disposition(name, &facts), Disposition::Inline, "{name}");
        }
        for name in [
            "text/html",
            "image/svg+xml",
            "application/xml",
            "text/javascript",
            "text/plain",
            "application/octet-stream",
            "application/pdf",
            "image/x-made-up",
            "application/zip",
        ] {
            assert_eq!(disposition(name, &facts), Disposition::Attachment, "{name}");
            assert!(sandboxed(name, &facts), "{name}");
        }
    }

    #[test]
    fn a_pdf_is_shown_only_when_nothing_is_odd() {
        let mut facts = Facts { well_formed: true, ..Facts::default() };
        assert_eq!(disposition("application/pdf", &facts), Disposition::Inline);
        assert!(!sandboxed("application/pdf", &facts));
        facts.flags.insert(Flag::DeclaredMismatch);
        assert_eq!(disposition("application/pdf", &facts), Disposition::Attachment);
        assert!(sandboxed("application/pdf", &facts));
    }

    #[test]
    fn only_media_in_which_no_markup_lies_are_shown_without_our_headers() {
        let mut facts = Facts { well_formed: true, ..Facts::default() };
        for name in ["image/png", "audio/mpeg", "video/mp4"] {
            assert!(is_safe_bare(name, &facts), "{name}");
        }
        for name in ["image/svg+xml", "text/html", "text/plain", "application/pdf", "image/x-made-up"] {
            assert!(!is_safe_bare(name, &facts), "{name}");
        }
        facts.flags.insert(Flag::EmbeddedMarkup);
        assert!(!is_safe_bare("image/png", &facts));
    }

    #[test]
    fn utf8_text_says_so() {
        let facts = Facts { charset: Some("utf-8".to_owned()), ..Facts::default() };
        assert_eq!(content_type("text/csv", &facts), "text/csv; charset=utf-8");
        assert_eq!(content_type("application/json", &facts), "application/json; charset=utf-8");
        assert_eq!(content_type("image/svg+xml", &facts), "image/svg+xml; charset=utf-8");
        assert_eq!(content_type("image/png", &facts), "image/png");
        assert_eq!(content_type("text/plain", &Facts::default()), "text/plain");
    }
}
