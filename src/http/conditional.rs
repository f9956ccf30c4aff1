//! Preconditions of a request, in the order of RFC 9110 §13.2.2, decided without touching the resource.

use std::time::{Duration, SystemTime};

use httpdate::HttpDate;
use jiff::Timestamp;

pub use self::etag::{BadEntityTag, EntityTag};

mod etag;

/// Says whether a request may go on, given what it demands and what there is.
///
/// The resource exists and the caller may see it: access is decided before, so that no condition can tell otherwise.
pub fn evaluate(request: &Conditions<'_>, resource: &Validators, method: Method) -> Outcome {
    if request.are_for_another(resource) {
        return Outcome::PreconditionFailed;
    }
    if request.already_have(resource, method) {
        return match method {
            Method::Retrieve => Outcome::NotModified,
            Method::Change => Outcome::PreconditionFailed,
        };
    }
    Outcome::Proceed
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No condition stands against it. `Range` and [`if_range`] come next.
    Proceed,
    /// 304: the client has it already.
    NotModified,
    /// 412: the resource is not what the client takes it for.
    PreconditionFailed,
}

/// A request's conditions as sent: the raw value of each field line. A date that was sent twice is no date: it is left
/// out, like what was not sent.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    /// The lines of `If-Match`.
    pub if_match: Vec<&'a [u8]>,
    /// The lines of `If-None-Match`.
    pub if_none_match: Vec<&'a [u8]>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<&'a [u8]>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<&'a [u8]>,
}

/// What there is.
#[derive(Debug, Clone)]
pub struct Validators {
    /// The `ETag` that the answer will carry.
    pub etag: EntityTag,
    /// The `Last-Modified` that the answer will carry; its fraction of a second is not looked at.
    pub last_modified: Option<Timestamp>,
}

/// All that a condition has to know of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET or HEAD.
    Retrieve,
    /// Any other.
    Change,
}

/// Says whether `Range` still counts, by the `If-Range` sent with it (§13.1.5): a strong tag that is ours, or exactly
/// our date. A date only proves the same bytes because an asset's bytes never change.
pub fn if_range(header: &[u8], resource: &Validators) -> bool {
    if let Some(tag) = EntityTag::parse(header) {
        return tag.is_strongly(&resource.etag);
    }
    date(header).is_some_and(|date| resource.last_second() == Some(date))
}

/// Formats a time as IMF-fixdate, the form of `Last-Modified`: `Sun, 06 Nov 1994 08:49:37 GMT`.
///
/// The form holds the years 1970 to 9999; a time outside becomes the nearest end.
pub fn http_date(time: Timestamp) -> String {
    /// 9999-12-31T23:59:59Z in seconds since 1970.
    const END: i64 = 253_402_300_799;
    let seconds = time.as_second().clamp(0, END).unsigned_abs();
    HttpDate::from(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}

/// Parses any of the three forms of an HTTP-date (§5.6.7).
pub fn parse_http_date(raw: &str) -> Option<Timestamp> {
    date(raw.as_bytes()).and_then(|seconds| Timestamp::from_second(seconds).ok())
}

impl Conditions<'_> {
    /// Steps 1 and 2. A date counts only when there are no tags, and only when it can be read.
    fn are_for_another(&self, resource: &Validators) -> bool {
        if !self.if_match.is_empty() {
            return !etag::names(&self.if_match, |tag| tag.is_strongly(&resource.etag));
        }
        match (self.if_unmodified_since.and_then(date), resource.last_second()) {
            (Some(since), Some(modified)) => modified > since,
            _ => false,
        }
    }

    /// Steps 3 and 4. A date counts only when there are no tags, only for GET and HEAD, and only when it can be read.
    fn already_have(&self, resource: &Validators, method: Method) -> bool {
        if !self.if_none_match.is_empty() {
            return etag::names(&self.if_none_match, |tag| tag.is_weakly(&resource.etag));
        }
        match (method, self.if_modified_since.and_then(date), resource.last_second()) {
            (Method::Retrieve, Some(since), Some(modified)) => modified <= since,
            _ => false,
        }
    }
}

impl Validators {
    /// When it was last modified, as far as a header can say it.
    fn last_second(&self) -> Option<i64> {
        self.last_modified.map(|time| time.as_second().max(0))
    }
}

