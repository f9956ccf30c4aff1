//! Tokens whose MAC holds and which we never made: what would pass if the MAC were all that is looked at.

use super::*;

#[test]
fn another_header_is_refused_though_its_mac_holds() {
    let ring = ring();
    let kid = ring.signing_kid(NOW).to_owned();
    let payload = payload::write(&durable());
    let table = [
        (r#"{"alg":"none","typ":"openwop-media+jwt","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"None","typ":"openwop-media+jwt","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"RS256","typ":"openwop-media+jwt","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS512","typ":"openwop-media+jwt","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"hs256","typ":"openwop-media+jwt","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"JWT","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"openwop-interrupt+jwt","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"OpenWOP-Media+JWT","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt"}"#, TokenError::NonCanonical),
        (r#"{"typ":"openwop-media+jwt","alg":"HS256","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256", "typ":"openwop-media+jwt","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"KID","crit":["x"]}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"KID","crit":[]}"#, TokenError::NonCanonical),
        (
            r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"KID","jwk":{"kty":"oct","k":"AA"}}"#,
            TokenError::NonCanonical,
        ),
        (
            r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"KID","jku":"https://evil.example"}"#,
            TokenError::NonCanonical,
        ),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"KID","kid":"KID"}"#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"KID"} "#, TokenError::NonCanonical),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"../../k"}"#, TokenError::UnknownKey),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":""}"#, TokenError::UnknownKey),
        (r#"{"alg":"HS256","typ":"openwop-media+jwt","kid":"kunknown0"}"#, TokenError::UnknownKey),
        ("", TokenError::NonCanonical),
        ("{}", TokenError::NonCanonical),
    ];
    for (header, expected) in table {
        let token = signed(&ring, &header.replace("KID", &kid), &payload);
        assert_eq!(ring.open(&token), Err(expected), "{header}");
    }
}

