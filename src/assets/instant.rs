//! Times from outside: RFC 3339 and nothing else, to whole milliseconds, never earlier than what was said.

use jiff::SignedDuration;
use mediakeep_storage::Timestamp;
use mediakeep_storage::retention::after;

/// The instant, in whole milliseconds: a finer one is rounded up, so that nothing ends before it was promised.
pub fn read(raw: &str) -> Option<Timestamp> {
    let (seconds, rest) = raw.split_at_checked(SECONDS)?;
    if !has_shape(seconds) {
        return None;
    }
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let (fraction, offset) = if digits > 0 { rest.split_at(digits + 1) } else { ("", rest) };
    if !(offset.eq_ignore_ascii_case("z") || is_offset(offset)) {
        return None;
    }
    // A leap second is the one after :59, and as good as the next minute.
    let (seconds, leaps) = match seconds.strip_suffix(":60") {
        Some(minute) => (format!("{minute}:59"), SignedDuration::from_secs(1)),
        None => (seconds.to_owned(), SignedDuration::ZERO),
    };
    let whole = parse(&format!("{seconds}{offset}"))?;
    Some(after(after(whole, leaps), up_to_millis(fraction)))
}

/// `2030-01-31T12:00:00`.
const SECONDS: usize = 19;

fn has_shape(seconds: &str) -> bool {
    seconds.bytes().enumerate().all(|(place, byte)| match place {
        4 | 7 => byte == b'-',
        10 => matches!(byte, b'T' | b't'),
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    })
}

fn is_offset(offset: &str) -> bool {
    let offset = offset.as_bytes();
    offset.len() == 6
        && matches!(offset[0], b'+' | b'-')
        && offset[3] == b':'
        && [1, 2, 4, 5].iter().all(|place| offset[*place].is_ascii_digit())
}

/// The end of the year 9999 is what people write for "for ever"; our clock's last instant is a day before it.
fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let year_before = text.strip_prefix("9999-12-3").map(|rest| format!("9998-12-3{rest}"))?;
        year_before.parse::<Timestamp>().ok().and_then(|_| last())
    })
}

fn last() -> Option<Timestamp> {
    Timestamp::from_millisecond(Timestamp::MAX.as_millisecond()).ok()
}

/// The fraction, with its point, as milliseconds, rounded up.
fn up_to_millis(fraction: &str) -> SignedDuration {
    let digits = fraction.trim_start_matches('.').as_bytes();
    let millis = (0..3).fold(0, |sum, place| sum * 10 + digits.get(place).map_or(0, |digit| i64::from(digit - b'0')));
    let finer = digits.iter().skip(3).any(|digit| *digit != b'0');
    SignedDuration::from_millis(millis + i64::from(finer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_was_meant_and_never_earlier() {
        for (raw, right) in [
            ("2030-01-31T12:00:00Z", "2030-01-31T12:00:00Z"),
            ("2030-01-31t12:00:00z", "2030-01-31T12:00:00Z"),
            ("2030-01-31T12:00:00+02:00", "2030-01-31T10:00:00Z"),
            ("2030-01-31T12:00:00.5Z", "2030-01-31T12:00:00.5Z"),
            ("2030-01-31T12:00:00.0001Z", "2030-01-31T12:00:00.001Z"),
            ("2030-01-31T12:00:00.9999999999999Z", "2030-01-31T12:00:01Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ] {
            assert_eq!(read(raw), right.parse().ok(), "{raw}");
        }
        assert_eq!(read("9999-12-31T23:59:59Z"), last());
    }

    #[test]
    fn what_is_not_rfc_3339_is_no_time() {
        for raw in [
            "",
            "tomorrow",
            "2030-01-31",
            "2030-01-31 12:00:00Z",
            "20300131T120000Z",
            "2030-01-31T12:00Z",
            "2030-01-31T12:00:00",
            "2030-01-31T12:00:00,5Z",
            "2030-01-31T12:00:00.Z",
            "2030-01-31T12:00:00Z[UTC]",
            "2030-02-31T12:00:00Z",
            "2030-01-31T24:00:01Z",
            "9999-12-32T00:00:00Z",
            "+002030-01-31T12:00:00Z",
            "2030-01-31T12:00:0٣Z",
        ] {
            assert_eq!(read(raw), None, "{raw}");
        }
    }
}
