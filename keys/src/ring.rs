//! The ring: which key signs, which only verify, and how one follows the other.
//!
//! A ring is a snapshot that never changes. Rotating and retiring give a new one, which the caller saves and swaps in.

use std::sync::Arc;

use crate::KeyError;
use crate::audit::{AuditKey, AuditPublicKey};
use crate::key::UrlKey;

/// The keys that URLs and audit signatures hang on. `Debug` shows names alone; secrets are wiped with the last copy.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Oldest first, never empty. A key that a rotation kept is shared with the ring before it, and so is its cache.
    keys: Vec<Arc<UrlKey>>,
    audit: Arc<AuditKey>,
    /// What earlier audit keys signed is verified by these, oldest first: their secret halves are gone.
    audited_before: Vec<AuditPublicKey>,
}

/// What `keys list` shows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// The key's name, which each of its tokens carries.
    pub kid: String,
    /// When it was made, in unix seconds.
    pub created_at: i64,
    /// From when on it signs, in unix seconds.
    pub activates_at: i64,
    /// What it does at the time that was asked about.
    pub role: Role,
}

/// What a key does at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It signs new URLs and verifies its own.
    Signing,
    /// It verifies already, and will sign once its time has come: every replica has it by then.
    Pending,
    /// It verifies what it once signed.
    VerifyOnly,
}

impl Ring {
    /// The first ring: one URL key that signs at once, and one audit key.
    pub fn generate(now: i64) -> Result<Self, KeyError> {
        let key = UrlKey::generate(now, now)?;
        Ok(Self::from_keys(vec![key], AuditKey::generate(now)?, Vec::new()))
    }

    /// The caller has seen to it that there is a key and that no two share a name.
    pub(crate) fn from_keys(keys: Vec<UrlKey>, audit: AuditKey, audited_before: Vec<AuditPublicKey>) -> Self {
        Self { keys: keys.into_iter().map(Arc::new).collect(), audit: Arc::new(audit), audited_before }
    }

    /// A ring with one key more. It verifies at once and signs from `now + activate_after_seconds` on, so that by then
    /// every replica can verify what it signs; until then the key before it signs.
    ///
    /// The newest key whose time has come is the one that signs, so a rotation with 0 overtakes one that is still pending.
    pub fn rotate(&self, now: i64, activate_after_seconds: i64) -> Result<Self, KeyError> {
        let activates_at = now.saturating_add(activate_after_seconds.max(0));
        let mut key = UrlKey::generate(now, activates_at)?;
        while self.knows(&key.kid) {
            key = UrlKey::generate(now, activates_at)?;
        }
        let mut keys = self.keys.clone();
        keys.push(Arc::new(key));
        Ok(Self { keys, ..self.clone() })
    }

    /// A ring with another audit key, which signs at once. Of the one before it the secret half is dropped; the public half stays, so
    /// that what it signed can still be verified.
    pub fn rotate_audit(&self, now: i64) -> Result<Self, KeyError> {
        let mut audit = AuditKey::generate(now)?;
        while self.audit_public_keys().any(|key| key.kid() == audit.public.kid()) {
            audit = AuditKey::generate(now)?;
        }
        let mut audited_before = self.audited_before.clone();
        audited_before.push(self.audit.public.clone());
        Ok(Self { audit: Arc::new(audit), audited_before, ..self.clone() })
    }

    /// A ring without that key: every URL that it signed is dead, and of an earlier audit key every document. Refuses a key that signs; the
    /// only key always does.
    ///
    /// How many live URLs hang on the key is for the caller to count.
    pub fn retire(&self, kid: &str, now: i64) -> Result<Self, KeyError> {
        if self.signing_kid(now) == kid || self.audit_kid() == kid {
            return Err(KeyError::StillSigning { kid: kid.to_owned() });
        }
        if self.audited_before.iter().any(|key| key.kid() == kid) {
            let kept = self.audited_before.iter().filter(|key| key.kid() != kid).cloned().collect();
            return Ok(Self { audited_before: kept, ..self.clone() });
        }
        if !self.knows(kid) {
            return Err(KeyError::UnknownKid { kid: kid.to_owned() });
        }
        let keys = self.keys.iter().filter(|key| key.kid != kid).cloned().collect();
        Ok(Self { keys, ..self.clone() })
    }

