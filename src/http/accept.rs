//! Which of two media types a request prefers (RFC 9110 §12.5.1). Pure.
//!
//! The most specific range that names a type says how good it is; of equally specific ones the best. A range's parameters but `q` are not
//! looked at: none of our types has any. What is no range is passed over, and a request without ranges takes anything.

/// Whether `wanted` is better than `usual`. Equally good, or neither acceptable: the usual one.
pub fn prefers<'a>(lines: impl Iterator<Item = &'a [u8]>, wanted: &str, usual: &str) -> bool {
    let lines: Vec<&str> = lines.filter_map(|line| std::str::from_utf8(line).ok()).collect();
    let ranges: Vec<Range<'_>> = lines.iter().flat_map(|line| split(line, ',')).filter_map(Range::parse).collect();
    quality(&ranges, wanted) > quality(&ranges, usual)
}

/// One range of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range<'a> {
    top: &'a str,
    sub: &'a str,
    /// In thousandths.
    quality: u16,
}

/// How good the type is, in thousandths; 0 is not acceptable.
fn quality(ranges: &[Range<'_>], name: &str) -> u16 {
    if ranges.is_empty() {
        return 1_000;
    }
    let (top, sub) = name.split_once('/').unwrap_or((name, ""));
    let best = ranges.iter().filter_map(|range| Some((range.specificity(top, sub)?, range.quality))).max();
    best.map_or(0, |(_, quality)| quality)
}

impl<'a> Range<'a> {
    fn parse(element: &'a str) -> Option<Self> {
        let mut fields = split(element, ';');
        let (top, sub) = fields.next()?.trim().split_once('/')?;
        let is_any = top == "*" && sub != "*";
        if !is_token(top) || !is_token(sub) || is_any {
            return None;
        }
        let weight = fields.find_map(|field| {
            let (name, value) = field.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        let quality = weight.map_or(Some(1_000), read_weight)?;
        Some(Self { top, sub, quality })
    }

    /// How closely the range names the type, if it does.
    fn specificity(&self, top: &str, sub: &str) -> Option<u8> {
        match (self.top, self.sub) {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(top) => Some(1),
            (own, exact) if own.eq_ignore_ascii_case(top) && exact.eq_ignore_ascii_case(sub) => Some(2),
            _ => None,
        }
    }
}

/// `0` or `1` with at most three decimals, in thousandths.
fn read_weight(raw: &str) -> Option<u16> {
    let (whole, decimals) = raw.split_once('.').unwrap_or((raw, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) || !matches!(whole, "0" | "1") {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    let weight = if whole == "1" { 1_000 + thousandths } else { thousandths };
    (weight <= 1_000).then_some(weight)
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The parts of a text between separators, of which those in quotation marks are none.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c: char| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        c == separator && !quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &[&str]) -> bool {
        prefers(lines.iter().map(|line| line.as_bytes()), "application/a2a+json", "application/json")
    }

    #[test]
    fn what_is_asked_for_first_is_preferred() {
        for lines in [
            &["application/a2a+json"][..],
            &["application/a2a+json, application/json;q=0.5"],
            &["application/json;q=0.5", "application/a2a+json"],
            &["Application/A2A+JSON; version=\"1,0\", */*;q=0.1"],
            &["application/json;q=0.2,application/*;q=0.3"],
            &["application/json;q=0, */*"],
            &["*/*;q=1, application/json;q=0.999"],
            &["application/a2a+json;q=0.001"],
            &["text/html, application/a2a+json;Q=0.9, application/json ; q=0.8"],
            &["no range, application/json;q=7, application/a2a+json;q=0.1"],
        ] {
            assert!(asked(lines), "{lines:?}");
        }
    }

    #[test]
    fn else_the_usual_one_is_sent() {
        for lines in [
            &[][..],
            &[""],
            &["*/*"],
            &["application/*"],
            &["application/json"],
            &["application/json, application/a2a+json"],
            &["application/a2a+json;q=0.5, application/json;q=0.5"],
            &["application/a2a+json;q=0"],
            &["application/a2a+json;q=0, */*"],
            &["application/a2a+json;q=0.4, application/*;q=0.5"],
            &["text/html"],
            &["application/a2a+json;q=1.5"],
            &["application/a2a+json;q=0.1234"],
            &["application/a2a+json;q=nan"],
            &["*/a2a+json"],
            &["application"],
            &["text/x;y=\"a, application/a2a+json\""],
        ] {
            assert!(!asked(lines), "{lines:?}");
        }
    }
}
