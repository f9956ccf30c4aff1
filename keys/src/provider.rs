//! A cryptography provider over `ring` for `jsonwebtoken`, which brings none of its own unless it is given a second library.
//!
//! It verifies HS256, RS256, ES256 and EdDSA, each with a key of its own family, and signs HS256 only: this service takes
//! other people's JWTs and makes none.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
    VerificationAlgorithm,
};

/// The provider. Its key utilities make JWKs and thumbprints out of keys, which nothing here does: they refuse.
pub static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(ErrorKind::UnsupportedAlgorithm.into()),
        rsa_pub_components_from_public_key: |_| Err(ErrorKind::UnsupportedAlgorithm.into()),
        ec_pub_components_from_private_key: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        ed_pub_components_from_private_key: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        compute_digest: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    },
};

/// Makes this the process's provider; `jsonwebtoken` panics without one and takes it from nowhere else.
///
/// Again does nothing, and neither does it when a program has put in a provider of its own before.
pub fn install() {
    let _ = PROVIDER.install_default();
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    match (algorithm, key.family()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => {
            Ok(Box::new(Hs256(hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()))))
        }
        _ => Err(ErrorKind::UnsupportedAlgorithm.into()),
    }
}

/// The algorithm comes from a token's header and the family from the key: only where the two agree is there a verifier.
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    match (algorithm, key.family(), key.kind()) {
        (Algorithm::HS256, AlgorithmFamily::Hmac, DecodingKeyKind::SecretOrDer(secret)) => {
            Ok(Box::new(Hs256(hmac::Key::new(hmac::HMAC_SHA256, secret))))
        }
        (Algorithm::RS256, AlgorithmFamily::Rsa, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Ok(Box::new(Rs256Components { n: n.clone(), e: e.clone() }))
        }
        (Algorithm::RS256, AlgorithmFamily::Rsa, DecodingKeyKind::SecretOrDer(der)) => {
            Ok(PublicKey::boxed(Algorithm::RS256, &RSA_PKCS1_2048_8192_SHA256, der))
        }
        (Algorithm::ES256, AlgorithmFamily::Ec, DecodingKeyKind::SecretOrDer(point)) => {
            Ok(PublicKey::boxed(Algorithm::ES256, &ECDSA_P256_SHA256_FIXED, point))
        }
        (Algorithm::EdDSA, AlgorithmFamily::Ed, DecodingKeyKind::SecretOrDer(point)) => {
            Ok(PublicKey::boxed(Algorithm::EdDSA, &ED25519, point))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

/// HMAC with SHA-256, both ways.
struct Hs256(hmac::Key);

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, signature::Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], mac: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        hmac::verify(&self.0, message, mac).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

/// A public key in the form that `ring` reads: PKCS #1 for RSA, the point for the curves.
struct PublicKey {
    algorithm: Algorithm,
    key: UnparsedPublicKey<Vec<u8>>,
}

impl PublicKey {
    fn boxed(algorithm: Algorithm, how: &'static dyn VerificationAlgorithm, key: &[u8]) -> Box<dyn JwtVerifier> {
        Box::new(Self { algorithm, key: UnparsedPublicKey::new(how, key.to_vec()) })
    }
}

impl Verifier<Vec<u8>> for PublicKey {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        self.key.verify(message, signature).map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for PublicKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// An RSA key as a JWK gives it: two numbers.
struct Rs256Components {
    n: Vec<u8>,
    e: Vec<u8>,
}

impl Verifier<Vec<u8>> for Rs256Components {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        RsaPublicKeyComponents { n: &self.n, e: &self.e }
            .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            .map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Rs256Components {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64URL_NOPAD;
    use jsonwebtoken::crypto;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        BASE64URL_NOPAD.decode(text.as_bytes()).expect("the vectors are base64url")
    }

    /// RFC 7515 A.1 and A.3, RFC 8037 A.4. RS256 has its vector beside the issuer's tests.
    fn vectors() -> [(Algorithm, DecodingKey, &'static str); 3] {
        let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let x = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
        let y = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
        let ed = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        [
            (
                Algorithm::HS256,
                DecodingKey::from_secret(&bytes(secret)).expect("it is not empty"),
                concat!(
                    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.",
                    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.",
                    "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
                ),
            ),
            (
                Algorithm::ES256,
                DecodingKey::from_ec_der(&[vec![4], bytes(x), bytes(y)].concat()),
                concat!(
                    "eyJhbGciOiJFUzI1NiJ9.",
                    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.",
                    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
                ),
            ),
            (
                Algorithm::EdDSA,
                DecodingKey::from_ed_der(&bytes(ed)),
                concat!(
                    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.",
                    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
                ),
            ),
        ]
    }

    #[test]
    fn the_vectors_of_the_rfcs_hold() {
        install();
        for (algorithm, key, token) in vectors() {
            let (message, signature) = token.rsplit_once('.').expect("it has three parts");
            let holds = |message: &[u8]| crypto::verify(signature, message, &key, algorithm).expect("the key fits");
            assert!(holds(message.as_bytes()), "{algorithm:?}");
            assert!(!holds(&message.as_bytes()[1..]), "{algorithm:?}");
        }
    }

    #[test]
    fn a_key_of_one_family_serves_no_algorithm_of_another() {
        install();
        let all = [
            Algorithm::HS256,
            Algorithm::HS384,
            Algorithm::RS256,
            Algorithm::PS256,
            Algorithm::ES256,
            Algorithm::ES384,
            Algorithm::EdDSA,
        ];
        for (own, key, _) in vectors() {
            for algorithm in all {
                assert_eq!(verifier(&algorithm, &key).is_ok(), algorithm == own, "{own:?} as {algorithm:?}");
            }
        }
    }

    #[test]
    fn only_hs256_signs() {
        let secret = EncodingKey::from_secret(&[7; 32]).expect("it is not empty");
        assert!(signer(&Algorithm::HS256, &secret).is_ok());
        assert!(signer(&Algorithm::HS512, &secret).is_err());
        assert!(signer(&Algorithm::RS256, &EncodingKey::from_rsa_der(&[])).is_err());
        assert!(signer(&Algorithm::HS256, &EncodingKey::from_rsa_der(&[])).is_err());
    }

    #[test]
    fn the_provider_is_installed_once_and_again() {
        install();
        install();
        assert!(CryptoProvider::try_get_default().is_some_and(|found| std::ptr::eq(found, &raw const PROVIDER)));
    }
}