/// Seconds since 1970 of an HTTP-date; nothing when it is none.
fn date(raw: &[u8]) -> Option<i64> {
    let date: HttpDate = std::str::from_utf8(raw).ok()?.parse().ok()?;
    let since = SystemTime::from(date).duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEFORE: &[u8] = b"Sun, 06 Nov 1994 08:49:36 GMT";
    const EXACT: &[u8] = b"Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &[u8] = b"Sun, 06 Nov 1994 08:49:38 GMT";

    fn there_is() -> Validators {
        Validators {
            etag: EntityTag::strong("a,b").expect("a valid tag"),
            last_modified: Some("1994-11-06T08:49:37.9Z".parse().expect("a valid time")),
        }
    }

    fn when(conditions: &[(&str, &'static [u8])], method: Method) -> Outcome {
        let mut request = Conditions::default();
        for (name, value) in conditions {
            match *name {
                "match" => request.if_match.push(value),
                "none" => request.if_none_match.push(value),
                "modified" => request.if_modified_since = Some(value),
                "unmodified" => request.if_unmodified_since = Some(value),
                other => unreachable!("no condition {other}"),
            }
        }
        evaluate(&request, &there_is(), method)
    }

    #[test]
    fn conditions_are_weighed_in_the_order_of_the_rfc() {
        use Method::{Change, Retrieve};
        use Outcome::{NotModified, PreconditionFailed, Proceed};
        type Row = (&'static [(&'static str, &'static [u8])], Method, Outcome);
        let table: &[Row] = &[
            (&[], Retrieve, Proceed),
            (&[("match", b"\"a,b\"")], Retrieve, Proceed),
            (&[("match", b"*")], Change, Proceed),
            (&[("match", b"\"x\", \"a,b\"")], Change, Proceed),
            (&[("match", b"\"x\""), ("match", b"\"a,b\"")], Change, Proceed),
            (&[("match", b"\"x\"")], Retrieve, PreconditionFailed),
            (&[("match", b"W/\"a,b\"")], Change, PreconditionFailed),
            (&[("match", b"")], Change, PreconditionFailed),
            (&[("match", b"\xff")], Change, PreconditionFailed),
            (&[("match", b"a,b")], Change, PreconditionFailed),
            (&[("unmodified", BEFORE)], Change, PreconditionFailed),
            (&[("unmodified", EXACT)], Change, Proceed),
            (&[("unmodified", b"yesterday")], Change, Proceed),
            (&[("match", b"\"a,b\""), ("unmodified", BEFORE)], Change, Proceed),
            (&[("none", b"\"a,b\"")], Retrieve, NotModified),
            (&[("none", b"W/\"a,b\"")], Retrieve, NotModified),
            (&[("none", b"\"x\" ,W/\"y\",, \"a,b\"")], Retrieve, NotModified),
            (&[("none", b"*")], Retrieve, NotModified),
            (&[("none", b"*")], Change, PreconditionFailed),
            (&[("none", b"\"a,b\"")], Change, PreconditionFailed),
            (&[("none", b"\"a\", \"b\", a,b")], Retrieve, Proceed),
            (&[("none", b"\"x\""), ("modified", AFTER)], Retrieve, Proceed),
            (&[("modified", EXACT)], Retrieve, NotModified),
            (&[("modified", b"Sunday, 06-Nov-94 08:49:37 GMT")], Retrieve, NotModified),
            (&[("modified", b"Sun Nov  6 08:49:37 1994")], Retrieve, NotModified),
            (&[("modified", BEFORE)], Retrieve, Proceed),
            (&[("modified", AFTER)], Change, Proceed),
            (&[("modified", b"Mon, 06 Nov 1994 08:49:37 GMT")], Retrieve, Proceed),
            (&[("modified", b"784111777")], Retrieve, Proceed),
            (&[("match", b"\"x\""), ("none", b"\"a,b\"")], Retrieve, PreconditionFailed),
            (&[("unmodified", BEFORE), ("modified", AFTER)], Retrieve, PreconditionFailed),
        ];
        for (conditions, method, expected) in table {
            assert_eq!(when(conditions, *method), *expected, "{conditions:?} {method:?}");
        }
    }

    #[test]
    fn a_date_says_nothing_of_what_has_none() {
        let resource = Validators { last_modified: None, ..there_is() };
        let request =
            Conditions { if_modified_since: Some(AFTER), if_unmodified_since: Some(BEFORE), ..Conditions::default() };
        assert_eq!(evaluate(&request, &resource, Method::Retrieve), Outcome::Proceed);
        assert!(!if_range(EXACT, &resource));
    }

    #[test]
    fn if_range_wants_a_strong_tag_or_the_exact_date() {
        let table: [(&[u8], bool); 8] = [
            (b"\"a,b\"", true),
            (b" \"a,b\"\t", true),
            (b"W/\"a,b\"", false),
            (b"\"x\"", false),
            (EXACT, true),
            (BEFORE, false),
            (AFTER, false),
            (b"*", false),
        ];
        for (header, expected) in table {
            assert_eq!(if_range(header, &there_is()), expected, "{}", header.escape_ascii());
        }
    }

    #[test]
    fn a_time_outside_of_what_a_date_can_say_is_the_nearest_that_it_can() {
        assert_eq!(http_date(Timestamp::MIN), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert!(http_date(Timestamp::MAX).contains(" Dec 9999 "));
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"*".to_vec()),
            Just(b"\"a,b\"".to_vec()),
            Just(EXACT.to_vec()),
            prop::collection::vec(any::<u8>(), 0..30),
        ]
    }

    proptest! {
        #[test]
        fn only_a_retrieval_is_told_that_nothing_changed(
            tags in prop::collection::vec(value(), 0..3),
            since in prop::option::of(value()),
            retrieve in any::<bool>(),
        ) {
            let request = Conditions {
                if_none_match: tags.iter().map(Vec::as_slice).collect(),
                if_modified_since: since.as_deref(),
                ..Conditions::default()
            };
            let method = if retrieve { Method::Retrieve } else { Method::Change };
            match evaluate(&request, &there_is(), method) {
                Outcome::NotModified => prop_assert!(retrieve),
                Outcome::PreconditionFailed => prop_assert!(!retrieve),
                Outcome::Proceed => {}
            }
        }

        #[test]
        fn a_date_comes_back_as_it_went(seconds in 0..253_402_000_000_i64) {
            let time = Timestamp::from_second(seconds).expect("within the years of a date");
            prop_assert_eq!(parse_http_date(&http_date(time)), Some(time));
        }
    }
}
