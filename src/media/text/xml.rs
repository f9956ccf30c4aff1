//! XML by its root element.
//!
//! Promised: prolog, comments, instructions and a document type are stepped over in one pass; entities are not
//! resolved, and nothing is fetched. Deliberately absent: well-formedness beyond the root's end.

use super::{Encoding, svg};
use crate::media::reader::Bytes;

/// The root element's start tag.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Root<'a> {
    /// With its prefix.
    pub(super) name: &'a str,
    /// What stands between the name and the tag's end.
    pub(super) attributes: &'a str,
    /// The tag closes itself.
    pub(super) empty: bool,
}

impl Root<'_> {
    /// The name without its prefix.
    pub(super) fn local(&self) -> &str {
        self.name.rsplit(':').next().unwrap_or(self.name)
    }
}

/// The first element, or as much of its tag as there is.
pub(super) fn root(text: &str) -> Option<Root<'_>> {
    let mut rest = text.trim_start();
    loop {
        rest = rest.trim_start().strip_prefix('<')?;
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = &comment[comment.find("-->")? + 3..];
        } else if rest.starts_with('?') {
            rest = &rest[rest.find("?>")? + 2..];
        } else if rest.starts_with('!') {
            rest = after_doctype(rest)?;
        } else {
            break;
        }
    }
    let length = rest.find(|c: char| !(c.is_alphanumeric() || ":_-.".contains(c))).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(length);
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return None;
    }
    let end = tag_end(rest);
    let attributes = &rest[..end.unwrap_or(rest.len())];
    Some(Root { name, attributes: attributes.trim_end_matches('/'), empty: attributes.ends_with('/') })
}

/// Behind a document type and its internal subset: quotes and brackets counted, comments and instructions stepped over, for what is in
/// them is in no order.
fn after_doctype(rest: &str) -> Option<&str> {
    let (mut depth, mut quote, mut skip) = (0i32, None, 0);
    for (at, c) in rest.char_indices() {
        if at < skip {
            continue;
        }
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '<') if rest[at..].starts_with("<!--") => skip = at + rest[at..].find("-->")? + 3,
            (None, '<') if rest[at..].starts_with("<?") => skip = at + rest[at..].find("?>")? + 2,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => depth -= 1,
            (None, '>') if depth <= 0 => return Some(&rest[at + 1..]),
            _ => {}
        }
    }
    None
}

fn tag_end(rest: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in rest.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '>') => return Some(at),
            _ => {}
        }
    }
    None
}

/// An attribute's value.
pub(super) fn attribute<'a>(root: &Root<'a>, name: &str) -> Option<&'a str> {
    let mut rest = root.attributes;
    while let Some(equals) = rest.find('=') {
        let own = rest[..equals].trim_end().rsplit(|c: char| c.is_whitespace() || c == '"' || c == '\'').next()?;
        let value = rest[equals + 1..].trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let end = value[1..].find(quote)? + 1;
        if own == name {
            return Some(&value[1..end]);
        }
        rest = &value[end + 1..];
    }
    None
}

pub(super) fn is_declared(text: &str) -> bool {
    text.trim_start_matches(['\t', '\n', '\u{C}', '\r', ' ']).starts_with("<?xml")
}

/// The type that a root stands for. Without a declaration only roots that nothing else has are taken for XML.
pub(super) fn name(root: &Root<'_>, text: &str) -> Option<&'static str> {
    let declared = is_declared(text);
    let space = match root.name.split_once(':') {
        Some((prefix, _)) => attribute(root, &format!("xmlns:{prefix}")),
        None => attribute(root, "xmlns"),
    };
    let local = root.local();
    if svg::is_root(local) {
        return Some("image/svg+xml");
    }
    if local.eq_ignore_ascii_case("html") {
        return declared.then_some("application/xhtml+xml");
    }
    let known =
        ROOTS.iter().find(|(own, within, _)| *own == local && space.is_none_or(|space| space.starts_with(within)));
    if let Some((_, within, name)) = known
        && (within.is_empty() || space.is_some())
        && (declared || *name != "application/xml")
    {
        return Some(name);
    }
    (declared || space.is_some_and(|space| !space.contains("xhtml"))).then_some("application/xml")
}

/// Local name, beginning of its name space, and the type.
const ROOTS: &[(&str, &str, &str)] = &[
    ("rss", "", "application/rss+xml"),
    ("feed", "http://www.w3.org/2005/Atom", "application/atom+xml"),
    ("kml", "http://", "application/vnd.google-earth.kml+xml"),
    ("gpx", "http://www.topografix.com/GPX/", "application/gpx+xml"),
    ("COLLADA", "http://www.collada.org/", "model/vnd.collada+xml"),
    ("MPD", "urn:mpeg:dash:schema:mpd", "application/dash+xml"),
];

/// True when the last thing in the bytes is the root's end tag, comments aside.
pub(super) fn closes(bytes: &mut Bytes<'_>, encoding: Encoding, root: &Root<'_>) -> bool {
    let (_, tail) = bytes.tail(4 << 10);
    let mut text = encoding.decode(&tail);
    while let Some(rest) = text.trim_end().strip_suffix("-->") {
        let Some(start) = rest.rfind("<!--") else { break };
        text.truncate(start);
    }
    let text = text.trim_end();
    if root.empty && text.ends_with("/>") {
        return true;
    }
    let Some(text) = text.strip_suffix('>') else { return false };
    text.trim_end().strip_suffix(root.name).is_some_and(|text| text.ends_with("</"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_found_behind_everything() {
        let text = "<?xml version='1.0'?><!-- <a> --><!DOCTYPE svg [ <!ENTITY x '>'> ]><svg:svg a=\"1\" b='>'>";
        let root = root(text).expect("a root");
        assert_eq!((root.local(), root.attributes), ("svg", " a=\"1\" b='>'"));
        assert_eq!(attribute(&root, "b"), Some(">"));
        assert_eq!(attribute(&root, "c"), None);
    }

    #[test]
    fn comments_in_a_document_type_open_no_quotes() {
        let text = "<!DOCTYPE svg [ <!-- it's > ] --> <?a '?> <!ELEMENT x (#PCDATA)> ]><svg/>";
        assert_eq!(root(text).map(|root| root.name), Some("svg"));
    }

    #[test]
    fn text_has_no_root() {
        for text in ["", "hello", "<", "< a>", "<!-- open", "<1>"] {
            assert_eq!(root(text), None, "{text}");
        }
    }

    #[test]
    fn name_spaces_make_feeds() {
        let atom = "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>";
        assert_eq!(name(&root(atom).expect("a root"), atom), Some("application/atom+xml"));
        let other = "<?xml version='1.0'?><feed>";
        assert_eq!(name(&root(other).expect("a root"), other), Some("application/xml"));
    }
}
