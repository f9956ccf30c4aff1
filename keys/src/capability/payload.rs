//! Claims as JSON, in the one order and spelling that a token has, and back.

use std::fmt::Write;

use serde::Deserialize;

use super::{Claims, Class, Disposition};

/// The claims as the token's payload. [`check`] has seen that no string needs an escape.
pub(super) fn write(claims: &Claims) -> String {
    let Claims { tenant, asset, class, issued_at, generation } = claims;
    let mut json = String::with_capacity(ROOM);
    push(&mut json, &[BEFORE_ASSET, asset, r#"""#, BEFORE_TENANT, tenant, r#"","op":"read","cls":""#]);
    match class {
        Class::Durable => push(&mut json, &["durable"]),
        Class::Delivery { .. } => push(&mut json, &["delivery"]),
    }
    push_number(&mut json, r#"","iat":"#, *issued_at);
    push_number(&mut json, r#","gen":"#, i64::from(*generation));
    if let Class::Delivery { expires_at, url_id, disposition, counted } = class {
        push_number(&mut json, r#","exp":"#, *expires_at);
        push(&mut json, &[r#","jti":""#, url_id, r#"""#]);
        match disposition {
            Some(Disposition::Inline) => push(&mut json, &[r#","dsp":"inline""#]),
            Some(Disposition::Attachment) => push(&mut json, &[r#","dsp":"attachment""#]),
            None => {}
        }
        if *counted {
            push(&mut json, &[r#","cnt":true"#]);
        }
    }
    json.push('}');
    json
}

/// Enough for ids as the service makes them, so that a token is one allocation.
const ROOM: usize = 256;

/// Each request writes a payload, to compare: strings are appended, which `write!` does in several times the time.
fn push(json: &mut String, parts: &[&str]) {
    for part in parts {
        json.push_str(part);
    }
}

fn push_number(json: &mut String, name: &str, number: i64) {
    json.push_str(name);
    write!(json, "{number}").expect("writing to a string does not fail");
}

/// The claims of a payload, or nothing. Whether it was spelled as we spell it is for the caller, who writes it again.
pub(super) fn read(json: &[u8]) -> Option<Claims> {
    let payload: Payload<'_> = serde_json::from_slice(json).ok()?;
    if payload.aud != "media" || payload.op != "read" {
        return None;
    }
    let class = match payload.cls {
        "durable" => Class::Durable,
        "delivery" => Class::Delivery {
            expires_at: payload.exp?,
            url_id: payload.jti?.to_owned(),
            disposition: match payload.dsp {
                None => None,
                Some("inline") => Some(Disposition::Inline),
                Some("attachment") => Some(Disposition::Attachment),
                Some(_) => return None,
            },
            counted: payload.cnt.unwrap_or(false),
        },
        _ => return None,
    };
    let claims = Claims {
        tenant: payload.tid.to_owned(),
        asset: payload.sub.to_owned(),
        class,
        issued_at: payload.iat,
        generation: payload.generation,
    };
    check(&claims).is_ok().then_some(claims)
}

/// The tenant that a payload names: all that is read before its MAC holds. It stands where we put it or nowhere, so that
/// no parser of JSON ever sees what a stranger wrote.
pub(super) fn tenant_of(json: &[u8]) -> Option<&str> {
    let json = std::str::from_utf8(json).ok()?;
    let (_, after_asset) = json.strip_prefix(BEFORE_ASSET)?.split_once('"')?;
    let (tenant, _) = after_asset.strip_prefix(BEFORE_TENANT)?.split_once('"')?;
    is_tenant(tenant).then_some(tenant)
}

const BEFORE_ASSET: &str = r#"{"aud":"media","sub":""#;
/// After the quotation mark that ends the asset.
const BEFORE_TENANT: &str = r#","tid":""#;

/// The claims can be written without an escape, and read back; otherwise the member that cannot.
pub(super) fn check(claims: &Claims) -> Result<(), &'static str> {
    if !is_tenant(&claims.tenant) {
        return Err("tid");
    }
    if !is_id(&claims.asset) {
        return Err("sub");
    }
    match &claims.class {
        Class::Delivery { url_id, .. } if !is_id(url_id) => Err("jti"),
        Class::Delivery { .. } | Class::Durable => Ok(()),
    }
}

fn is_tenant(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    (1..=64).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(allowed)
}

fn is_id(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b':' | b'-');
    (1..=128).contains(&id.len()) && id.bytes().all(allowed)
}

/// Borrowed strings refuse escapes; what is not known, or named twice, is refused by the derived code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload<'a> {
    aud: &'a str,
    sub: &'a str,
    tid: &'a str,
    op: &'a str,
    cls: &'a str,
    iat: i64,
    #[serde(rename = "gen")]
    generation: u32,
    exp: Option<i64>,
    jti: Option<&'a str>,
    dsp: Option<&'a str>,
    cnt: Option<bool>,
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any claims that a token can carry.
    pub(in super::super) fn any_claims() -> impl Strategy<Value = Claims> {
        let disposition = prop_oneof![Just(None), Just(Some(Disposition::Inline)), Just(Some(Disposition::Attachment))];
        let delivery = (any::<i64>(), "[A-Za-z0-9._~:-]{1,128}", disposition, any::<bool>()).prop_map(
            |(expires_at, url_id, disposition, counted)| Class::Delivery { expires_at, url_id, disposition, counted },
        );
        let class = prop_oneof![Just(Class::Durable), delivery];
        ("[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", "[A-Za-z0-9._~:-]{1,128}", class, any::<i64>(), any::<u32>()).prop_map(
            |(tenant, asset, class, issued_at, generation)| Claims { tenant, asset, class, issued_at, generation },
        )
    }

    proptest! {
        #[test]
        fn claims_are_read_back_as_they_were_written(claims in any_claims()) {
            let json = write(&claims);
            prop_assert_eq!(tenant_of(json.as_bytes()), Some(claims.tenant.as_str()));
            prop_assert_eq!(read(json.as_bytes()), Some(claims));
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = (read(&bytes), tenant_of(&bytes));
        }
    }

    #[test]
    fn the_spelling_is_the_documented_one() {
        let durable =
            Claims { tenant: "acme".into(), asset: "ast_1".into(), class: Class::Durable, issued_at: 7, generation: 2 };
        let expected = r#"{"aud":"media","sub":"ast_1","tid":"acme","op":"read","cls":"durable","iat":7,"gen":2}"#;
        assert_eq!(write(&durable), expected);

        let class = Class::Delivery {
            expires_at: 9,
            url_id: "url_1".into(),
            disposition: Some(Disposition::Attachment),
            counted: true,
        };
        let expected = concat!(
            r#"{"aud":"media","sub":"ast_1","tid":"acme","op":"read","cls":"delivery","iat":7,"gen":2,"#,
            r#""exp":9,"jti":"url_1","dsp":"attachment","cnt":true}"#,
        );
        assert_eq!(write(&Claims { class, ..durable }), expected);
    }

    #[test]
    fn strings_that_would_need_an_escape_are_refused() {
        let good =
            Claims { tenant: "acme".into(), asset: "ast_1".into(), class: Class::Durable, issued_at: 0, generation: 0 };
        assert_eq!(check(&good), Ok(()));
        for bad in ["", ".", ".acme", "a b", "a/b", "a\"", "a\\", "é", "a\n", &"a".repeat(65)] {
            assert_eq!(check(&Claims { tenant: bad.into(), ..good.clone() }), Err("tid"), "{bad:?}");
        }
        for bad in ["", "a b", "a/b", "a\"", "a\\", "é", "\0", &"a".repeat(129)] {
            assert_eq!(check(&Claims { asset: bad.into(), ..good.clone() }), Err("sub"), "{bad:?}");
            let class = Class::Delivery { expires_at: 0, url_id: bad.into(), disposition: None, counted: false };
            assert_eq!(check(&Claims { class, ..good.clone() }), Err("jti"), "{bad:?}");
        }
    }
}
