//! SVG's size: `width` and `height` in CSS units, or what the view box leaves to say.

use super::xml::{self, Root};
use crate::media::Facts;

pub(super) fn is_root(local: &str) -> bool {
    // HTML parsers do not care about case, so neither may a rule that keeps drawings out of windows.
    local.eq_ignore_ascii_case("svg")
}

/// Notes the size in pixels when the root states one; percentages depend on where it is shown.
pub(super) fn size(root: &Root<'_>, facts: &mut Facts) {
    let (width, height) = (length(root, "width"), length(root, "height"));
    let view = xml::attribute(root, "viewBox").and_then(view_box);
    let (width, height) = match (width, height, view) {
        (Some(width), Some(height), _) => (width, height),
        (Some(width), None, Some((across, down))) => (width, width * down / across),
        (None, Some(height), Some((across, down))) => (height * across / down, height),
        (None, None, Some(view)) if !stated(root) => view,
        _ => return,
    };
    let whole = |side: f64| if side.is_finite() && (0.5..=LARGEST).contains(&side) { side.round() as u32 } else { 0 };
    facts.size(whole(width), whole(height));
}

/// No browser draws larger; a side beyond it is no size.
const LARGEST: f64 = 1e9;

fn stated(root: &Root<'_>) -> bool {
    xml::attribute(root, "width").is_some() || xml::attribute(root, "height").is_some()
}

fn length(root: &Root<'_>, name: &str) -> Option<f64> {
    let text = xml::attribute(root, name)?.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(text.len());
    // `1em` is a number followed by a unit that begins like an exponent.
    let (number, unit) = text.split_at(digits);
    let (number, unit) = match number.strip_suffix(['e', 'E']) {
        Some(number) => (number, &text[number.len()..]),
        None => (number, unit),
    };
    let per_unit = match unit.trim() {
        "" | "px" => 1.0,
        "in" => 96.0,
        "cm" => 96.0 / 2.54,
        "mm" => 96.0 / 25.4,
        "pt" => 96.0 / 72.0,
        "pc" => 16.0,
        _ => return None,
    };
    let length = number.parse::<f64>().ok()? * per_unit;
    (length.is_finite() && length > 0.0).then_some(length)
}

fn view_box(text: &str) -> Option<(f64, f64)> {
    let mut sides = text.split([' ', ',', '\t', '\n', '\r']).filter(|side| !side.is_empty()).map(str::parse::<f64>);
    let (_, _, width, height) = (sides.next()?, sides.next()?, sides.next()?.ok()?, sides.next()?.ok()?);
    (width.is_finite() && height.is_finite() && width > 0.0 && height > 0.0).then_some((width, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_every_unit() {
        for (attributes, expected) in [
            ("width='123' height='456'", Some((123, 456))),
            ("width=\"1in\" height=\"25.4mm\"", Some((96, 96))),
            ("viewBox='0 0 35 20'", Some((35, 20))),
            ("viewBox='0,0,35,20' width='70'", Some((70, 40))),
            ("width='100%' height='100%' viewBox='0 0 1 1'", None),
            ("width='1e308' height='-5'", None),
            ("width='2em' height='2em'", None),
            ("", None),
        ] {
            let text = format!("<svg {attributes}></svg>");
            let mut facts = Facts::default();
            size(&xml::root(&text).expect("a root"), &mut facts);
            assert_eq!(facts.width.zip(facts.height), expected, "{attributes}");
        }
    }
}