    /// Every URL key with what it does at `now`, oldest first.
    #[must_use]
    pub fn keys(&self, now: i64) -> Vec<KeyInfo> {
        let signing = self.signing_position(now);
        let info = |(position, key): (usize, &Arc<UrlKey>)| KeyInfo {
            kid: key.kid.clone(),
            created_at: key.created_at,
            activates_at: key.activates_at,
            role: match position.cmp(&signing) {
                std::cmp::Ordering::Less => Role::VerifyOnly,
                std::cmp::Ordering::Equal => Role::Signing,
                std::cmp::Ordering::Greater => Role::Pending,
            },
        };
        self.keys.iter().enumerate().map(info).collect()
    }

    /// The key that new URLs are made with at `now`.
    #[must_use]
    pub fn signing_kid(&self, now: i64) -> &str {
        &self.keys[self.signing_position(now)].kid
    }

    /// Whether URLs of that key can be verified.
    #[must_use]
    pub fn knows(&self, kid: &str) -> bool {
        self.url_key(kid).is_some()
    }

    /// The name of the audit key.
    #[must_use]
    pub fn audit_kid(&self) -> &str {
        self.audit.public.kid()
    }

    /// The audit key's Ed25519 signature over `message`: 64 bytes, the same for the same message.
    #[must_use]
    pub fn sign_audit(&self, message: &[u8]) -> Vec<u8> {
        self.audit.sign(message)
    }

    /// The public half of the audit key, to publish.
    #[must_use]
    pub fn audit_public_key(&self) -> &AuditPublicKey {
        &self.audit.public
    }

    /// The public halves of all audit keys that the ring knows, the one that signs first, then the newest: what is published.
    pub fn audit_public_keys(&self) -> impl Iterator<Item = &AuditPublicKey> {
        std::iter::once(&self.audit.public).chain(self.audited_before.iter().rev())
    }

    /// Whether `signature` is this ring's audit key's over exactly `message`.
    #[must_use]
    pub fn verify_audit(&self, message: &[u8], signature: &[u8]) -> bool {
        self.audit.public.verify(message, signature)
    }

    pub(crate) fn url_key(&self, kid: &str) -> Option<&UrlKey> {
        self.url_keys().find(|key| key.kid == kid)
    }

    pub(crate) fn url_keys(&self) -> impl Iterator<Item = &UrlKey> {
        self.keys.iter().map(AsRef::as_ref)
    }

    pub(crate) fn audit_key(&self) -> &AuditKey {
        &self.audit
    }

    pub(crate) fn audited_before(&self) -> &[AuditPublicKey] {
        &self.audited_before
    }

