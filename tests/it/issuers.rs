//! JWTs of configured issuers.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use data_encoding::{BASE64, BASE64URL_NOPAD};
use mediakeep::audit;
use mediakeep::config::settings::Issuer;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{BEGINNING, Host};

const ISSUER: &str = "https://host.example";
const SECRET: &[u8] = b"a secret of the tests, 32 bytes and more";
const RSA_PEM: &[u8] = include_bytes!("../../keys/fixtures/rsa_public.pem");
const RSA_TOKEN: &str = include_str!("../../keys/fixtures/rs256.jwt");

/// What stands before the point of a P-256 key, and before an Ed25519 key, in a SubjectPublicKeyInfo.
const P256_HEAD: &[u8] =
    b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
const ED25519_HEAD: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

#[tokio::test]
async fn a_token_in_each_algorithm_gets_its_tenant_in() {
    let (ec, ed) = (Ec::generate(), Ed::generate());
    for (algorithm, key, token) in [
        ("HS256", SECRET.to_vec(), hs256(SECRET, &claims())),
        ("ES256", pem(P256_HEAD, ec.0.public_key().as_ref()), ec.sign(&claims())),
        ("EdDSA", pem(ED25519_HEAD, ed.0.public_key().as_ref()), ed.sign(&claims())),
        ("RS256", RSA_PEM.to_vec(), RSA_TOKEN.trim_end().to_owned()),
    ] {
        let host = host(algorithm, &key, |_| {}).await;
        let asset = host.owner("acme").upload(png(4, 4)).await;
        let path = format!("/v1/assets/{}/content", asset.id);

        let caller = host.bearer(&token);
        assert_eq!(caller.get(&path).await.status(), 200, "{algorithm}");
        assert_eq!(caller.post("/v1/assets", &json!({"base64": "aGk="})).await.status(), 403, "{algorithm}");
        host.advance(Duration::from_millis(899_999));
        assert_eq!(caller.get(&path).await.status(), 200, "{algorithm}");
        host.advance(Duration::from_millis(1));
        assert_eq!(caller.get(&path).await.status(), 401, "{algorithm}: past from the instant on");
    }
}

#[tokio::test]
async fn a_set_of_keys_gets_in_whoever_signed_with_one_of_them() {
    for (algorithm, token) in [
        ("RS256", RSA_TOKEN),
        ("ES256", include_str!("../../keys/fixtures/es256.jwt")),
        ("EdDSA", include_str!("../../keys/fixtures/eddsa.jwt")),
    ] {
        let keys = include_bytes!("../../keys/fixtures/jwks.json");
        let host = host(algorithm, keys, |issuer| issuer.jwks_file = issuer.key_file.take()).await;

        assert_eq!(host.bearer(token.trim_end()).get("/v1/assets").await.status(), 200, "{algorithm}");
        let stranger = Ec::generate().sign(&claims());
        assert_eq!(host.bearer(&stranger).get("/v1/assets").await.status(), 401, "{algorithm}");
    }
}

#[tokio::test]
async fn a_token_that_is_not_right_in_everything_is_one_401() {
    let host = host("HS256", SECRET, |_| {}).await;
    let expected = Told::of(host.stranger().get("/v1/assets").await).await;

    for (name, value) in [
        ("aud", json!("another")),
        ("aud", json!(["another"])),
        ("aud", json!(null)),
        ("iss", json!("https://other.example")),
        ("iss", json!([ISSUER])),
        ("exp", json!(BEGINNING)),
        ("exp", json!(BEGINNING - 5)),
        ("exp", json!(BEGINNING - 59)),
        ("exp", json!("never")),
        ("exp", json!("99999999999")),
        ("exp", json!(null)),
        ("exp", json!([1])),
        ("nbf", json!(BEGINNING + 61)),
        ("nbf", json!("99999999999")),
        ("iat", json!(BEGINNING + 61)),
        ("tenant", json!("globex")),
        ("tenant", json!("Acme")),
        ("tenant", json!("acme-\u{fc}")),
        ("tenant", json!("acme-eu/..")),
        ("tenant", json!("")),
        ("tenant", json!(null)),
        ("tenant", json!(["acme"])),
        ("scope", json!({"assets:read": true})),
        ("scope", json!([1])),
    ] {
        let mut claims = claims();
        claims[name] = value;
        let token = hs256(SECRET, &claims);
        assert_eq!(Told::of(host.bearer(&token).get("/v1/assets").await).await, expected, "{claims}");
    }
    for name in ["aud", "iss", "exp", "tenant"] {
        let mut claims = claims();
        claims.as_object_mut().expect("an object").remove(name);
        let token = hs256(SECRET, &claims);
        assert_eq!(Told::of(host.bearer(&token).get("/v1/assets").await).await, expected, "no {name}");
    }
}

