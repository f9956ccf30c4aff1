//! The ring as a file.
//!
//! ```json
//! {
//!   "version": 1,
//!   "keys": [
//!     { "kid": "k4fq2m7ab", "createdAt": 1796000000, "activatesAt": 1796000000, "secret": "<43 characters>" }
//!   ],
//!   "audit": { "kid": "ah2zq6xuy", "createdAt": 1796000000, "seed": "<43 characters>" }
//! }
//! ```
//!
//! `keys` are the URL keys, oldest first; their order is the order of rotation, and the newest whose `activatesAt` has come
//! signs. Times are unix seconds. `secret` and `seed` are 32 bytes in base64url without padding; each key has its own, and
//! none is derived from another. `kid` is 1..64 of `[A-Za-z0-9_-]`. Unknown members are refused: what this program does not
//! understand it would drop at the next rotation. A change of form raises `version`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::audit::AuditKey;
use crate::error::place_of;
use crate::key::UrlKey;
use crate::private_file;
use crate::secret::Secret;
use crate::{KeyError, Ring};

const VERSION: u64 = 1;

/// More than a key takes in the file, in bytes, so that the buffer never grows: that would leave unwiped copies behind.
const ROOM_PER_KEY: usize = 512;

impl Ring {
    /// The ring in that file. A file that others can read is refused; [`KeyError::Missing`] tells that there is none.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let bytes = private_file::read(path)?;
        let not_a_ring = |fault: String| KeyError::NotARing { path: path.to_owned(), fault };
        let Version { version } = serde_json::from_slice(&bytes).map_err(|error| not_a_ring(place_of(&error)))?;
        if version != VERSION {
            return Err(KeyError::Version { path: path.to_owned(), found: version, known: VERSION });
        }
        let file: RingFile = serde_json::from_slice(&bytes).map_err(|error| not_a_ring(place_of(&error)))?;
        file.into_ring().map_err(|fault| not_a_ring(fault.to_owned()))
    }

    /// Writes the ring to a file that is not there yet, with mode 0600; a file that is there is left alone.
    pub fn save_new(&self, path: &Path) -> Result<(), KeyError> {
        private_file::create(path, &self.to_json())
    }

    /// Puts the ring in the place of the file: a reader, or a crash, finds the old ring or the new one, never half of one.
    pub fn save(&self, path: &Path) -> Result<(), KeyError> {
        private_file::replace(path, &self.to_json())
    }

    fn to_json(&self) -> Zeroizing<Vec<u8>> {
        let file = RingFile::of(self);
        let mut bytes = Zeroizing::new(Vec::with_capacity(ROOM_PER_KEY * (file.keys.len() + 2)));
        serde_json::to_writer_pretty(&mut *bytes, &file).expect("strings and numbers are always JSON");
        bytes.push(b'\n');
        bytes
    }
}

/// The one member that every version has.
#[derive(Deserialize)]
struct Version {
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RingFile {
    version: u64,
    keys: Vec<UrlKeyEntry>,
    audit: AuditKeyEntry,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UrlKeyEntry {
    kid: String,
    created_at: i64,
    activates_at: i64,
    secret: Secret,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AuditKeyEntry {
    kid: String,
    created_at: i64,
    seed: Secret,
}

impl RingFile {
    fn of(ring: &Ring) -> Self {
        let entry = |key: &UrlKey| UrlKeyEntry {
            kid: key.kid.clone(),
            created_at: key.created_at,
            activates_at: key.activates_at,
            secret: key.secret.clone(),
        };
        let audit = ring.audit_key();
        Self {
            version: VERSION,
            keys: ring.url_keys().map(entry).collect(),
            audit: AuditKeyEntry {
                kid: audit.public.kid().to_owned(),
                created_at: audit.created_at,
                seed: audit.seed.clone(),
            },
        }
    }

    fn into_ring(self) -> Result<Ring, &'static str> {
        if self.keys.is_empty() {
            return Err("it has no key");
        }
        let mut kids: Vec<_> = self.keys.iter().map(|key| key.kid.as_str()).collect();
        kids.push(&self.audit.kid);
        if !kids.iter().all(|kid| is_kid(kid)) {
            return Err("a kid is not 1..64 of [A-Za-z0-9_-]");
        }
        kids.sort_unstable();
        if kids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("two keys have the same kid");
        }
        let key = |key: UrlKeyEntry| UrlKey::new(key.kid, key.created_at, key.activates_at, key.secret);
        let keys = self.keys.into_iter().map(key).collect();
        let audit = AuditKey::new(self.audit.kid, self.audit.created_at, self.audit.seed);
        Ok(Ring::from_keys(keys, audit))
    }
}

/// Characters that need no escape in the token's header.
fn is_kid(kid: &str) -> bool {
    (1..=64).contains(&kid.len()) && kid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn ring() -> Ring {
        Ring::generate(NOW).expect("randomness").rotate(NOW, 60).expect("randomness")
    }

    #[test]
    fn a_ring_is_read_back_as_it_was_saved() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("ring.json");
        let ring = ring();
        ring.save_new(&path).expect("it was not there");
        let again = Ring::load(&path).expect("it was just saved");

        assert_eq!(again.keys(NOW), ring.keys(NOW));
        assert_eq!(again.audit_public_key(), ring.audit_public_key());
        assert_eq!(again.to_json(), ring.to_json());
    }

