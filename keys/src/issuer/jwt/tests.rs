//! The documented vectors, then what a forger and a careless issuer try.

use ring::hmac;
use serde_json::json;

use super::*;
use crate::issuer::Algorithm;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://host.example";
const AUDIENCE: &str = "mediakeep";
const SECRET: &[u8] = b"a secret of the tests, 32 bytes and more";

const RSA_PEM: &[u8] = include_bytes!("../../../fixtures/rsa_public.pem");
const EC_PEM: &[u8] = include_bytes!("../../../fixtures/ec_public.pem");
const ED_PEM: &[u8] = include_bytes!("../../../fixtures/ed_public.pem");
const JWKS: &[u8] = include_bytes!("../../../fixtures/jwks.json");
const RS256: &str = include_str!("../../../fixtures/rs256.jwt");
const ES256: &str = include_str!("../../../fixtures/es256.jwt");
const EDDSA: &str = include_str!("../../../fixtures/eddsa.jwt");

type Keys = Vec<(Option<String>, IssuerKey)>;

fn verify(token: &str, keys: &Keys) -> Result<Map<String, Value>, JwtError> {
    verify_jwt(token, keys, ISSUER, AUDIENCE, NOW, 60)
}

fn secret() -> Keys {
    vec![(None, IssuerKey::hs256(SECRET).expect("it is long enough"))]
}

fn pem(algorithm: Algorithm, pem: &[u8]) -> Keys {
    vec![(None, IssuerKey::pem(algorithm, pem).expect("it is such a key"))]
}

fn vectors() -> [(Algorithm, &'static [u8], &'static str); 3] {
    [
        (Algorithm::Rs256, RSA_PEM, RS256.trim_end()),
        (Algorithm::Es256, EC_PEM, ES256.trim_end()),
        (Algorithm::EdDsa, ED_PEM, EDDSA.trim_end()),
    ]
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "tenant": "acme", "exp": NOW + 900})
}

/// The claims with one changed, `null` included.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().expect("it is one").remove(name);
    claims
}

/// A token that is signed with the tests' secret, whatever its header says.
fn sign(header: &Value, claims: &Value) -> String {
    sign_with(SECRET, &header.to_string(), &claims.to_string())
}

fn sign_with(secret: &[u8], header: &str, claims: &str) -> String {
    let encode = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
    let input = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mac = hmac::sign(&key, input.as_bytes());
    format!("{input}.{}", encode(mac.as_ref()))
}

fn hs256() -> Value {
    json!({"alg": "HS256", "typ": "JWT"})
}

#[test]
fn tokens_that_openssl_signed_are_accepted_by_pem_and_by_jwks() {
    for (algorithm, key, token) in vectors() {
        let jwks = IssuerKey::jwks(algorithm, JWKS).expect("it has one of each");
        for keys in [pem(algorithm, key), jwks] {
            let claims = verify(token, &keys).expect("openssl signed it");
            assert_eq!(claims["tenant"], "acme", "{algorithm}");
            assert_eq!(keys.len(), 1);
        }
    }
}

#[test]
fn a_token_with_our_secret_is_accepted() {
    assert_eq!(verify(&sign(&hs256(), &claims()), &secret()).expect("it is ours")["tenant"], "acme");
}

#[test]
fn no_changed_character_goes_unnoticed() {
    let mut table: Vec<_> =
        vectors().into_iter().map(|(algorithm, key, token)| (pem(algorithm, key), token.to_owned())).collect();
    table.push((secret(), sign(&hs256(), &claims())));
    for (keys, token) in table {
        for position in 0..token.len() {
            for byte in ["A", "B", "_", ".", "="] {
                if token[position..].starts_with(byte) {
                    continue;
                }
                let changed = format!("{}{byte}{}", &token[..position], &token[position + 1..]);
                assert!(verify(&changed, &keys).is_err(), "{position}: {changed}");
            }
        }
    }
}

#[test]
fn a_key_verifies_in_its_own_algorithm_alone() {
    for (_, _, token) in vectors() {
        for (algorithm, key, own) in vectors() {
            let expected = if own == token { None } else { Some(JwtError::WrongAlgorithm) };
            assert_eq!(verify(token, &pem(algorithm, key)).err(), expected);
        }
        assert_eq!(verify(token, &secret()), Err(JwtError::WrongAlgorithm));
    }
}

