//! Documents that we sign, and how somebody who has only the public key checks one.
//!
//! The signature is Ed25519, by the ring's audit key, over the RFC 8785 JSON of the document without its member `signature`. So it
//! survives whoever prints the document anew, and no change of what it says.

use data_encoding::BASE64URL_NOPAD;
use mediakeep_keys::{AuditPublicKey, Ring};
use mediakeep_storage::audit::canonical;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// What stands under a signed document.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Signature {
    /// The ring's key.
    pub kid: String,
    /// `EdDSA`.
    pub alg: &'static str,
    /// Over the RFC 8785 JSON of the rest, in base64url.
    pub value: String,
}

/// Why a document proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// It is no object with such a signature.
    #[error("it has no signature of ours")]
    Unsigned,
    /// Nobody here has that key.
    #[error("it is signed by {kid}, which is none of the keys")]
    UnknownKey {
        /// The key that it names.
        kid: String,
    },
    /// The key did not sign this.
    #[error("the signature does not hold: it says something else than what was signed")]
    Changed,
}

/// The document, which is an object, with its signature.
pub fn signed(ring: &Ring, document: &impl Serialize) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(document)?;
    let signature = Signature {
        kid: ring.audit_kid().to_owned(),
        alg: "EdDSA",
        value: BASE64URL_NOPAD.encode(&ring.sign_audit(canonical(&value).as_bytes())),
    };
    value["signature"] = serde_json::to_value(signature)?;
    Ok(value)
}

/// Takes the signature off a document; names the key that proves the rest.
pub fn proven<'k>(document: &mut Value, keys: &'k [AuditPublicKey]) -> Result<&'k str, Unproven> {
    let signature = document.as_object_mut().and_then(|members| members.remove("signature"));
    let signature = signature.ok_or(Unproven::Unsigned)?;
    let (Some(kid), Some("EdDSA"), Some(value)) =
        (signature["kid"].as_str(), signature["alg"].as_str(), signature["value"].as_str())
    else {
        return Err(Unproven::Unsigned);
    };
    let value = BASE64URL_NOPAD.decode(value.as_bytes()).map_err(|_| Unproven::Unsigned)?;
    let key = keys.iter().find(|key| key.kid() == kid);
    let key = key.ok_or_else(|| Unproven::UnknownKey { kid: kid.to_owned() })?;
    if !key.verify(canonical(document).as_bytes(), &value) {
        return Err(Unproven::Changed);
    }
    Ok(key.kid())
}

/// The keys that an auditor needs, as they are published (RFC 7517): the one that signs, then those before it.
pub fn jwks(ring: &Ring) -> Value {
    json!({"keys": ring.audit_public_keys().map(AuditPublicKey::to_jwk).collect::<Vec<_>>()})
}

/// The Ed25519 keys of a published set; others in it are passed over.
pub fn keys_of(jwks: &Value) -> Vec<AuditPublicKey> {
    let keys = jwks["keys"].as_array().into_iter().flatten();
    let ours = keys.filter(|key| key["kty"] == "OKP" && key["crv"] == "Ed25519");
    ours.filter_map(|key| {
        let point = BASE64URL_NOPAD.decode(key["x"].as_str()?.as_bytes()).ok()?;
        Some(AuditPublicKey::new(key["kid"].as_str()?, point))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> Ring {
        Ring::generate(0).expect("randomness")
    }

    #[test]
    fn a_document_is_proven_by_the_published_key_however_it_is_printed() {
        let ring = ring();
        let document = signed(&ring, &json!({"b": [1, {"z": null, "a": "ö"}], "a": true})).expect("JSON");

        let printed = serde_json::to_string_pretty(&document).expect("JSON");
        let mut read: Value = serde_json::from_str(&printed).expect("JSON");

        let keys = keys_of(&jwks(&ring));
        assert_eq!(proven(&mut read, &keys), Ok(ring.audit_kid()));
        assert_eq!(read, json!({"a": true, "b": [1, {"a": "ö", "z": null}]}));
    }

    #[test]
    fn what_was_changed_or_signed_by_others_is_not_proven() {
        let (ring, other) = (ring(), ring());
        let keys = keys_of(&jwks(&ring));
        let document = signed(&ring, &json!({"leaks": []})).expect("JSON");
        let changed = |change: fn(&mut Value)| {
            let mut document = document.clone();
            change(&mut document);
            proven(&mut document, &keys).map(str::to_owned)
        };

        assert_eq!(changed(|document| document["leaks"] = json!([1])), Err(Unproven::Changed));
        assert_eq!(changed(|document| document["more"] = json!(1)), Err(Unproven::Changed));
        assert_eq!(changed(|document| document["signature"]["value"] = json!("AAAA")), Err(Unproven::Changed));
        assert_eq!(changed(|document| document["signature"]["alg"] = json!("none")), Err(Unproven::Unsigned));
        assert_eq!(changed(|document| document["signature"] = Value::Null), Err(Unproven::Unsigned));
        assert_eq!(changed(|document| *document = json!("text")), Err(Unproven::Unsigned));
        let mut theirs = signed(&other, &json!({"leaks": []})).expect("JSON");
        let kid = other.audit_kid().to_owned();
        assert_eq!(proven(&mut theirs, &keys), Err(Unproven::UnknownKey { kid }));
    }
}
