//! A JWK Set (RFC 7517) as an issuer publishes it, read for one algorithm.

use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;

use super::{Algorithm, IssuerKey, LEAST_SECRET, spki};
use crate::error::place_of;

/// A token without `kid` is tried with every key, so there is a bound on how many there are.
const MAX_KEYS: usize = 100;

/// The keys that `algorithm` can use, in order; otherwise what is wrong, and at which position.
pub(super) fn read(algorithm: Algorithm, json: &[u8]) -> Result<Vec<(Option<String>, IssuerKey)>, String> {
    let set: Set =
        serde_json::from_slice(json).map_err(|error| format!("it is not a JWK Set: {}", place_of(&error)))?;
    if set.keys.len() > MAX_KEYS {
        return Err(format!("it has more than {MAX_KEYS} keys"));
    }
    let mut keys = Vec::new();
    for (position, value) in set.keys.into_iter().enumerate() {
        // What a key of another kind looks like is not ours to judge (RFC 7517 §5).
        if value.get("kty").and_then(Value::as_str) != Some(kind_of(algorithm)) {
            continue;
        }
        let at = |fault: &str| format!("key {position}: {fault}");
        let jwk: Jwk = serde_json::from_value(value).map_err(|_| at("a member is not of its type"))?;
        if !jwk.is_for(algorithm) {
            continue;
        }
        let key = jwk.decoding_key(algorithm).map_err(at)?;
        keys.push((jwk.kid, IssuerKey { algorithm, key }));
    }
    if keys.is_empty() {
        return Err("it has no key for that".to_owned());
    }
    Ok(keys)
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    k: Option<String>,
    d: Option<Value>,
}

impl Jwk {
    fn is_for(&self, algorithm: Algorithm) -> bool {
        let says = |member: &Option<String>, wanted: &str| member.as_deref().is_none_or(|found| found == wanted);
        let verifies = self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        let curve = match algorithm {
            Algorithm::Es256 => says(&self.crv, "P-256"),
            Algorithm::EdDsa => says(&self.crv, "Ed25519"),
            Algorithm::Hs256 | Algorithm::Rs256 => true,
        };
        says(&self.alg, algorithm.name()) && says(&self.purpose, "sig") && verifies && curve
    }

    fn decoding_key(&self, algorithm: Algorithm) -> Result<DecodingKey, &'static str> {
        if self.d.is_some() {
            return Err("it is a private key, which the issuer should not have given away");
        }
        match algorithm {
            Algorithm::Hs256 => {
                let secret = bytes(self.k.as_ref(), "k is not base64url")?;
                if secret.len() < LEAST_SECRET {
                    return Err("a secret of less than 32 bytes");
                }
                Ok(DecodingKey::from_secret(&secret).expect("it is not empty"))
            }
            Algorithm::Rs256 => {
                let n = bytes(self.n.as_ref(), "n is not base64url")?;
                let e = bytes(self.e.as_ref(), "e is not base64url")?;
                spki::check_modulus(&n)?;
                Ok(DecodingKey::from_rsa_raw_components(spki::strip_zeros(&n), spki::strip_zeros(&e)))
            }
            Algorithm::Es256 => {
                if self.crv.is_none() {
                    return Err("crv is missing");
                }
                let x = point(self.x.as_ref(), "x is not 32 bytes in base64url")?;
                let y = point(self.y.as_ref(), "y is not 32 bytes in base64url")?;
                Ok(DecodingKey::from_ec_der(&[&[4], x.as_slice(), y.as_slice()].concat()))
            }
            Algorithm::EdDsa => {
                if self.crv.is_none() {
                    return Err("crv is missing");
                }
                Ok(DecodingKey::from_ed_der(&point(self.x.as_ref(), "x is not 32 bytes in base64url")?))
            }
        }
    }
}

fn kind_of(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Hs256 => "oct",
        Algorithm::Rs256 => "RSA",
        Algorithm::Es256 => "EC",
        Algorithm::EdDsa => "OKP",
    }
}

fn bytes(text: Option<&String>, fault: &'static str) -> Result<Vec<u8>, &'static str> {
    text.and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok()).ok_or(fault)
}

