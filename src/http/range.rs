//! Which bytes of an asset a `Range` header asks for (RFC 9110 §14), decided without touching the asset.

use std::ops::Range;

pub mod multipart;

/// Says what to send for a `Range` header and an asset of `len` bytes.
///
/// A header that is no valid `bytes` range set is ignored, as §14.2 has it. The caller gives no header for HEAD, when
/// `If-Range` failed, or when there is more than one `Range` line.
///
/// Every range planned lies within the asset, is not empty, and overlaps no other; the order is the one asked for.
pub fn plan(header: Option<&str>, len: u64) -> Plan {
    let Some(specs) = header.and_then(parse) else {
        return Plan::Whole;
    };
    let wanted: Vec<_> = specs.iter().filter_map(|spec| spec.within(len)).collect();
    if wanted.is_empty() {
        return Plan::Unsatisfiable;
    }
    let sum: u128 = wanted.iter().map(|range| u128::from(range.end - range.start)).sum();
    if sum > u128::from(len) {
        return Plan::Whole;
    }
    let mut parts = merge(wanted);
    match parts.len() {
        1 => Plan::Single(parts.remove(0)),
        _ => Plan::Multiple(parts),
    }
}

/// What to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// 200 with every byte.
    Whole,
    /// 206 with this range and its [`content_range`].
    Single(Range<u64>),
    /// 206 as `multipart/byteranges`: two ranges or more, framed by [`multipart::Framing`].
    Multiple(Vec<Range<u64>>),
    /// 416 with [`unsatisfied`].
    Unsatisfiable,
}

/// The `Content-Range` of a 206, and of each of its parts: `bytes 0-1/1000`.
pub fn content_range(range: &Range<u64>, len: u64) -> String {
    debug_assert!(range.start < range.end && range.end <= len, "a planned range lies within its asset");
    format!("bytes {}-{}/{len}", range.start, range.end - 1)
}

/// The `Content-Range` of a 416: `bytes */1000`.
pub fn unsatisfied(len: u64) -> String {
    format!("bytes */{len}")
}

/// Players ask for one range, viewers of documents for a handful; hundreds are an attack (CVE-2011-3192).
const MAX_RANGES: usize = 16;

#[derive(Debug, Clone, Copy)]
enum Spec {
    /// `first-last`, or `first-` with the last byte as far away as can be.
    From { first: u64, last: u64 },
    /// `-length`: that many bytes of the end.
    Suffix(u64),
}

impl Spec {
    fn parse(raw: &str) -> Option<Self> {
        let (first, last) = raw.split_once('-')?;
        if first.is_empty() {
            return decimal(last).map(Self::Suffix);
        }
        let first = decimal(first)?;
        let last = if last.is_empty() { u64::MAX } else { decimal(last)? };
        (first <= last).then_some(Self::From { first, last })
    }

    /// The bytes of an asset of `len` bytes that are meant; nothing when it has none of them.
    fn within(self, len: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From { first, last } => first..last.saturating_add(1).min(len),
            Self::Suffix(length) => len.saturating_sub(length)..len,
        };
        (range.start < range.end).then_some(range)
    }
}

/// The specs of a valid set of at most [`MAX_RANGES`] byte ranges; nothing otherwise, for all else is answered whole.
fn parse(header: &str) -> Option<Vec<Spec>> {
    let (unit, set) = header.split_once('=')?;
    if !unit.trim_start_matches(BLANKS).eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut specs = Vec::new();
    // §5.6.1: empty elements of a list are passed over.
    for raw in set.split(',').map(|raw| raw.trim_matches(BLANKS)).filter(|raw| !raw.is_empty()) {
        if specs.len() == MAX_RANGES {
            return None;
        }
        specs.push(Spec::parse(raw)?);
    }
    (!specs.is_empty()).then_some(specs)
}

const BLANKS: [char; 2] = [' ', '\t'];