#[test]
fn a_public_key_is_no_hmac_secret() {
    // The classic confusion, with each form of the public key that a forger can have.
    for (algorithm, public, _) in vectors() {
        let text = std::str::from_utf8(public).expect("a PEM is text");
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
        let der = data_encoding::BASE64.decode(body.as_bytes()).expect("a PEM is base64");
        for form in [public, text.trim_end().as_bytes(), &der] {
            let forged = sign_with(form, &hs256().to_string(), &claims().to_string());
            assert_eq!(verify(&forged, &pem(algorithm, public)), Err(JwtError::WrongAlgorithm));
            let named = json!({"alg": algorithm.name(), "typ": "JWT"});
            let forged = sign_with(form, &named.to_string(), &claims().to_string());
            assert_eq!(verify(&forged, &pem(algorithm, public)), Err(JwtError::BadSignature));
        }
    }
}

#[test]
fn no_other_algorithm_is_spoken() {
    for alg in ["none", "None", "NONE", "", "HS384", "HS512", "PS256", "RS512", "ES384", "hs256", "HS256 "] {
        let token = sign(&json!({"alg": alg, "typ": "JWT"}), &claims());
        assert_eq!(verify(&token, &secret()), Err(JwtError::WrongAlgorithm), "{alg}");
        let (input, _) = token.rsplit_once('.').expect("it has three parts");
        assert!(verify(&format!("{input}."), &secret()).is_err(), "{alg}");
    }
    for alg in [Value::Null, json!(7), json!(["HS256"])] {
        assert_eq!(verify(&sign(&json!({"alg": alg}), &claims()), &secret()), Err(JwtError::Malformed));
    }
    assert_eq!(verify(&sign(&json!({}), &claims()), &secret()), Err(JwtError::Malformed));
}

#[test]
fn an_extension_that_is_critical_is_refused() {
    for crit in [json!(["x"]), json!(["b64"]), json!([]), json!("x"), Value::Null] {
        let header = json!({"alg": "HS256", "crit": crit, "b64": true});
        assert_eq!(verify(&sign(&header, &claims()), &secret()), Err(JwtError::Critical), "{header}");
    }
}

#[test]
fn a_key_that_the_token_brings_is_not_looked_at() {
    let own = b"the forger's own secret, also long enough";
    let jwk = json!({"kty": "oct", "k": BASE64URL_NOPAD.encode(own)});
    for header in [
        json!({"alg": "HS256", "jwk": jwk}),
        json!({"alg": "HS256", "jku": "https://evil.example/keys"}),
        json!({"alg": "HS256", "x5u": "https://evil.example/cert"}),
        json!({"alg": "HS256", "x5c": ["AAAA"]}),
    ] {
        let forged = sign_with(own, &header.to_string(), &claims().to_string());
        assert_eq!(verify(&forged, &secret()), Err(JwtError::BadSignature), "{header}");
        assert!(verify(&sign(&header, &claims()), &secret()).is_ok(), "{header}");
    }
}

#[test]
fn a_kid_chooses_among_the_keys_that_have_a_name() {
    let other = || IssuerKey::hs256(&[7; 32]).expect("it is long enough");
    let ours = || IssuerKey::hs256(SECRET).expect("it is long enough");
    let named = |kid: &str, key| (Some(kid.to_owned()), key);
    let keys = vec![named("old", other()), named("new", ours())];
    let token = |kid: &str| sign(&json!({"alg": "HS256", "kid": kid}), &claims());

    assert!(verify(&token("new"), &keys).is_ok());
    assert_eq!(verify(&token("old"), &keys), Err(JwtError::BadSignature));
    assert_eq!(verify(&token("../../k"), &keys), Err(JwtError::UnknownKey));
    assert!(verify(&sign(&hs256(), &claims()), &keys).is_ok(), "without a kid each is tried");
    assert!(verify(&token("any"), &secret()).is_ok(), "a key without a name fits any kid");
    assert_eq!(verify(&token("new"), &vec![]), Err(JwtError::UnknownKey));
    let header = json!({"alg": "HS256", "kid": 7});
    assert_eq!(verify(&sign(&header, &claims()), &keys), Err(JwtError::Malformed));
}

