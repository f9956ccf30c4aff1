//! The Ed25519 key that signs manifests, checkpoints and isolation reports, and what an auditor needs to check them.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::KeyError;
use crate::secret::{Secret, new_kid};

/// The public half of the ring's audit key: enough to verify, not to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPublicKey {
    kid: String,
    point: Vec<u8>,
}

impl AuditPublicKey {
    /// A key that an auditor kept, or read from the published JWK Set: its name and its 32 bytes.
    #[must_use]
    pub fn new(kid: impl Into<String>, point: impl Into<Vec<u8>>) -> Self {
        Self { kid: kid.into(), point: point.into() }
    }

    /// The name that signatures carry.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The 32 bytes of the public key (RFC 8032).
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.point
    }

    /// Whether `signature` is this key's over exactly `message`.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.point).verify(message, signature).is_ok()
    }

    /// The key as a JWK (RFC 8037), for the published set.
    #[must_use]
    pub fn to_jwk(&self) -> Value {
        json!({
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": self.kid,
            "use": "sig",
            "alg": "EdDSA",
            "x": BASE64URL_NOPAD.encode(&self.point),
        })
    }
}

/// The ring's audit key, both halves.
pub(crate) struct AuditKey {
    pub(crate) created_at: i64,
    pub(crate) seed: Secret,
    pub(crate) public: AuditPublicKey,
    pair: Ed25519KeyPair,
}

impl AuditKey {
    pub(crate) fn generate(now: i64) -> Result<Self, KeyError> {
        Ok(Self::new(new_kid('a')?, now, Secret::generate()?))
    }

    pub(crate) fn new(kid: String, created_at: i64, seed: Secret) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose()).expect("a seed is always 32 bytes");
        let public = AuditPublicKey::new(kid, pair.public_key().as_ref());
        Self { created_at, seed, public, pair }
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public.kid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_message_and_its_key_alone() {
        let key = AuditKey::generate(0).expect("randomness");
        let other = AuditKey::generate(0).expect("randomness");
        let signature = key.sign(b"checkpoint 7");

        assert_eq!(signature.len(), 64);
        assert!(key.public.verify(b"checkpoint 7", &signature));
        assert!(!key.public.verify(b"checkpoint 8", &signature));
        assert!(!key.public.verify(b"checkpoint 7", &signature[..63]));
        assert!(!other.public.verify(b"checkpoint 7", &signature));
    }

    #[test]
    fn a_key_of_the_wrong_length_verifies_nothing() {
        let key = AuditKey::generate(0).expect("randomness");
        let signature = key.sign(b"message");
        for length in [0, 31, 33, 64] {
            assert!(!AuditPublicKey::new("a", vec![0; length]).verify(b"message", &signature));
        }
    }

    #[test]
    fn the_jwk_holds_the_public_half_alone() {
        let key = AuditKey::generate(0).expect("randomness");
        let jwk = key.public.to_jwk();

        assert_eq!(jwk["x"], BASE64URL_NOPAD.encode(key.public.as_bytes()));
        assert!(jwk.get("d").is_none());
    }

    /// RFC 8032 §7.1, test 2.
    #[test]
    fn the_signature_is_the_one_of_the_rfc() {
        let hex = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).expect("hex");
        let seed = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let text = serde_json::to_string(&BASE64URL_NOPAD.encode(&seed)).expect("a string");
        let key = AuditKey::new("a".into(), 0, serde_json::from_str(&text).expect("32 bytes"));

        let expected = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                        085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(key.sign(&[0x72]), hex(expected));
    }
}
