//! Rows as bytes: the first says how the rest is to be read, so that what an earlier version wrote reads for ever.
//!
//! Version 1 is JSON. Rows of which there are one or more for each asset are written as version 2: their members one after the other
//! without names, and each in as few bytes as it needs. They take a third of the room, and less time. If such a row gets one more member
//! it gets another version, and this one is read as before.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::owed::OwedRow;
use super::resumable::PartRow;
use super::rows::{ClaimRow, HeadRow, RevokedRow};
use crate::error::StorageError;
use crate::index::codec;
use crate::record::{ArtifactRecord, Hold, UrlRecord};
use crate::resumable::Resumable;

mod events;
mod held;
#[cfg(test)]
mod tests;

/// The first byte of a row whose members have no names.
const PACKED: u8 = 2;

/// A row of the index.
pub(super) trait Row: Sized {
    /// Adds the row's bytes.
    fn write(&self, out: &mut Vec<u8>);

    /// The row that `write` has written, or an earlier version of it; `what` names it in the error.
    fn read(what: &str, raw: &[u8]) -> Result<Self, StorageError>;
}

/// Rows that are few, or short.
macro_rules! in_json {
    ($($row:ty),*) => {$(
        impl Row for $row {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&codec::encode(self));
            }

            fn read(what: &str, raw: &[u8]) -> Result<Self, StorageError> {
                codec::decode(what, raw)
            }
        }
    )*};
}

in_json!(ArtifactRecord, ClaimRow, HeadRow, Hold, OwedRow, PartRow, Resumable, RevokedRow, UrlRecord, u32, u64);

/// A row whose members have no names. Version 1 has them as JSON.
pub(super) trait Packed: DeserializeOwned {
    fn pack(&self, out: &mut Pack<'_>);
    fn unpack(raw: &mut Unpack<'_>) -> Option<Self>;
}

impl<T: Packed> Row for T {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(PACKED);
        self.pack(&mut Pack(out));
    }

    fn read(what: &str, raw: &[u8]) -> Result<Self, StorageError> {
        let Some((&PACKED, rest)) = raw.split_first() else {
            return codec::decode(what, raw);
        };
        let mut rest = Unpack(rest);
        let row = T::unpack(&mut rest).filter(|_| rest.0.is_empty());
        row.ok_or_else(|| codec::corrupt(format!("{what}: its members do not read")))
    }
}

/// Members on their way into a row.
#[derive(Debug)]
pub(super) struct Pack<'o>(&'o mut Vec<u8>);

impl Pack<'_> {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits in a byte, the lowest first; all but the last have the highest bit set.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// The same, of either sign: small ones are short on both sides of 0.
    pub(super) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub(super) fn time(&mut self, at: Timestamp) {
        self.signed(at.as_second());
        self.signed(at.subsec_nanosecond().into());
    }

    /// As JSON; the empty object, which is what most have, as nothing.
    pub(super) fn json(&mut self, value: &Value) {
        match value.as_object().is_some_and(serde_json::Map::is_empty) {
            true => self.text(""),
            false => self.text(&value.to_string()),
        }
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, pack: impl FnOnce(&mut Self, T)) {
        self.byte(value.is_some().into());
        if let Some(value) = value {
            pack(self, value);
        }
    }
}

/// What is left of a row. Nothing of one that does not read.
#[derive(Debug)]
pub(super) struct Unpack<'r>(&'r [u8]);

impl<'r> Unpack<'r> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    pub(super) fn number_as<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn text(&mut self) -> Option<&'r str> {
        let length = self.number_as()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    pub(super) fn string(&mut self) -> Option<String> {
        self.text().map(str::to_owned)
    }

    /// A name that is written as its text.
    pub(super) fn name<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.text()?.parse().ok()
    }

    pub(super) fn time(&mut self) -> Option<Timestamp> {
        Timestamp::new(self.signed()?, self.signed()?.try_into().ok()?).ok()
    }

    pub(super) fn json(&mut self) -> Option<Value> {
        match self.text()? {
            "" => Some(Value::Object(serde_json::Map::new())),
            text => serde_json::from_str(text).ok(),
        }
    }

    /// `None`, that it does not read; `Some(None)`, that there is none.
    pub(super) fn option<T>(&mut self, unpack: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.byte()? {
            0 => Some(None),
            1 => unpack(self).map(Some),
            _ => None,
        }
    }
}
