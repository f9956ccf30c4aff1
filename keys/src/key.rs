//! One key of the ring: it signs and verifies the URLs of every tenant, each under a key derived for that tenant alone.

use std::collections::HashMap;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use data_encoding::BASE64URL_NOPAD;
use ring::{hkdf, hmac};

use crate::KeyError;
use crate::secret::{Secret, new_kid};

/// What a derived key is for. It is of fixed length and comes first, so that no tenant's name can be read as part of it.
const PURPOSE: &[u8] = b"mediakeep/url/v1";

/// How many derived keys are remembered per ring key: about 1 MiB. More tenants than that, and the cache starts over; a
/// tenant that is not in it costs one derivation, some 2 µs.
const REMEMBERED_TENANTS: usize = 4096;

/// A key of the ring, with what was computed from it once.
pub(crate) struct UrlKey {
    pub(crate) kid: String,
    pub(crate) created_at: i64,
    pub(crate) activates_at: i64,
    pub(crate) secret: Secret,
    /// The first part of each token that this key makes, base64url: a token under this key begins with it or is refused.
    header: String,
    extracted: hkdf::Prk,
    tenants: RwLock<HashMap<String, hmac::Key>>,
}

impl UrlKey {
    pub(crate) fn generate(created_at: i64, activates_at: i64) -> Result<Self, KeyError> {
        Ok(Self::new(new_kid('k')?, created_at, activates_at, Secret::generate()?))
    }

    pub(crate) fn new(kid: String, created_at: i64, activates_at: i64, secret: Secret) -> Self {
        // RFC 5869 without salt: the secret is 32 bytes of chance already, and a salt would be one more thing to keep.
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(secret.expose());
        let header = BASE64URL_NOPAD.encode(header_json(&kid).as_bytes());
        Self { kid, created_at, activates_at, secret, header, extracted, tenants: RwLock::default() }
    }

    pub(crate) fn header(&self) -> &str {
        &self.header
    }

    pub(crate) fn sign(&self, tenant: &str, message: &[u8]) -> hmac::Tag {
        if let Some(key) = self.read_tenants().get(tenant) {
            return hmac::sign(key, message);
        }
        let key = self.derive(tenant);
        let tag = hmac::sign(&key, message);
        self.remember(tenant, key);
        tag
    }

    /// Whether `mac` is this key's for that tenant, in constant time.
    pub(crate) fn verify(&self, tenant: &str, message: &[u8], mac: &[u8]) -> bool {
        if let Some(key) = self.read_tenants().get(tenant) {
            return hmac::verify(key, message, mac).is_ok();
        }
        let key = self.derive(tenant);
        let holds = hmac::verify(&key, message, mac).is_ok();
        if holds {
            // Only now is the tenant's name more than a stranger's invention.
            self.remember(tenant, key);
        }
        holds
    }

    fn derive(&self, tenant: &str) -> hmac::Key {
        let info = [PURPOSE, tenant.as_bytes()];
        self.extracted
            .expand(&info, hmac::HMAC_SHA256)
            .expect("HKDF gives up to 255 hashes, and one is asked for")
            .into()
    }

    fn remember(&self, tenant: &str, key: hmac::Key) {
        // A thread that panicked while it held the lock left a map of whole entries: go on with it.
        let mut tenants = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= REMEMBERED_TENANTS {
            tenants.clear();
        }
        tenants.insert(tenant.to_owned(), key);
    }

    fn read_tenants(&self) -> std::sync::RwLockReadGuard<'_, HashMap<String, hmac::Key>> {
        self.tenants.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kid)
    }
}

/// Everything of the header before the `kid`, which is the only thing in it that differs between tokens.
pub(crate) const HEADER_HEAD: &str = r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":""#;
pub(crate) const HEADER_TAIL: &str = r#""}"#;

fn header_json(kid: &str) -> String {
    format!("{HEADER_HEAD}{kid}{HEADER_TAIL}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> UrlKey {
        UrlKey::generate(0, 0).expect("randomness")
    }

    /// HKDF written out with HMAC alone (RFC 5869 §2), so that a change of library, salt or info is seen here.
    fn derived_by_hand(secret: &[u8], tenant: &str) -> hmac::Tag {
        let extracted = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &[0; 32]), secret);
        let mut info = b"mediakeep/url/v1".to_vec();
        info.extend_from_slice(tenant.as_bytes());
        info.push(1);
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, extracted.as_ref()), &info)
    }

    #[test]
    fn the_derivation_is_the_one_of_the_rfc() {
        let key = key();
        let derived = derived_by_hand(key.secret.expose(), "acme");
        let expected = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()), b"message");

        assert_eq!(key.sign("acme", b"message").as_ref(), expected.as_ref());
    }

    #[test]
    fn one_tenants_mac_is_not_anothers() {
        let key = key();
        let mac = key.sign("acme", b"message");

        assert!(key.verify("acme", b"message", mac.as_ref()));
        for other in ["Acme", "acme ", "acm", "", "acmeacme", "umbrella"] {
            assert!(!key.verify(other, b"message", mac.as_ref()), "{other}");
        }
    }

    #[test]
    fn strangers_take_no_place_in_the_cache() {
        let key = key();
        assert!(!key.verify("invented", b"message", &[0; 32]));
        assert_eq!(key.read_tenants().len(), 0);

        key.sign("acme", b"message");
        assert_eq!(key.read_tenants().len(), 1);
    }

    #[test]
    fn the_cache_is_bounded_and_starting_over_changes_nothing() {
        let key = key();
        let first = key.sign("tenant-0", b"message");
        for n in 0..=REMEMBERED_TENANTS {
            key.sign(&format!("tenant-{n}"), b"message");
        }

        assert!(key.read_tenants().len() <= REMEMBERED_TENANTS);
        assert_eq!(key.sign("tenant-0", b"message").as_ref(), first.as_ref());
    }
}
