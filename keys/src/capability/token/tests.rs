//! The life of a token, what a stranger can do to one, and what holds for every one of them.

mod forged;

use std::collections::HashSet;

use data_encoding::BASE64URL_NOPAD;
use proptest::prelude::*;

use super::*;
use crate::capability::payload::tests::any_claims;
use crate::capability::{Class, Disposition};

const NOW: i64 = 1_800_000_000;
const URL_SAFE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn ring() -> Ring {
    Ring::generate(NOW).expect("randomness")
}

fn durable() -> Claims {
    Claims {
        tenant: "acme".into(),
        asset: "ast_01jd3m4x8yq2w5t7v9b0c1d2e3".into(),
        class: Class::Durable,
        issued_at: NOW,
        generation: 0,
    }
}

fn delivery() -> Claims {
    let class = Class::Delivery {
        expires_at: NOW + 900,
        url_id: "url_01jd3m4x8yq2w5t7v9b0c1d2e3".into(),
        disposition: Some(Disposition::Inline),
        counted: true,
    };
    Claims { class, ..durable() }
}

fn mint(ring: &Ring, claims: &Claims) -> String {
    ring.mint(ring.signing_kid(NOW), claims).expect("the claims can be carried")
}

/// A token with this header and payload under a MAC that holds: what only we could make, and never do.
fn signed(ring: &Ring, header: &str, payload: &str) -> String {
    sign_input(ring, &format!("{}.{}", encode(header), encode(payload)))
}

fn sign_input(ring: &Ring, input: &str) -> String {
    let key = ring.url_keys().next().expect("a ring has a key");
    format!("{input}.{}", encode(key.sign("acme", input.as_bytes())))
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64URL_NOPAD.encode(bytes.as_ref())
}

fn header_of(ring: &Ring) -> String {
    let kid = ring.signing_kid(NOW);
    format!(r#"{{"alg":"HS256","typ":"openwop-media+jwt","kid":"{kid}"}}"#)
}

#[test]
fn a_token_opens_to_what_was_minted() {
    let ring = ring();
    for claims in [durable(), delivery()] {
        let token = mint(&ring, &claims);
        assert_eq!(ring.open(&token), Ok((claims, ring.signing_kid(NOW))));
        assert!(token.len() < 600, "{}", token.len());
    }
}

#[test]
fn the_helper_of_these_tests_signs_as_minting_does() {
    let ring = ring();
    let payload = r#"{"aud":"media","sub":"ast_01jd3m4x8yq2w5t7v9b0c1d2e3","tid":"acme","op":"read","cls":"durable","iat":1800000000,"gen":0}"#;
    assert_eq!(signed(&ring, &header_of(&ring), payload), mint(&ring, &durable()));
}

#[test]
fn the_same_claims_give_the_same_string_after_rotation_and_reload() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("ring.json");
    let first = ring();
    let kid = first.signing_kid(NOW).to_owned();
    let recorded = mint(&first, &durable());

    let rotated = first.rotate(NOW, 0).expect("randomness").rotate(NOW, 60).expect("randomness");
    rotated.save_new(&path).expect("it was not there");
    let reloaded = Ring::load(&path).expect("it was just saved");

    for ring in [&first, &rotated, &reloaded] {
        assert_eq!(ring.mint(&kid, &durable()).expect("the key is kept"), recorded);
        assert_eq!(ring.open(&recorded), Ok((durable(), kid.as_str())));
    }
    assert_ne!(mint(&reloaded, &durable()), recorded, "the new key signs now");
}

#[test]
fn a_key_that_waits_verifies_already() {
    let before = ring().rotate(NOW, 60).expect("randomness");
    let early = before.keys(NOW)[1].kid.clone();
    let token = before.mint(&early, &durable()).expect("any key mints");
    assert_eq!(before.open(&token), Ok((durable(), early.as_str())));
}

#[test]
fn a_retired_keys_tokens_are_dead() {
    let first = ring();
    let kid = first.signing_kid(NOW).to_owned();
    let token = mint(&first, &durable());
    let ring = first.rotate(NOW, 0).expect("randomness").retire(&kid, NOW).expect("the new key signs");

    assert_eq!(ring.open(&token), Err(TokenError::UnknownKey));
    assert!(matches!(ring.mint(&kid, &durable()), Err(KeyError::UnknownKid { .. })));
}

#[test]
fn no_changed_character_goes_unnoticed() {
    let ring = ring();
    for claims in [durable(), delivery()] {
        let token = mint(&ring, &claims).into_bytes();
        for position in 0..token.len() {
            // Every other character of the alphabet, so also the last one's spare bits; and what is in no alphabet.
            for &byte in URL_SAFE.iter().chain(b".=+/ \n\0%") {
                if byte == token[position] {
                    continue;
                }
                let mut changed = token.clone();
                changed[position] = byte;
                let changed = String::from_utf8(changed).expect("all of it is ASCII");
                assert!(ring.open(&changed).is_err(), "{position}: {changed}");
            }
        }
    }
}

#[test]
fn no_cut_or_added_character_goes_unnoticed() {
    let ring = ring();
    let token = mint(&ring, &delivery());
    for length in 0..token.len() {
        assert!(ring.open(&token[..length]).is_err(), "cut at {length}");
    }
    for position in 0..=token.len() {
        for added in ["A", "=", ".", " ", "\n", "\u{feff}"] {
            let changed = format!("{}{added}{}", &token[..position], &token[position..]);
            assert!(ring.open(&changed).is_err(), "{added:?} at {position}");
        }
    }
}