    /// The newest key whose time has come. A clock that went back before them all finds the oldest, rather than none.
    fn signing_position(&self, now: i64) -> usize {
        self.keys.iter().rposition(|key| key.activates_at <= now).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn roles(ring: &Ring, now: i64) -> Vec<Role> {
        ring.keys(now).into_iter().map(|key| key.role).collect()
    }

    fn kid(ring: &Ring, position: usize) -> String {
        ring.keys(NOW)[position].kid.clone()
    }

    #[test]
    fn the_first_key_signs_at_once() {
        let ring = Ring::generate(NOW).expect("randomness");
        assert_eq!(roles(&ring, NOW), [Role::Signing]);
        assert!(ring.knows(ring.signing_kid(NOW)));
    }

    #[test]
    fn a_new_key_takes_over_at_its_time_and_not_before() {
        let first = Ring::generate(NOW).expect("randomness");
        let ring = first.rotate(NOW, 60).expect("randomness");

        assert_eq!(ring.signing_kid(NOW + 59), first.signing_kid(NOW));
        assert_eq!(roles(&ring, NOW + 59), [Role::Signing, Role::Pending]);
        assert_eq!(roles(&ring, NOW + 60), [Role::VerifyOnly, Role::Signing]);
        assert!(ring.knows(first.signing_kid(NOW)));
    }

    #[test]
    fn a_rotation_with_zero_overtakes_one_that_is_pending() {
        let ring = Ring::generate(NOW).expect("randomness");
        let ring = ring.rotate(NOW, 3600).expect("randomness").rotate(NOW, 0).expect("randomness");

        assert_eq!(roles(&ring, NOW), [Role::VerifyOnly, Role::VerifyOnly, Role::Signing]);
        assert_eq!(roles(&ring, NOW + 3600), [Role::VerifyOnly, Role::VerifyOnly, Role::Signing]);
    }

    #[test]
    fn a_negative_or_endless_wait_is_bounded() {
        let ring = Ring::generate(NOW).expect("randomness");
        assert_eq!(ring.rotate(NOW, -5).expect("randomness").keys(NOW)[1].activates_at, NOW);
        assert_eq!(ring.rotate(NOW, i64::MAX).expect("randomness").keys(NOW)[1].activates_at, i64::MAX);
    }

    #[test]
    fn the_key_that_signs_cannot_be_retired() {
        let ring = Ring::generate(NOW).expect("randomness");
        let only = kid(&ring, 0);
        assert!(matches!(ring.retire(&only, NOW), Err(KeyError::StillSigning { .. })));

        let ring = ring.rotate(NOW, 60).expect("randomness");
        assert!(matches!(ring.retire(&only, NOW + 59), Err(KeyError::StillSigning { .. })));
        let ring = ring.retire(&only, NOW + 60).expect("the new key signs by now");
        assert!(!ring.knows(&only));
        assert_eq!(roles(&ring, NOW + 60), [Role::Signing]);
    }

    #[test]
    fn a_pending_key_can_be_retired_and_an_unknown_one_cannot() {
        let ring = Ring::generate(NOW).expect("randomness").rotate(NOW, 60).expect("randomness");
        let pending = kid(&ring, 1);

        assert_eq!(roles(&ring.retire(&pending, NOW).expect("it only waits"), NOW), [Role::Signing]);
        assert!(matches!(ring.retire("k7", NOW), Err(KeyError::UnknownKid { .. })));
    }

    #[test]
    fn a_clock_that_went_back_still_finds_a_key() {
        let ring = Ring::generate(NOW).expect("randomness").rotate(NOW, 0).expect("randomness");
        assert_eq!(ring.signing_kid(0), kid(&ring, 0));
    }

    #[test]
    fn debug_shows_names_alone() {
        let ring = Ring::generate(NOW).expect("randomness");
        let expected = format!("Ring {{ keys: [{}], audit: {}, audited_before: [] }}", kid(&ring, 0), ring.audit_kid());
        assert_eq!(format!("{ring:?}"), expected);
    }

    #[test]
    fn a_ring_is_shared_between_threads() {
        fn shared<T: Send + Sync + 'static>(_: &T) {}
        shared(&Ring::generate(NOW).expect("randomness"));
    }

    #[test]
    fn rotation_keeps_the_audit_key() {
        let ring = Ring::generate(NOW).expect("randomness");
        let signature = ring.sign_audit(b"checkpoint");
        let rotated = ring.rotate(NOW, 0).expect("randomness");

        assert_eq!(ring.audit_public_key(), rotated.audit_public_key());
        assert!(rotated.verify_audit(b"checkpoint", &signature));
    }

    #[test]
    fn what_an_earlier_audit_key_signed_is_verified_until_that_key_is_retired() {
        let first = Ring::generate(NOW).expect("randomness");
        let signature = first.sign_audit(b"checkpoint");
        let ring = first.rotate_audit(NOW).expect("randomness").rotate_audit(NOW).expect("randomness");
        let verified = |ring: &Ring| ring.audit_public_keys().any(|key| key.verify(b"checkpoint", &signature));

        assert_ne!(ring.audit_kid(), first.audit_kid());
        assert!(!ring.verify_audit(b"checkpoint", &signature), "the old key signs nothing any more");
        assert!(verified(&ring) && verified(&ring.rotate(NOW, 0).expect("randomness")));
        assert_eq!(ring.keys(NOW), first.keys(NOW), "URLs hang on other keys");

        assert!(matches!(ring.retire(ring.audit_kid(), NOW), Err(KeyError::StillSigning { .. })));
        let retired = ring.retire(first.audit_kid(), NOW).expect("it does not sign");
        assert!(!verified(&retired));
        assert_eq!(retired.audit_public_keys().count(), 2);
    }
}