#[tokio::test]
async fn a_token_that_was_right_and_is_over_stands_in_its_tenants_log_and_a_forged_one_in_none() {
    let host = host("HS256", SECRET, |_| {}).await;
    let over = json!({"iss": ISSUER, "aud": "mediakeep", "sub": "agent-7", "tenant": "acme", "exp": BEGINNING - 1});
    let mut not_theirs = over.clone();
    not_theirs["tenant"] = json!("globex");
    for token in [hs256(SECRET, &over), hs256(&[7; 32], &over), hs256(SECRET, &not_theirs)] {
        assert_eq!(host.bearer(&token).get("/v1/assets").await.status(), 401);
    }
    audit::flush(host.app(), audit::Due::Now).await.expect("written");
    while host.app().index.seal_audit(1_000).await.expect("sealed") > 0 {}

    let rows = Told::of(host.owner("acme").get("/v1/audit/events?type=denied").await).await.json();

    let told = |row: &Value| (row["principal"].clone(), row["details"].clone());
    let rows: Vec<_> = rows["events"].as_array().expect("rows").iter().map(told).collect();
    let expected = json!({"count": 1, "reasons": {"token_expired": 1}});
    assert_eq!(rows, [(json!(format!("{ISSUER}#agent-7")), expected)]);
    let theirs = Told::of(host.owner("globex").get("/v1/audit/events?type=denied").await).await.json();
    assert_eq!(theirs["events"], json!([]));
}

#[tokio::test]
async fn the_key_says_which_algorithm_it_is_and_the_token_does_not() {
    let ec = Ec::generate();
    let public = pem(P256_HEAD, ec.0.public_key().as_ref());
    let host = host("ES256", &public, |_| {}).await;
    let expected = Told::of(host.stranger().get("/v1/assets").await).await;
    let none = |alg: &str| format!("{}.", input(&json!({"alg": alg, "typ": "JWT"}), &claims()));

    for token in [
        none("none"),
        none("None"),
        none("ES256"),
        hs256(&public, &claims()),
        hs256(ec.0.public_key().as_ref(), &claims()),
        RSA_TOKEN.trim_end().to_owned(),
        Ec::generate().sign(&claims()),
        ec.sign_under(&json!({"alg": "ES256", "crit": ["exp"]}), &claims()),
        ec.sign_under(&json!({"alg": "ES384"}), &claims()),
    ] {
        assert_eq!(Told::of(host.bearer(&token).get("/v1/assets").await).await, expected, "{token}");
    }
    assert_eq!(host.bearer(&ec.sign(&claims())).get("/v1/assets").await.status(), 200);
}

#[tokio::test]
async fn an_issuer_gives_no_more_than_it_may() {
    let host =
        host("HS256", SECRET, |issuer| issuer.scopes = Some(vec!["assets:read".into(), "assets:mint".into()])).await;
    let asset = host.owner("acme").upload(png(4, 4)).await;
    let mint = format!("/v1/assets/{}/urls", asset.id);

    for (scope, reads, mints, writes) in [
        (json!("assets:read assets:write assets:mint openid"), 200, 201, 403),
        (json!(["assets:read", "runs:write"]), 200, 403, 403),
        (json!("assets:mint"), 403, 201, 403),
        (json!(""), 403, 403, 403),
        (json!(null), 403, 403, 403),
    ] {
        let mut claims = claims();
        claims["scope"] = scope;
        let token = hs256(SECRET, &claims);
        let caller = host.bearer(&token);
        let told = [
            caller.get("/v1/assets").await.status().as_u16(),
            caller.post(&mint, &json!({"class": "durable"})).await.status().as_u16(),
            caller.post("/v1/assets", &json!({"base64": "aGk="})).await.status().as_u16(),
        ];
        assert_eq!(told, [reads, mints, writes], "{claims}");
    }
}