#[test]
fn each_claim_is_under_the_mac() {
    let ring = ring();
    let original = mint(&ring, &delivery());
    let (_, mac) = original.rsplit_once('.').expect("it has three parts");
    let class = |expires_at, url_id: &str, disposition, counted| Class::Delivery {
        expires_at,
        url_id: url_id.into(),
        disposition,
        counted,
    };
    let inline = Some(Disposition::Inline);
    let id = "url_01jd3m4x8yq2w5t7v9b0c1d2e3";
    let tampered = [
        Claims { tenant: "umbrella".into(), ..delivery() },
        Claims { asset: "ast_01jd3m4x8yq2w5t7v9b0c1d2e4".into(), ..delivery() },
        Claims { issued_at: NOW - 1, ..delivery() },
        Claims { generation: 1, ..delivery() },
        Claims { class: Class::Durable, ..delivery() },
        Claims { class: class(NOW + 901, id, inline, true), ..delivery() },
        Claims { class: class(NOW + 900, "url_1", inline, true), ..delivery() },
        Claims { class: class(NOW + 900, id, Some(Disposition::Attachment), true), ..delivery() },
        Claims { class: class(NOW + 900, id, None, true), ..delivery() },
        Claims { class: class(NOW + 900, id, inline, false), ..delivery() },
    ];
    for claims in tampered {
        let honest = mint(&ring, &claims);
        let (input, _) = honest.rsplit_once('.').expect("it has three parts");
        assert_eq!(ring.open(&format!("{input}.{mac}")), Err(TokenError::BadMac), "{claims:?}");
    }
}

#[test]
fn a_token_of_one_tenant_or_ring_is_not_anothers() {
    let (ours, theirs) = (ring(), ring());
    assert_eq!(theirs.open(&mint(&ours, &durable())), Err(TokenError::UnknownKey));

    // Two rings that share the name of a key, as after a restore from the wrong backup.
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("ring.json");
    theirs.save_new(&path).expect("it was not there");
    let text = std::fs::read_to_string(&path).expect("it was just saved");
    let renamed = text.replace(theirs.signing_kid(NOW), ours.signing_kid(NOW));
    std::fs::write(&path, renamed).expect("the test can write");
    let same_name = Ring::load(&path).expect("it is a ring");
    assert_eq!(same_name.open(&mint(&ours, &durable())), Err(TokenError::BadMac));
}

#[test]
fn a_string_beyond_the_bound_is_not_looked_at() {
    let ring = ring();
    let token = mint(&ring, &durable());
    let longer = format!("{token}{}", "A".repeat(MAX_TOKEN + 1 - token.len()));
    assert_eq!(ring.open(&longer), Err(TokenError::TooLong));
    assert_eq!(ring.open(&longer[..MAX_TOKEN]), Err(TokenError::Malformed));
}

#[test]
fn what_is_no_token_at_all_is_malformed() {
    let ring = ring();
    for text in ["", ".", "..", "...", "a", "a.b", "a.b.c", "é.é.é", "favicon.ico", "../../etc/passwd"] {
        let error = ring.open(text).expect_err(text);
        assert!(matches!(error, TokenError::Malformed | TokenError::NonCanonical), "{text}: {error}");
    }
}

#[test]
fn claims_that_no_token_carries_are_not_minted() {
    let ring = ring();
    let kid = ring.signing_kid(NOW);
    let bad = Claims { tenant: "a\",\"tid\":\"b".into(), ..durable() };
    assert!(matches!(ring.mint(kid, &bad), Err(KeyError::BadClaim { member: "tid" })));
}

#[test]
fn labels_are_distinct() {
    let all = [
        TokenError::TooLong,
        TokenError::Malformed,
        TokenError::UnknownKey,
        TokenError::BadMac,
        TokenError::NonCanonical,
    ];
    let labels: HashSet<_> = all.iter().map(|error| error.label()).collect();
    assert_eq!(labels.len(), all.len());
}

proptest! {
    #[test]
    fn any_claims_come_back_and_stay_under_the_bound(claims in any_claims()) {
        let ring = ring();
        let token = mint(&ring, &claims);
        prop_assert!(token.len() < 1024);
        prop_assert_eq!(&token, &mint(&ring, &claims));
        prop_assert_eq!(ring.open(&token), Ok((claims, ring.signing_kid(NOW))));
    }

    #[test]
    fn two_claims_never_share_a_token(one in any_claims(), other in any_claims()) {
        prop_assume!(one != other);
        let ring = ring();
        prop_assert_ne!(mint(&ring, &one), mint(&ring, &other));
    }

    #[test]
    fn a_mac_is_good_for_one_tenant(claims in any_claims(), tenant in "[a-z]{1,8}") {
        prop_assume!(claims.tenant != tenant);
        let ring = ring();
        let theirs = mint(&ring, &claims);
        let ours = mint(&ring, &Claims { tenant, ..claims });
        let (input, _) = ours.rsplit_once('.').expect("it has three parts");
        let (_, mac) = theirs.rsplit_once('.').expect("it has three parts");
        prop_assert_eq!(ring.open(&format!("{input}.{mac}")), Err(TokenError::BadMac));
    }

    #[test]
    fn no_string_opens_or_panics(text in ".{0,200}") {
        prop_assert!(ring().open(&text).is_err());
    }
}