/// A number of any length. What does not fit is larger than any asset, and so is the largest that does.
fn decimal(digits: &str) -> Option<u64> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let mut value = 0_u64;
    for byte in digits.bytes() {
        value = value.saturating_mul(10).saturating_add(digit(byte)?);
    }
    (!digits.is_empty()).then_some(value)
}

/// Joins ranges that overlap; what is joined stands where the first of them stood (§15.3.7.2). Ranges that only touch
/// stay two, as asked.
fn merge(wanted: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut parts: Vec<Range<u64>> = Vec::with_capacity(wanted.len());
    for range in wanted {
        let overlaps = |part: &Range<u64>| part.start < range.end && range.start < part.end;
        let Some(place) = parts.iter().position(overlaps) else {
            parts.push(range);
            continue;
        };
        // The parts so far are disjoint, so whatever the joined range overlaps, `range` itself overlaps.
        let joined = parts
            .iter()
            .filter(|part| overlaps(part))
            .fold(range.clone(), |joined, part| joined.start.min(part.start)..joined.end.max(part.end));
        parts.retain(|part| !overlaps(part));
        parts.insert(place, joined);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn single(first: u64, last: u64) -> Plan {
        Plan::Single(first..last + 1)
    }

    fn multiple(ranges: &[(u64, u64)]) -> Plan {
        Plan::Multiple(ranges.iter().map(|(first, last)| *first..last + 1).collect())
    }

    #[test]
    fn a_range_of_a_thousand_bytes_is_planned_as_the_rfc_says() {
        let table = [
            ("bytes=0-0", single(0, 0)),
            ("bytes=0-1", single(0, 1)),
            ("BYTES=500-", single(500, 999)),
            ("bytes=-500", single(500, 999)),
            ("bytes=-2000", single(0, 999)),
            ("bytes=0-99999", single(0, 999)),
            ("bytes=0-18446744073709551615", single(0, 999)),
            ("bytes=0-99999999999999999999999", single(0, 999)),
            ("bytes=-99999999999999999999999", single(0, 999)),
            ("bytes= 0-1", single(0, 1)),
            ("bytes=,0-1,,", single(0, 1)),
            ("bytes=1000-,0-1", single(0, 1)),
            ("bytes=0-9,5-14", single(0, 14)),
            ("bytes=0-0,-1", multiple(&[(0, 0), (999, 999)])),
            ("bytes=0-1\t, 5-6", multiple(&[(0, 1), (5, 6)])),
            ("bytes=5-6,0-1", multiple(&[(5, 6), (0, 1)])),
            ("bytes=0-1,2-3", multiple(&[(0, 1), (2, 3)])),
            ("bytes=0-9,90-99,5-14", multiple(&[(0, 14), (90, 99)])),
            ("bytes=90-99,0-9,20-29,5-24", multiple(&[(90, 99), (0, 29)])),
            ("bytes=1000-", Plan::Unsatisfiable),
            ("bytes=1000-1001", Plan::Unsatisfiable),
            ("bytes=-0", Plan::Unsatisfiable),
            ("bytes=18446744073709551615-", Plan::Unsatisfiable),
            ("bytes=99999999999999999999-99999999999999999999", Plan::Unsatisfiable),
            ("bytes=0-999,0-999", Plan::Whole),
            ("bytes=0-,-1", Plan::Whole),
            ("bytes=500-499", Plan::Whole),
            ("bytes=0-1,9-8", Plan::Whole),
            ("bytes=abc", Plan::Whole),
            ("bytes=", Plan::Whole),
            ("bytes=-", Plan::Whole),
            ("bytes=5", Plan::Whole),
            ("bytes=0-1-2", Plan::Whole),
            ("bytes=--1", Plan::Whole),
            ("bytes = 0-1", Plan::Whole),
            ("bytes=+0-1", Plan::Whole),
            ("bytes=0x0-0x1", Plan::Whole),
            ("bytes=\u{660}-\u{661}", Plan::Whole),
            ("items=0-1", Plan::Whole),
            ("0-1", Plan::Whole),
            ("", Plan::Whole),
        ];
        for (header, expected) in table {
            assert_eq!(plan(Some(header), 1000), expected, "{header}");
        }
        assert_eq!(plan(None, 1000), Plan::Whole);
    }

    #[test]
    fn no_range_of_an_empty_asset_can_be_satisfied() {
        for header in ["bytes=-5", "bytes=0-", "bytes=0-0", "bytes=-0"] {
            assert_eq!(plan(Some(header), 0), Plan::Unsatisfiable, "{header}");
        }
        assert_eq!(unsatisfied(0), "bytes */0");
    }

    #[test]
    fn the_seventeenth_range_turns_the_answer_into_the_whole() {
        let ranges = |count: u64| {
            let specs: Vec<String> = (0..count).map(|n| format!("{}-{}", n * 10, n * 10)).collect();
            plan(Some(&format!("bytes={}", specs.join(","))), 1000)
        };
        assert!(matches!(ranges(16), Plan::Multiple(parts) if parts.len() == 16));
        assert_eq!(ranges(17), Plan::Whole);
    }

    #[test]
    fn the_largest_of_numbers_do_not_overflow() {
        let len = u64::MAX;
        assert_eq!(plan(Some("bytes=0-"), len), Plan::Single(0..len));
        assert_eq!(plan(Some("bytes=-18446744073709551615"), len), Plan::Single(0..len));
        assert_eq!(plan(Some("bytes=0-,1-"), len), Plan::Whole);
        assert_eq!(content_range(&(0..len), len), format!("bytes 0-{}/{len}", len - 1));
    }

    fn spec() -> impl Strategy<Value = String> {
        let near = || prop_oneof![0..40_u64, any::<u64>()];
        prop_oneof![
            (near(), near()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
            near().prop_map(|first| format!("{first}-")),
            near().prop_map(|length| format!("-{length}")),
        ]
    }

    /// The bytes that a set of valid specs names, looked up one by one.
    fn named(specs: &[String], byte: u64, len: u64) -> bool {
        specs.iter().any(|spec| match spec.split_once('-') {
            Some(("", length)) => byte >= len.saturating_sub(length.parse().expect("generated")),
            Some((first, "")) => byte >= first.parse().expect("generated"),
            Some((first, last)) => {
                byte >= first.parse().expect("generated") && byte <= last.parse().expect("generated")
            }
            None => false,
        })
    }

    proptest! {
        #[test]
        fn a_plan_holds_just_the_bytes_named_each_once(specs in prop::collection::vec(spec(), 1..6), len in 0..40_u64) {
            let parts = match plan(Some(&format!("bytes={}", specs.join(","))), len) {
                Plan::Single(range) => vec![range],
                Plan::Multiple(parts) => {
                    prop_assert!(parts.len() > 1);
                    parts
                }
                Plan::Whole => return Ok(()),
                Plan::Unsatisfiable => Vec::new(),
            };
            prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= len));
            prop_assert!(parts.iter().map(|part| part.end - part.start).sum::<u64>() <= len);
            for byte in 0..len {
                let times = parts.iter().filter(|part| part.contains(&byte)).count();
                prop_assert_eq!(times, usize::from(named(&specs, byte, len)), "byte {}", byte);
            }
        }

        #[test]
        fn no_header_breaks_the_planner(header in "(bytes=)?[-0-9, =a-z\\PC]{0,40}", len in any::<u64>()) {
            match plan(Some(&header), len) {
                Plan::Single(range) => prop_assert!(range.start < range.end && range.end <= len),
                Plan::Multiple(parts) => {
                    prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= len));
                }
                Plan::Whole | Plan::Unsatisfiable => {}
            }
        }

        #[test]
        fn a_content_range_asked_for_again_gives_the_same_range(first in 0..1000_u64, more in 0..1000_u64) {
            let range = first..(first + more).min(999) + 1;
            let value = content_range(&range, 1000);
            let again = value.trim_end_matches("/1000").replace("bytes ", "bytes=");
            prop_assert_eq!(plan(Some(&again), 1000), Plan::Single(range));
        }
    }
}