#[tokio::test]
async fn an_issuer_speaks_for_each_of_its_tenants_apart() {
    let host = host("HS256", SECRET, |_| {}).await;
    let with = |tenant: &str| {
        let mut claims = claims();
        claims["tenant"] = json!(tenant);
        claims["scope"] = json!("assets:read assets:write");
        hs256(SECRET, &claims)
    };
    let (eu, us) = (with("acme-eu"), with("acme-us"));
    let asset = host.bearer(&eu).upload(png(4, 4)).await;

    let path = format!("/v1/assets/{}", asset.id);
    assert_eq!(host.bearer(&eu).get(&path).await.status(), 200);
    assert_eq!(host.bearer(&us).get(&path).await.status(), 404);
    assert_eq!(host.bearer(&us).get(&asset.url).await.status(), 404, "a stranger's credential");
    assert_eq!(host.bearer(&eu).get(&asset.url).await.status(), 200);
}

#[tokio::test]
async fn a_key_file_that_others_may_read_is_refused() {
    let host = host("HS256", SECRET, |_| {}).await;
    let path = host.folder().join("issuer.key");

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("it is ours");
    let refused = host.app().reload(host.app().live().settings.clone());

    assert!(refused.is_err_and(|error| error.to_string().contains("issuer.key")));
    assert_eq!(host.bearer(&hs256(SECRET, &claims())).get("/v1/assets").await.status(), 200, "the old settings stay");
}

/// A host with one issuer, whose key stands in a file that only its owner may read.
async fn host(algorithm: &str, key: &[u8], change: impl FnOnce(&mut Issuer)) -> Host {
    Host::with(|settings| {
        let folder = settings.keys.ring.parent().and_then(Path::parent).expect("the test's folder");
        let path = folder.join("issuer.key");
        std::fs::write(&path, key).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        let mut issuer = Issuer {
            issuer: ISSUER.into(),
            audience: "mediakeep".into(),
            algorithm: algorithm.into(),
            key_file: Some(path),
            jwks_file: None,
            tenants: vec!["acme".into(), "acme-*".into()],
            scopes: None,
        };
        change(&mut issuer);
        settings.access.issuers.push(issuer);
    })
    .await
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "mediakeep", "sub": "agent-7", "tenant": "acme", "scope": "assets:read",
        "iat": BEGINNING, "nbf": BEGINNING, "exp": BEGINNING + 900,
    })
}

fn input(header: &Value, claims: &Value) -> String {
    let encode = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    format!("{}.{}", encode(header), encode(claims))
}

fn signed(input: &str, signature: &[u8]) -> String {
    format!("{input}.{}", BASE64URL_NOPAD.encode(signature))
}

fn hs256(secret: &[u8], claims: &Value) -> String {
    let input = input(&json!({"alg": "HS256", "typ": "JWT"}), claims);
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), input.as_bytes());
    signed(&input, mac.as_ref())
}

/// A key that signs ES256.
struct Ec(EcdsaKeyPair);

impl Ec {
    fn generate() -> Self {
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("randomness");
        Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &SystemRandom::new()).expect("just made"))
    }

    fn sign(&self, claims: &Value) -> String {
        self.sign_under(&json!({"alg": "ES256", "typ": "JWT"}), claims)
    }

    fn sign_under(&self, header: &Value, claims: &Value) -> String {
        let input = input(header, claims);
        let signature = self.0.sign(&SystemRandom::new(), input.as_bytes()).expect("randomness");
        signed(&input, signature.as_ref())
    }
}

/// A key that signs EdDSA.
struct Ed(Ed25519KeyPair);

impl Ed {
    fn generate() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("randomness");
        Self(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("just made"))
    }

    fn sign(&self, claims: &Value) -> String {
        let input = input(&json!({"alg": "EdDSA", "typ": "JWT"}), claims);
        let signature = self.0.sign(input.as_bytes());
        signed(&input, signature.as_ref())
    }
}

fn pem(head: &[u8], key: &[u8]) -> Vec<u8> {
    let der = BASE64.encode(&[head, key].concat());
    format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n").into_bytes()
}