#[test]
fn an_expiry_is_required_and_past_from_the_instant_on() {
    let table = [
        (json!(NOW + 1), None),
        (json!(NOW as f64 + 0.5), None),
        (json!(u64::MAX), None),
        (json!(NOW), Some(JwtError::Expired)),
        (json!(NOW - 5), Some(JwtError::Expired)),
        (json!(NOW - 59), Some(JwtError::Expired)),
        (json!(NOW as f64 - 0.5), Some(JwtError::Expired)),
        (json!(0), Some(JwtError::Expired)),
        (json!("never"), Some(JwtError::BadClaim("exp"))),
        (json!((NOW + 900).to_string()), Some(JwtError::BadClaim("exp"))),
        // The library stumbles over a list or an object before it can say where.
        (json!([NOW + 900]), Some(JwtError::Malformed)),
        (json!({"at": NOW + 900}), Some(JwtError::Malformed)),
        (json!(true), Some(JwtError::BadClaim("exp"))),
        (Value::Null, Some(JwtError::BadClaim("exp"))),
        (json!(-1), Some(JwtError::BadClaim("exp"))),
    ];
    for (value, expected) in table {
        let found = verify(&sign(&hs256(), &with("exp", value.clone())), &secret());
        assert_eq!(found.err(), expected, "{value}");
    }
    assert_eq!(verify(&sign(&hs256(), &without("exp")), &secret()), Err(JwtError::BadClaim("exp")));
}

#[test]
fn a_start_may_be_ahead_by_the_skew_and_no_more() {
    for name in ["nbf", "iat"] {
        let bad = JwtError::BadClaim(name);
        let table = [
            (json!(NOW - 900), None),
            (json!(NOW + 60), None),
            (json!(NOW as f64 + 59.5), None),
            (json!(NOW + 61), Some(JwtError::NotYetValid)),
            (json!(NOW as f64 + 60.5), Some(JwtError::NotYetValid)),
            (json!(u64::MAX), Some(JwtError::NotYetValid)),
            (json!("99999999999"), Some(bad)),
            (json!("0"), Some(bad)),
            (json!([1]), Some(if name == "nbf" { JwtError::Malformed } else { bad })),
            (Value::Null, Some(bad)),
        ];
        for (value, expected) in table {
            let found = verify(&sign(&hs256(), &with(name, value.clone())), &secret());
            assert_eq!(found.err(), expected, "{name} {value}");
        }
    }
}

#[test]
fn the_skew_never_lengthens_a_life() {
    for skew in [0, 60, i64::MAX] {
        let token = sign(&hs256(), &with("exp", json!(NOW)));
        assert_eq!(verify_jwt(&token, &secret(), ISSUER, AUDIENCE, NOW, skew), Err(JwtError::Expired));
    }
    let token = sign(&hs256(), &with("iat", json!(NOW + 1)));
    for skew in [0, -60] {
        assert_eq!(verify_jwt(&token, &secret(), ISSUER, AUDIENCE, NOW, skew), Err(JwtError::NotYetValid));
    }
}

#[test]
fn the_issuer_is_one_string_and_ours() {
    let table = [
        (with("iss", json!("https://other.example")), JwtError::WrongIssuer),
        (with("iss", json!("https://host.example/")), JwtError::WrongIssuer),
        (with("iss", json!("")), JwtError::WrongIssuer),
        (with("iss", json!([ISSUER])), JwtError::BadClaim("iss")),
        (with("iss", json!([ISSUER, "https://other.example"])), JwtError::BadClaim("iss")),
        (with("iss", json!(7)), JwtError::BadClaim("iss")),
        (with("iss", Value::Null), JwtError::BadClaim("iss")),
        (without("iss"), JwtError::BadClaim("iss")),
    ];
    for (claims, expected) in table {
        assert_eq!(verify(&sign(&hs256(), &claims), &secret()), Err(expected), "{claims}");
    }
}

