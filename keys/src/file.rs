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
//!
//! Once the audit key was rotated, `version` is 2 and `"auditedBefore": [{ "kid": "a7k…", "publicKey": "<43 characters>" }]` has the
//! public halves of those before it, oldest first. A ring without any is still written as version 1.

use std::path::Path;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::audit::{AuditKey, AuditPublicKey};
use crate::error::place_of;
use crate::key::UrlKey;
use crate::private_file;
use crate::secret::Secret;
use crate::{KeyError, Ring};

/// The newest form, that of a ring whose audit key was rotated.
const VERSION: u64 = 2;

/// The form of a ring that has its first audit key.
const FIRST_VERSION: u64 = 1;

/// More than a key takes in the file, in bytes, so that the buffer never grows: that would leave unwiped copies behind.
const ROOM_PER_KEY: usize = 512;

impl Ring {
    /// The ring in that file. A file that others can read is refused; [`KeyError::Missing`] tells that there is none.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let bytes = private_file::read(path)?;
        let not_a_ring = |fault: String| KeyError::NotARing { path: path.to_owned(), fault };
        let Version { version } = serde_json::from_slice(&bytes).map_err(|error| not_a_ring(place_of(&error)))?;
        if !(FIRST_VERSION..=VERSION).contains(&version) {
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
        let mut bytes =
            Zeroizing::new(Vec::with_capacity(ROOM_PER_KEY * (file.keys.len() + file.audited_before.len() + 2)));
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
    #[serde(rename = "auditedBefore", default, skip_serializing_if = "Vec::is_empty")]
    audited_before: Vec<AuditPublicEntry>,
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

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AuditPublicEntry {
    kid: String,
    public_key: String,
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
        let public = |key: &AuditPublicKey| AuditPublicEntry {
            kid: key.kid().to_owned(),
            public_key: BASE64URL_NOPAD.encode(key.as_bytes()),
        };
        let audited_before: Vec<_> = ring.audited_before().iter().map(public).collect();
        Self {
            version: if audited_before.is_empty() { FIRST_VERSION } else { VERSION },
            keys: ring.url_keys().map(entry).collect(),
            audit: AuditKeyEntry {
                kid: audit.public.kid().to_owned(),
                created_at: audit.created_at,
                seed: audit.seed.clone(),
            },
            audited_before,
        }
    }

    fn into_ring(self) -> Result<Ring, &'static str> {
        if self.keys.is_empty() {
            return Err("it has no key");
        }
        let mut kids: Vec<_> = self.keys.iter().map(|key| key.kid.as_str()).collect();
        kids.push(&self.audit.kid);
        kids.extend(self.audited_before.iter().map(|key| key.kid.as_str()));
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
        let public = |entry: AuditPublicEntry| {
            let point = BASE64URL_NOPAD.decode(entry.public_key.as_bytes()).ok()?;
            (point.len() == 32).then(|| AuditPublicKey::new(entry.kid, point))
        };
        let before: Option<Vec<_>> = self.audited_before.into_iter().map(public).collect();
        Ok(Ring::from_keys(keys, audit, before.ok_or("a public key is not 32 bytes in base64url")?))
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
    fn a_ring_remembers_its_earlier_audit_keys_and_one_without_any_is_read_by_older_programs() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("ring.json");
        let ring = ring().rotate_audit(NOW).expect("randomness");
        ring.save_new(&path).expect("it was not there");
        let again = Ring::load(&path).expect("it was just saved");

        assert!(again.audit_public_keys().eq(ring.audit_public_keys()));
        assert_eq!(again.audit_public_keys().count(), 2);
        assert_eq!(again.to_json(), ring.to_json());
        let version = |ring: &Ring| serde_json::from_slice::<Value>(&ring.to_json()).expect("JSON")["version"].clone();
        let before = again.audited_before()[0].kid().to_owned();
        assert_eq!(
            (version(&again), version(&again.retire(&before, NOW).expect("it signs nothing"))),
            (json!(2), json!(1))
        );
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
        let ring = Ring::from_keys((0..50).map(key).collect(), audit, vec![AuditPublicKey::new(long(), [0; 32]); 10]);
        let json = ring.to_json();
        assert_eq!(json.capacity(), ROOM_PER_KEY * 62);
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
            ring["version"] = json!(3);
            ring["hardware"] = json!("yes");
        });
        assert!(matches!(error, KeyError::Version { found: 3, known: 2, .. }), "{error}");
    }

    #[test]
    fn a_ring_that_is_not_whole_is_refused() {
        let secret = "SECRETSECRETSECRETSECRETSECRETSECRETSECRETSE";
        let changes: [fn(&mut Value); 12] = [
            |ring| ring["auditedBefore"] = json!([{"kid": ring["audit"]["kid"], "publicKey": "A".repeat(43)}]),
            |ring| ring["auditedBefore"] = json!([{"kid": "a7", "publicKey": "AAAA"}]),
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