#[test]
fn the_audit_keys_name_signs_no_url() {
    let ring = ring();
    let header = format!(r#"{{"alg":"HS256","typ":"openwop-media+jwt","kid":"{}"}}"#, ring.audit_kid());
    let token = signed(&ring, &header, &payload::write(&durable()));
    assert_eq!(ring.open(&token), Err(TokenError::UnknownKey));
    assert!(ring.mint(ring.audit_kid(), &durable()).is_err());
}

#[test]
fn another_payload_is_refused_though_its_mac_holds() {
    let ring = ring();
    let header = header_of(&ring);
    let start = r#""aud":"media","sub":"ast_1","tid":"acme","op":"read""#;
    let lasting = r#""cls":"durable","iat":7,"gen":0"#;
    let passing = r#""cls":"delivery","iat":7,"gen":0"#;
    let good = [
        format!("{{{start},{lasting}}}"),
        format!(r#"{{{start},{passing},"exp":9,"jti":"u"}}"#),
        format!(r#"{{{start},{passing},"exp":9,"jti":"u","dsp":"attachment","cnt":true}}"#),
    ];
    for payload in &good {
        assert!(ring.open(&signed(&ring, &header, payload)).is_ok(), "{payload}");
    }
    let bad = [
        // Another spelling of the same.
        format!("{{{start},{lasting}}}\n"),
        format!(r#"{{{start},"cls":"durable","iat":07,"gen":0}}"#),
        format!(r#"{{{start},"cls":"durable","gen":0,"iat":7}}"#),
        format!(r#"{{{start},"cls":"durable","iat":7.0,"gen":0}}"#),
        format!(r#"{{{start},"cls":"durable","iat":7e0,"gen":0}}"#),
        format!(r#"{{{start},"cls":"durable","iat":7,"gen":-0}}"#),
        format!(r#"{{{start},"cls":"dur\u0061ble","iat":7,"gen":0}}"#),
        format!(r#"{{{start},{lasting},"exp":null}}"#),
        format!(r#"{{{start},{passing},"exp":9,"jti":"u","dsp":null}}"#),
        format!(r#"{{{start},{passing},"exp":9,"jti":"u","cnt":false}}"#),
        // More, less, twice.
        format!(r#"{{{start},{lasting},"admin":true}}"#),
        format!(r#"{{{start},{lasting},"exp":9}}"#),
        format!(r#"{{{start},{lasting},"jti":"u"}}"#),
        format!(r#"{{{start},{lasting},"cnt":true}}"#),
        format!(r#"{{{start},{lasting},"gen":0}}"#),
        format!(r#"{{{start},{passing}}}"#),
        format!(r#"{{{start},{passing},"exp":9}}"#),
        format!(r#"{{{start},{passing},"jti":"u"}}"#),
        format!(r#"{{{start},"cls":"durable","iat":7}}"#),
        // Another type or value.
        format!(r#"{{{start},{passing},"exp":"9","jti":"u"}}"#),
        format!(r#"{{{start},{passing},"exp":"never","jti":"u"}}"#),
        format!(r#"{{{start},{passing},"exp":null,"jti":"u"}}"#),
        format!(r#"{{{start},{passing},"exp":[1],"jti":"u"}}"#),
        format!(r#"{{{start},{passing},"exp":9.5,"jti":"u"}}"#),
        format!(r#"{{{start},{passing},"exp":99999999999999999999,"jti":"u"}}"#),
        format!(r#"{{{start},{passing},"exp":9,"jti":""}}"#),
        format!(r#"{{{start},{passing},"exp":9,"jti":"a b"}}"#),
        format!(r#"{{{start},{passing},"exp":9,"jti":"u","dsp":"page"}}"#),
        format!(r#"{{{start},{passing},"exp":9,"jti":"u","cnt":1}}"#),
        format!(r#"{{{start},"cls":"eternal","iat":7,"gen":0}}"#),
        format!(r#"{{{start},"cls":"durable","iat":7,"gen":4294967296}}"#),
        format!(r#"{{"aud":"media","sub":"ast_1","tid":"acme","op":"write",{lasting}}}"#),
        format!(r#"{{"aud":"media","sub":"","tid":"acme","op":"read",{lasting}}}"#),
        format!(r#"{{"aud":"media","sub":"../x","tid":"acme","op":"read",{lasting}}}"#),
    ];
    for payload in bad {
        assert_eq!(ring.open(&signed(&ring, &header, &payload)), Err(TokenError::NonCanonical), "{payload}");
    }
}

#[test]
fn what_names_no_tenant_is_malformed() {
    let ring = ring();
    let header = header_of(&ring);
    let payloads: [&[u8]; 20] = [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xff",
        br#"{"tid":7}"#,
        br#"{"tid":"acme","tid":"acme"}"#,
        br#"{"tid":"acme""#,
        br#"{"tid":"acme"}"#,
        br#"{"sub":"ast_1","aud":"media","tid":"acme"}"#,
        br#"{"aud":"interrupt","sub":"ast_1","tid":"acme"}"#,
        br#"{"aud":["media"],"sub":"ast_1","tid":"acme"}"#,
        br#"{ "aud":"media","sub":"ast_1","tid":"acme"}"#,
        br#"{"aud":"media","sub":"ast_1", "tid":"acme"}"#,
        br#"{"aud":"media","sub":"ast_1","tid":"acme"#,
        br#"{"aud":"media","sub":"ast_1","tid":""}"#,
        br#"{"aud":"media","sub":"ast_1","tid":".acme"}"#,
        br#"{"aud":"media","sub":"ast_1","tid":"\u0061cme"}"#,
        br#"{"aud":"media","sub":"ast_\"1","tid":"acme"}"#,
        b"\xef\xbb\xbf{\"tid\":\"acme\"}",
    ];
    for payload in payloads {
        let token = sign_input(&ring, &format!("{}.{}", encode(&header), encode(payload)));
        assert_eq!(ring.open(&token), Err(TokenError::Malformed), "{}", payload.escape_ascii());
    }
}

#[test]
fn base64_has_one_spelling() {
    let ring = ring();
    let (header, payload) = (encode(header_of(&ring)), encode(payload::write(&durable())));
    for payload in [format!("{payload}="), format!("{payload}=="), format!("{payload}A"), format!(" {payload}")] {
        let token = sign_input(&ring, &format!("{header}.{payload}"));
        assert_eq!(ring.open(&token), Err(TokenError::Malformed), "{payload}");
    }
}

#[test]
fn the_spare_bits_of_the_last_character_are_zero() {
    let ring = ring();
    for asset in ["a", "ab", "abc"] {
        let claims = Claims { asset: asset.into(), ..durable() };
        let token = mint(&ring, &claims);
        let (input, _) = token.rsplit_once('.').expect("it has three parts");
        let (start, last) = input.split_at(input.len() - 1);
        let opened = URL_SAFE
            .iter()
            .filter(|&&byte| {
                let changed = sign_input(&ring, &format!("{start}{}", char::from(byte)));
                ring.open(&changed) == Ok((claims.clone(), ring.signing_kid(NOW)))
            })
            .map(|&byte| char::from(byte).to_string());
        assert_eq!(opened.collect::<Vec<_>>(), [last], "{asset}");
    }
}