fn point(text: Option<&String>, fault: &'static str) -> Result<Vec<u8>, &'static str> {
    let bytes = bytes(text, fault)?;
    if bytes.len() == 32 { Ok(bytes) } else { Err(fault) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const X: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn read_one(algorithm: Algorithm, key: &Value) -> Result<usize, String> {
        let json = json!({ "keys": [key] }).to_string();
        read(algorithm, json.as_bytes()).map(|keys| keys.len())
    }

    fn rsa(modulus_bytes: usize) -> Value {
        json!({"kty": "RSA", "n": BASE64URL_NOPAD.encode(&vec![0xff; modulus_bytes]), "e": "AQAB"})
    }

    #[test]
    fn a_set_gives_the_keys_of_one_algorithm_with_their_names() {
        let set = json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": X},
            {"kty": "OKP", "crv": "Ed25519", "x": X, "use": "sig", "alg": "EdDSA", "key_ops": ["verify"]},
            {"kty": "OKP", "crv": "X25519", "kid": "two", "x": X},
            {"kty": "OKP", "crv": "Ed25519", "kid": "three", "x": X, "use": "enc"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "four", "x": X, "key_ops": ["sign"]},
            {"kty": "EC", "crv": "P-256", "kid": "five", "x": X, "y": X},
            {"kty": "AKP", "kid": "six", "pub": 7},
            "not a key",
        ]});
        let keys = read(Algorithm::EdDsa, set.to_string().as_bytes()).expect("two are for us");
        let kids: Vec<_> = keys.into_iter().map(|(kid, _)| kid).collect();
        assert_eq!(kids, [Some("one".to_owned()), None]);
    }

    #[test]
    fn a_key_that_is_ours_and_broken_is_an_error() {
        let table = [
            (Algorithm::EdDsa, json!({"kty": "OKP", "crv": "Ed25519"})),
            (Algorithm::EdDsa, json!({"kty": "OKP", "x": X})),
            (Algorithm::EdDsa, json!({"kty": "OKP", "crv": "Ed25519", "x": "AAAA"})),
            (Algorithm::EdDsa, json!({"kty": "OKP", "crv": "Ed25519", "x": X, "d": X})),
            (Algorithm::EdDsa, json!({"kty": "OKP", "crv": "Ed25519", "x": X, "kid": 7})),
            (Algorithm::Es256, json!({"kty": "EC", "crv": "P-256", "x": X})),
            (Algorithm::Es256, json!({"kty": "EC", "x": X, "y": X})),
            (Algorithm::Es256, json!({"kty": "EC", "crv": "P-384", "x": X, "y": X})),
            (Algorithm::Rs256, json!({"kty": "RSA", "e": "AQAB"})),
            (Algorithm::Rs256, json!({"kty": "RSA", "n": "a=", "e": "AQAB"})),
            (Algorithm::Rs256, rsa(128)),
            (Algorithm::Rs256, rsa(1025)),
            (Algorithm::Hs256, json!({"kty": "oct", "k": ""})),
            (Algorithm::Hs256, json!({"kty": "oct", "k": "c2hvcnQ"})),
            (Algorithm::Hs256, json!({"kty": "oct", "k": X, "alg": "HS512"})),
        ];
        for (algorithm, key) in table {
            assert!(read_one(algorithm, &key).is_err(), "{key}");
        }
        assert_eq!(read_one(Algorithm::Rs256, &rsa(256)), Ok(1));
        assert_eq!(read_one(Algorithm::Hs256, &json!({"kty": "oct", "k": X})), Ok(1));
        assert_eq!(read_one(Algorithm::Es256, &json!({"kty": "EC", "crv": "P-256", "x": X, "y": X})), Ok(1));
    }

    #[test]
    fn what_is_no_set_is_an_error() {
        for json in ["", "[]", "{}", r#"{"keys": {}}"#, r#"{"keys": []}"#, "-----BEGIN PUBLIC KEY-----"] {
            assert!(read(Algorithm::Rs256, json.as_bytes()).is_err(), "{json}");
        }
        let many = json!({"keys": vec![json!({"kty": "OKP", "crv": "Ed25519", "x": X}); 101]});
        assert!(read(Algorithm::EdDsa, many.to_string().as_bytes()).is_err());
    }
}