#[test]
fn the_audience_is_a_string_or_a_list_with_us_in_it() {
    let table = [
        (with("aud", json!(AUDIENCE)), None),
        (with("aud", json!([AUDIENCE])), None),
        (with("aud", json!(["billing", AUDIENCE])), None),
        (with("aud", json!("billing")), Some(JwtError::WrongAudience)),
        (with("aud", json!("mediakeep2")), Some(JwtError::WrongAudience)),
        (with("aud", json!(["billing"])), Some(JwtError::WrongAudience)),
        (with("aud", json!([])), Some(JwtError::WrongAudience)),
        (with("aud", json!([AUDIENCE, 7])), Some(JwtError::BadClaim("aud"))),
        (with("aud", json!({"is": AUDIENCE})), Some(JwtError::BadClaim("aud"))),
        (with("aud", json!(7)), Some(JwtError::BadClaim("aud"))),
        (with("aud", Value::Null), Some(JwtError::BadClaim("aud"))),
        (without("aud"), Some(JwtError::BadClaim("aud"))),
    ];
    for (claims, expected) in table {
        assert_eq!(verify(&sign(&hs256(), &claims), &secret()).err(), expected, "{claims}");
    }
}

#[test]
fn a_claim_that_is_there_twice_is_refused() {
    for twice in [
        format!(r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","exp":1,"exp":{}}}"#, NOW + 900),
        format!(r#"{{"iss":"x","iss":"{ISSUER}","aud":"{AUDIENCE}","exp":{}}}"#, NOW + 900),
        format!(r#"{{"iss":"{ISSUER}","aud":"x","aud":"{AUDIENCE}","exp":{}}}"#, NOW + 900),
        format!(r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","exp":{},"tenant":"acme","tenant":"umbrella"}}"#, NOW + 900),
    ] {
        let token = sign_with(SECRET, &hs256().to_string(), &twice);
        assert_eq!(verify(&token, &secret()), Err(JwtError::Malformed), "{twice}");
    }
}

#[test]
fn the_signature_is_looked_at_before_the_claims() {
    let expired = with("exp", json!(0));
    let forged = sign_with(&[7; 32], &hs256().to_string(), &expired.to_string());
    assert_eq!(verify(&forged, &secret()), Err(JwtError::BadSignature));
}

#[test]
fn what_is_no_jwt_is_malformed() {
    let ours = sign(&hs256(), &claims());
    for text in ["", ".", "..", "a.b.c", "e30.e30.", "e30.e30", &format!("{ours}.e30"), &format!(" {ours}")] {
        assert_eq!(verify(text, &secret()), Err(JwtError::Malformed), "{text:?}");
        assert!(!matches!(peek_issuer(text), Some(issuer) if issuer != ISSUER));
    }
    assert_eq!(verify(&"A".repeat(MAX_JWT + 1), &secret()), Err(JwtError::TooLong));
    for claims in [json!([]), json!("acme"), Value::Null] {
        assert!(verify(&sign(&hs256(), &claims), &secret()).is_err());
    }
}

#[test]
fn the_issuer_can_be_peeked_at() {
    assert_eq!(peek_issuer(&sign(&hs256(), &claims())).as_deref(), Some(ISSUER));
    assert_eq!(peek_issuer(RS256.trim_end()).as_deref(), Some(ISSUER));
    assert_eq!(peek_issuer(&sign(&hs256(), &with("iss", json!([ISSUER])))), None);
    assert_eq!(peek_issuer(&sign(&hs256(), &without("iss"))), None);
    assert_eq!(peek_issuer("mk_acme_secret"), None);
}

#[test]
fn a_capability_token_is_no_jwt() {
    let ring = crate::Ring::generate(NOW).expect("randomness");
    let claims = crate::Claims {
        tenant: "acme".into(),
        asset: "ast_1".into(),
        class: crate::Class::Durable,
        issued_at: NOW,
        generation: 0,
    };
    let token = ring.mint(ring.signing_kid(NOW), &claims).expect("the claims can be carried");
    assert_eq!(verify(&token, &secret()), Err(JwtError::BadSignature));
}
