//! Thirty-two random bytes that are wiped when dropped and are never shown.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::KeyError;

/// The length of every secret here: the output of SHA-256, and an Ed25519 seed.
pub(crate) const SECRET_LEN: usize = 32;

/// A secret of the ring. In the ring file it is base64url without padding.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; SECRET_LEN]>);

impl Secret {
    pub(crate) fn generate() -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; SECRET_LEN]);
        fill(&mut *bytes)?;
        Ok(Self(bytes))
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &*self.0
    }
}

/// A name for a key: a letter and eight characters of chance, so that two replicas' rings do not share one by accident.
pub(crate) fn new_kid(letter: char) -> Result<String, KeyError> {
    let mut bytes = [0; 5];
    fill(&mut bytes)?;
    let chance = data_encoding::BASE32_NOPAD.encode(&bytes).to_ascii_lowercase();
    Ok(format!("{letter}{chance}"))
}

fn fill(bytes: &mut [u8]) -> Result<(), KeyError> {
    SystemRandom::new().fill(bytes).map_err(|_| KeyError::NoRandomness)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Zeroizing::new(BASE64URL_NOPAD.encode(self.expose())))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SecretVisitor)
    }
}

/// Decodes straight from the file's buffer, which is wiped too, so that no other copy is made.
/// Its messages never hold the text: serde's own would quote it.
struct SecretVisitor;

impl Visitor<'_> for SecretVisitor {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("32 bytes in base64url")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Secret, E> {
        let mut bytes = Zeroizing::new([0; SECRET_LEN]);
        if BASE64URL_NOPAD.decode_len(text.len()) != Ok(SECRET_LEN) {
            return Err(E::custom("a secret is not 32 bytes in base64url"));
        }
        BASE64URL_NOPAD
            .decode_mut(text.as_bytes(), &mut *bytes)
            .map_err(|_| E::custom("a secret is not 32 bytes in base64url"))?;
        Ok(Secret(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_back_as_it_was_written() {
        let secret = Secret::generate().expect("randomness");
        let text = serde_json::to_string(&secret).expect("it serializes");
        let again: Secret = serde_json::from_str(&text).expect("it was just written");

        assert_eq!(secret.expose(), again.expose());
    }

    #[test]
    fn a_broken_secret_is_refused_without_being_quoted() {
        let spare_bits = format!("\"{}B\"", "A".repeat(42));
        for text in ["\"\"", "\"AAAA\"", "\"hunter2hunter2\"", &spare_bits, "7", "null"] {
            let error = serde_json::from_str::<Secret>(text).expect_err(text).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn debug_shows_nothing() {
        let secret = Secret::generate().expect("randomness");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
    }
}
