//! The keys of other issuers, and the JWTs that they sign.
//!
//! A key knows its algorithm and is never used for another: what a token's header says only decides whether the token is
//! looked at at all.

mod jwks;
mod jwt;
mod spki;

use std::fmt;

use jsonwebtoken::DecodingKey;
use serde::{Deserialize, Serialize};

pub use self::jwt::{JwtError, MAX_JWT, expired_jwt, peek_issuer, verify_jwt};
use crate::KeyError;
pub use crate::private_file::read_key_file;

/// As many bytes as the hash has: less is weaker than the algorithm (RFC 7518 §3.2).
const LEAST_SECRET: usize = 32;

/// How an issuer signs. There is no `none`, and no second way with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// HMAC with SHA-256: both sides hold the secret.
    #[serde(rename = "HS256")]
    Hs256,
    /// RSA, PKCS #1 v1.5, SHA-256; 2048 to 8192 bits.
    #[serde(rename = "RS256")]
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl Algorithm {
    /// The name in a configuration and in a token's `alg`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    fn of_header(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Hs256 => jsonwebtoken::Algorithm::HS256,
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A key that verifies one issuer's tokens in one algorithm. It is wiped on drop, and `Debug` shows the algorithm alone.
#[derive(Clone)]
pub struct IssuerKey {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl IssuerKey {
    /// A shared secret of at least 32 bytes.
    ///
    /// A PEM is refused: a public key is no secret, and who has it could sign.
    pub fn hs256(secret: &[u8]) -> Result<Self, KeyError> {
        let algorithm = Algorithm::Hs256;
        if let Some(found) = spki::describe(secret) {
            let wanted = "a secret that only the two sides know";
            return Err(KeyError::WrongKind { algorithm: algorithm.name(), wanted, found });
        }
        if secret.len() < LEAST_SECRET {
            return Err(KeyError::ShortSecret { found: secret.len(), least: LEAST_SECRET });
        }
        let key = DecodingKey::from_secret(secret).expect("it is not empty");
        Ok(Self { algorithm, key })
    }

    /// A public key in PEM (`-----BEGIN PUBLIC KEY-----`, the SPKI of RFC 5280). Anything else is named in the error.
    pub fn pem(algorithm: Algorithm, pem: &[u8]) -> Result<Self, KeyError> {
        let wrong = |found| KeyError::WrongKind { algorithm: algorithm.name(), wanted: wanted(algorithm), found };
        let key = match (algorithm, spki::read(pem).map_err(wrong)?) {
            (Algorithm::Rs256, spki::PublicKey::Rsa { pkcs1 }) => DecodingKey::from_rsa_der(&pkcs1),
            (Algorithm::Es256, spki::PublicKey::P256 { point }) => DecodingKey::from_ec_der(&point),
            (Algorithm::EdDsa, spki::PublicKey::Ed25519 { point }) => DecodingKey::from_ed_der(&point),
            (_, other) => return Err(wrong(other.name())),
        };
        Ok(Self { algorithm, key })
    }

    /// The keys of a JWK Set (RFC 7517) that this algorithm can use, each with its `kid`.
    ///
    /// Keys of another kind, algorithm or use are passed over; one that is ours and broken is an error, and so is a set
    /// with none for us.
    pub fn jwks(algorithm: Algorithm, json: &[u8]) -> Result<Vec<(Option<String>, Self)>, KeyError> {
        jwks::read(algorithm, json).map_err(|fault| KeyError::BadJwks { algorithm: algorithm.name(), fault })
    }

    /// The algorithm that this key is for.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl fmt::Debug for IssuerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

fn wanted(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Hs256 => "a shared secret, not a PEM",
        Algorithm::Rs256 => "an RSA public key of 2048 to 8192 bits in PEM (BEGIN PUBLIC KEY)",
        Algorithm::Es256 => "a P-256 public key in PEM (BEGIN PUBLIC KEY)",
        Algorithm::EdDsa => "an Ed25519 public key in PEM (BEGIN PUBLIC KEY)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! fixture {
        ($name:literal) => {
            ($name, include_bytes!(concat!("../fixtures/", $name)).as_slice())
        };
    }

    #[test]
    fn a_pem_fits_one_algorithm() {
        let table = [
            (Algorithm::Rs256, fixture!("rsa_public.pem")),
            (Algorithm::Es256, fixture!("ec_public.pem")),
            (Algorithm::EdDsa, fixture!("ed_public.pem")),
        ];
        for (algorithm, (name, pem)) in table {
            for other in [Algorithm::Hs256, Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
                let found = IssuerKey::pem(other, pem);
                assert_eq!(found.is_ok(), other == algorithm, "{name} for {other}: {found:?}");
            }
        }
    }

    #[test]
    fn a_pem_of_another_kind_is_named() {
        let table = [
            (Algorithm::Rs256, fixture!("ec_public.pem"), "this is a P-256 public key"),
            (Algorithm::Es256, fixture!("rsa_public.pem"), "this is an RSA public key"),
            (Algorithm::Es256, fixture!("ec_p384_public.pem"), "another curve than P-256"),
            (Algorithm::Es256, fixture!("ec_secp256k1_public.pem"), "another curve than P-256"),
            (Algorithm::EdDsa, fixture!("ec_public.pem"), "this is a P-256 public key"),
            (Algorithm::Rs256, fixture!("rsa_1024_public.pem"), "under 2048 bits"),
            (Algorithm::Rs256, fixture!("rsa_pkcs1_public.pem"), "PKCS #1"),
            (Algorithm::Rs256, fixture!("certificate.pem"), "this is a certificate"),
            (
                Algorithm::Rs256,
                ("private", b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"),
                "a private key",
            ),
            (Algorithm::Rs256, ("secret", b"0123456789abcdef0123456789abcdef"), "this is no PEM"),
        ];
        for (algorithm, (name, pem), expected) in table {
            let error = IssuerKey::pem(algorithm, pem).expect_err(name).to_string();
            assert!(error.contains(expected), "{name} for {algorithm}: {error}");
        }
    }

    #[test]
    fn a_secret_has_at_least_as_many_bytes_as_its_hash() {
        for length in [0, 1, 31] {
            let error = IssuerKey::hs256(&vec![b'x'; length]).expect_err("it is short");
            assert!(matches!(error, KeyError::ShortSecret { found, least: 32 } if found == length));
        }
        assert!(IssuerKey::hs256(&[b'x'; 32]).is_ok());
    }

    #[test]
    fn a_public_key_is_no_secret() {
        for (name, pem) in [fixture!("rsa_public.pem"), fixture!("ed_public.pem"), fixture!("certificate.pem")] {
            let error = IssuerKey::hs256(pem).expect_err(name);
            assert!(matches!(error, KeyError::WrongKind { algorithm: "HS256", .. }), "{error}");
        }
    }

    #[test]
    fn debug_shows_the_algorithm_alone() {
        let key = IssuerKey::hs256(b"hunter2 hunter2 hunter2 hunter2 hunter2").expect("it is long enough");
        assert_eq!(format!("{key:?}"), "IssuerKey { algorithm: Hs256, .. }");
    }
}
