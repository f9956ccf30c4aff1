//! Sizes and lengths of time with their units: `"256 KiB"`, `"30d"`. A bare `"0"` means none or off.

use std::fmt;

use jiff::SignedDuration;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A length of time; never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub SignedDuration);

/// Nobody means a longer one: it is a slip of the unit, and dates as we write them end in the year 9999.
const LONGEST: Span = Span::hours(24 * 365_250);

impl Size {
    /// That many KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    /// That many MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    fn parse(raw: &str) -> Result<Self, String> {
        if raw.trim() == "0" {
            return Ok(Self(0));
        }
        if raw.trim().bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("{raw:?} has no unit: write \"{} KiB\" or another size", raw.trim()));
        }
        let size: bytesize::ByteSize = raw.parse().map_err(|_| format!("{raw:?} is not a size such as \"256 KiB\""))?;
        Ok(Self(size.as_u64()))
    }
}

impl Span {
    /// That many seconds.
    pub const fn seconds(n: i64) -> Self {
        Self(SignedDuration::from_secs(n))
    }

    /// That many hours.
    pub const fn hours(n: i64) -> Self {
        Self(SignedDuration::from_secs(n * 3600))
    }

    /// The same for the standard library.
    pub fn std(self) -> std::time::Duration {
        self.0.unsigned_abs()
    }

    /// Whole seconds.
    pub fn as_secs(self) -> i64 {
        self.0.as_secs()
    }

    fn parse(raw: &str) -> Result<Self, String> {
        if raw.trim() == "0" {
            return Ok(Self(SignedDuration::ZERO));
        }
        let wrong = || format!("{raw:?} is not a length of time such as \"30d\" or \"60s\"");
        let span = humantime::parse_duration(raw).map_err(|_| wrong())?;
        let span = SignedDuration::try_from(span).map_err(|_| wrong())?;
        if span > LONGEST.0 {
            return Err(format!("{raw:?} is longer than a thousand years: say what is meant"));
        }
        Ok(Self(span))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
            if self.0 != 0 && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{} {unit}", self.0 >> shift);
            }
        }
        if self.0 == 0 { f.write_str("0") } else { write!(f, "{} B", self.0) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        for (unit, length) in [("d", 86_400), ("h", 3_600), ("m", 60)] {
            if seconds != 0 && seconds % length == 0 && self.0.subsec_nanos() == 0 {
                return write!(f, "{}{unit}", seconds / length);
            }
        }
        write!(f, "{}", humantime::format_duration(self.std()))
    }
}

/// Text with a unit, or the number 0, which needs none.
struct WithUnit<T>(fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for WithUnit<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text with a unit, such as \"256 KiB\" or \"60s\"")
    }

    fn visit_str<E: de::Error>(self, raw: &str) -> Result<T, E> {
        (self.0)(raw).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(WithUnit($name::parse))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

as_text!(Size, Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, right) in [("256 KiB", 262_144), ("2 GiB", 2 << 30), ("0", 0), ("5 B", 5), ("1 MB", 1_000_000)] {
            assert_eq!(Size::parse(text), Ok(Size(right)), "{text}");
        }
        for wrong in ["", "12", "-1 KiB", "many", "KiB"] {
            assert!(Size::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Size::kib(256).to_string(), "256 KiB");
    }

    #[test]
    fn lengths_of_time_have_units() {
        for (text, right) in [("30d", 30 * 86_400), ("24h", 86_400), ("0s", 0), ("0", 0), ("90m", 5_400)] {
            assert_eq!(Span::parse(text), Ok(Span::seconds(right)), "{text}");
        }
        for wrong in ["", "12", "-1s", "soon", "d", "1001y", "18446744073709551615s", "99999999999999999999s", "1e18s"]
        {
            assert!(Span::parse(wrong).is_err(), "{wrong}");
        }
        for text in ["30d", "24h", "90m", "61s", "1000y"] {
            let span = Span::parse(text).expect("a span");
            assert_eq!(Span::parse(&span.to_string()), Ok(span));
        }
    }
}