    #[test]
    fn a_rotated_ring_takes_the_place_of_the_old_one() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("ring.json");
        ring().save_new(&path).expect("it was not there");
        let rotated = Ring::load(&path).expect("it was just saved").rotate(NOW, 0).expect("randomness");
        rotated.save(&path).expect("it can be replaced");

        assert_eq!(Ring::load(&path).expect("it was just saved").keys(NOW), rotated.keys(NOW));
        assert_eq!(fs::read_dir(folder.path()).expect("it is there").count(), 1);
    }

    #[test]
    fn the_buffer_never_grows() {
        let long = || "k".repeat(64);
        let key = |n: i64| {
            let secret = Secret::generate().expect("randomness");
            UrlKey::new(long(), i64::MIN + n, i64::MIN, secret)
        };
        let audit = AuditKey::new(long(), i64::MIN, Secret::generate().expect("randomness"));
        let ring = Ring::from_keys((0..50).map(key).collect(), audit);
        let json = ring.to_json();
        assert_eq!(json.capacity(), ROOM_PER_KEY * 52);
        assert!(json.len() < json.capacity());
    }

    #[test]
    fn a_second_first_ring_is_refused() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("ring.json");
        let ring = ring();
        ring.save_new(&path).expect("it was not there");

        let other = Ring::generate(NOW).expect("randomness");
        assert!(matches!(other.save_new(&path), Err(KeyError::Exists { .. })));
        assert_eq!(Ring::load(&path).expect("it is still there").keys(NOW), ring.keys(NOW));
    }

    #[test]
    fn a_ring_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("ring.json");
        ring().save_new(&path).expect("it was not there");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("the test can chmod");

        assert!(matches!(Ring::load(&path), Err(KeyError::OpenToOthers { mode: 0o644, .. })));
    }

    #[test]
    fn a_missing_ring_is_told_from_a_broken_one() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("ring.json");
        assert!(matches!(Ring::load(&path), Err(KeyError::Missing { .. })));

        private_file::create(&path, b"").expect("it was not there");
        assert!(matches!(Ring::load(&path), Err(KeyError::NotARing { .. })));
    }

    /// The saved form with one change, and what loading it says.
    fn load_changed(change: impl FnOnce(&mut Value)) -> KeyError {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("ring.json");
        let mut value: Value = serde_json::from_slice(&ring().to_json()).expect("it is JSON");
        change(&mut value);
        private_file::create(&path, value.to_string().as_bytes()).expect("it was not there");
        Ring::load(&path).expect_err("the change breaks it")
    }

    #[test]
    fn a_newer_version_is_named() {
        let error = load_changed(|ring| {
            ring["version"] = json!(2);
            ring["hardware"] = json!("yes");
        });
        assert!(matches!(error, KeyError::Version { found: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn a_ring_that_is_not_whole_is_refused() {
        let secret = "SECRETSECRETSECRETSECRETSECRETSECRETSECRETSE";
        let changes: [fn(&mut Value); 10] = [
            |ring| ring["keys"] = json!([]),
            |ring| ring["keys"][0]["kid"] = ring["keys"][1]["kid"].clone(),
            |ring| ring["keys"][0]["kid"] = ring["audit"]["kid"].clone(),
            |ring| ring["keys"][0]["kid"] = json!(""),
            |ring| ring["keys"][0]["kid"] = json!("a\"b"),
            |ring| ring["keys"][0]["secret"] = json!("SECRETSECRETSECRETSECRETSECRETSECRETSECRETSE"),
            |ring| ring["keys"][0]["note"] = json!("mine"),
            |ring| ring["keys"][0]["activatesAt"] = json!("soon"),
            |ring| ring["audit"]["seed"] = Value::Null,
            |ring| ring["audit"] = Value::Null,
        ];
        for change in changes {
            let error = load_changed(change);
            assert!(matches!(error, KeyError::NotARing { .. }), "{error}");
            assert!(!error.to_string().contains(secret), "{error}");
        }
    }
}
