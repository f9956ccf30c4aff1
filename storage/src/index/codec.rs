//! How a record lies in an index: one byte for the version, then JSON.
//!
//! A member that a later version adds has a default, so the version changes only when that is not enough; then `decode` learns the
//! new one and keeps the old ones, and a program that meets a version from the future says so instead of guessing.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StorageError;

/// The version that is written; every version from 1 to this one is read.
const VERSION: u8 = 1;

/// The record as bytes.
pub(super) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let mut raw = vec![VERSION];
    serde_json::to_writer(&mut raw, record)
        .expect("records are plain data with text for keys, and a Vec takes every byte");
    raw
}

/// The record that `encode` wrote; `what` names it in the error.
pub(super) fn decode<T: DeserializeOwned>(what: &str, raw: &[u8]) -> Result<T, StorageError> {
    let Some((version, json)) = raw.split_first() else {
        return Err(corrupt(format!("{what}: empty")));
    };
    if *version != VERSION {
        return Err(corrupt(format!("{what}: written as version {version}, and this program reads up to {VERSION}")));
    }
    serde_json::from_slice(json).map_err(|error| corrupt(format!("{what}: {error}")))
}

/// The error for a record that does not read.
pub(super) fn corrupt(reason: String) -> StorageError {
    StorageError::Corrupt { store: "index", reason }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Row {
        name: String,
        #[serde(default)]
        added_later: Option<u8>,
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let row = Row { name: "a".into(), added_later: Some(1) };

        assert_eq!(decode::<Row>("row", &encode(&row)).expect("our own record reads"), row);
    }

    #[test]
    fn an_old_record_reads_without_the_members_that_came_later() {
        let row: Row = decode("row", b"\x01{\"name\":\"a\"}").expect("an old record reads");

        assert_eq!(row, Row { name: "a".into(), added_later: None });
    }

    #[test]
    fn a_record_from_the_future_is_refused_with_its_name() {
        let refused = decode::<Row>("row", b"\x02{}").expect_err("no such version yet");

        assert!(refused.to_string().contains("row: written as version 2"), "{refused}");
        assert!(decode::<Row>("row", b"").is_err());
    }
}
