use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

type Read = Result<(Inline, Vec<u8>), InlineError>;

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = InlineReader::new("acme", Limits::default());
    let mut sink = BytesMut::new();
    let mut bytes = Vec::new();
    for piece in pieces {
        reader.push(piece, &mut sink)?;
        // As the edge does: what was decoded goes on its way before the next piece is read.
        bytes.extend_from_slice(&sink.split());
    }
    Ok((reader.finish()?, bytes))
}

fn read_text(body: &str) -> Read {
    read([body.as_bytes()])
}

fn refusal(body: &str) -> InlineError {
    read_text(body).expect_err("a body to refuse")
}

#[test]
fn every_member_is_read_and_the_bytes_are_decoded() {
    let body = r#" { "mimeType" : "image/png", "name":"\ud55c\uae00.png","alt":"a \"b\" \u00e9","title":null,
        "base64":"aGVs\r\nbG8\u003D", "nodeId":"n","envelopeId":"e","correlationId":"c","source":"user",
        "sha256":"ab","retainUntil":"2030-01-01T00:00:00Z","delivery":"url","tenant":"acme","tenantId":null } "#;
    let text = |text: &str| Some(text.to_owned());
    let (inline, bytes) = read_text(body).expect("a body to accept");

    assert_eq!(bytes, b"hello");
    assert_eq!(inline.payload, Payload::Bytes(5));
    assert_eq!(inline.data_url_type, None);
    let members = RawMembers {
        mime_type: text("image/png"),
        name: text("한글.png"),
        alt: text("a \"b\" é"),
        title: None,
        node_id: text("n"),
        envelope_id: text("e"),
        correlation_id: text("c"),
        source: text("user"),
        sha256: text("ab"),
        retain_until: text("2030-01-01T00:00:00Z"),
        delivery: text("url"),
        url: None,
    };
    assert_eq!(inline.members, members);
}

#[test]
fn the_bytes_may_have_any_of_four_names_and_may_be_none() {
    for name in ["base64", "contentBase64", "data", "dataBase64"] {
        let (inline, bytes) = read_text(&format!(r#"{{"{name}":"+\/+\/"}}"#)).expect("a body to accept");
        assert_eq!((inline.payload, &bytes[..]), (Payload::Bytes(3), &b"\xfb\xff\xbf"[..]));
    }
    let table = [
        (r#"{}"#, Payload::Missing),
        (r#"{"base64":null}"#, Payload::Missing),
        (r#"{"url":"https://example.com/a.png"}"#, Payload::Missing),
        (r#"{"base64":""}"#, Payload::Empty),
        (r#"{"base64":" \n"}"#, Payload::Empty),
        (r#"{"data":"data:image/png;base64,"}"#, Payload::Empty),
        (r#"{"data":null,"base64":"AA"}"#, Payload::Bytes(1)),
    ];
    for (body, expected) in table {
        assert_eq!(read_text(body).map(|(inline, _)| inline.payload), Ok(expected), "{body}");
    }
}

#[test]
fn a_data_url_names_a_type() {
    let (inline, bytes) =
        read_text(r#"{"data":"data:image\/svg+xml;charset=utf-8,%3Csvg\u002F>"}"#).expect("a body to accept");
    assert_eq!(bytes, b"<svg/>");
    assert_eq!(inline.data_url_type.as_deref(), Some("image/svg+xml"));
}

#[test]
fn a_body_that_is_not_as_agreed_is_refused_by_name() {
    let unknown = |member: &str| InlineError::UnknownMember { member: member.to_owned() };
    let twice = |first, second| InlineError::SeveralPayloads { first, second };
    let bad = |offset| InlineError::InvalidBase64(super::super::base64::BadBase64 { offset });
    let table = [
        (r#"{"colour":"red","base64":"AA"}"#, unknown("colour")),
        (r#"{"base64":"AA","a":{"b":[1,"x",{"tenant":"other"}]},"z":2}"#, unknown("a")),
        (r#"{"a\u202eb\u0000\n":1}"#, unknown("a_b__")),
        (r#"{"name":"a","name":"b"}"#, InlineError::DuplicateMember { member: "name" }),
        (r#"{"base64":null,"base64":"AA"}"#, InlineError::DuplicateMember { member: "base64" }),
        (r#"{"base64":"AA","data":"AA"}"#, twice("base64", "data")),
        (r#"{"url":"https://a","data":"AA"}"#, twice("url", "data")),
        (r#"{"base64":5}"#, InlineError::NotText { member: "base64" }),
        (r#"{"base64":["AA"]}"#, InlineError::NotText { member: "base64" }),
        (r#"{"alt":{}}"#, InlineError::NotText { member: "alt" }),
        (r#"{"name":true}"#, InlineError::NotText { member: "name" }),
        (r#"{"base64":"AA\/A AAA"}"#, bad(4)),
        (r#"{"base64":"A+A\u002d"}"#, bad(3)),
        (r#"{"base64":"AAAAA"}"#, bad(4)),
        (r#"{"base64":"AAAé"}"#, bad(3)),
        ("{\"base64\":\"AA\nAA\"}", InlineError::Syntax { offset: 13, what: "a control character in a string" }),
        ("\u{feff}{}", InlineError::Syntax { offset: 0, what: "a byte order mark" }),
        (r#"{"base64":"AA"} x"#, InlineError::Syntax { offset: 16, what: "something after the object" }),
        (r#"{"base64":"AA""#, InlineError::Syntax { offset: 14, what: "the end" }),
        ("", InlineError::Syntax { offset: 0, what: "the end" }),
        (r#"{"alt":"\ud800"}"#, InlineError::Syntax { offset: 14, what: "half of a surrogate pair" }),
    ];
    for (body, expected) in table {
        for size in [1, 2, 3, 1000] {
            assert_eq!(read(body.as_bytes().chunks(size)), Err(expected.clone()), "{body} by {size}");
        }
    }
}

#[test]
fn a_foreign_tenant_is_told_before_an_unknown_member() {
    assert_eq!(refusal(r#"{"colour":[{}],"base64":"AA","tenantId":"other"}"#), InlineError::ForeignTenant);
    assert_eq!(refusal(r#"{"tenant":"acme","tenantId":"other"}"#), InlineError::ForeignTenant);
    assert_eq!(refusal(r#"{"tenant":"other","base64":"!"}"#), InlineError::ForeignTenant);
    assert_eq!(refusal(r#"{"tenant":"acme","tenant":"other"}"#), InlineError::ForeignTenant);
    assert_eq!(refusal(r#"{"tenant":"acme","tenant":"acme"}"#), InlineError::DuplicateMember { member: "tenant" });
    assert!(read_text(r#"{"tenant":"acme","tenantId":"acme"}"#).is_ok());
}

#[test]
fn only_the_bytes_may_be_long() {
    let limits = Limits::default();
    let long = |member: &str, length: usize| format!(r#"{{"{member}":"{}"}}"#, "A".repeat(length));
    assert!(read_text(&long("base64", 1 << 20)).is_ok());
    assert!(read_text(&long("alt", limits.text_bytes)).is_ok());
    let too_long = InlineError::TextTooLong { member: "alt", limit: limits.text_bytes };
    assert_eq!(refusal(&long("alt", limits.text_bytes + 1)), too_long);
    assert_eq!(refusal(&long("content", 1 << 20)), InlineError::UnknownMember { member: "content".to_owned() });
    assert_eq!(refusal(&long(&"é".repeat(999), 1)), InlineError::UnknownMember { member: "é".repeat(64) });
    let blank = " ".repeat(limits.frame_bytes);
    assert_eq!(refusal(&format!("{{{blank}}}")), InlineError::FrameTooLong { limit: limits.frame_bytes });
}

/// A body as some client writes it, and the bytes it carries.
fn written() -> impl Strategy<Value = (Value, Vec<u8>)> {
    let texts = prop::collection::btree_map(
        prop::sample::select(vec!["name", "alt", "title", "source"]),
        any::<String>(),
        0..4,
    );
    (texts, prop::collection::vec(any::<u8>(), 1..200), 0..3).prop_map(|(texts, bytes, form)| {
        let base64 = data_encoding::BASE64.encode(&bytes);
        let payload = match form {
            0 => base64,
            1 => base64.as_bytes().chunks(7).map(|line| String::from_utf8_lossy(line) + "\r\n").collect(),
            _ => format!("data:image/png;base64,{base64}"),
        };
        let mut body = json!(texts);
        body["base64"] = json!(payload);
        (body, bytes)
    })
}

proptest! {
    #[test]
    fn a_body_is_read_however_it_is_written_and_cut(
        (body, bytes) in written(),
        pretty in any::<bool>(),
        size in 1..40_usize,
    ) {
        let text = if pretty { format!("{body:#}") } else { body.to_string().replace('/', "\\/") };
        let (mut inline, decoded) = read(text.as_bytes().chunks(size)).expect("a body to accept");
        prop_assert_eq!(decoded, bytes);
        for name in ["name", "alt", "title", "source"] {
            let read = inline.members.slot(name).and_then(Option::take);
            prop_assert_eq!(read.as_deref(), body[name].as_str(), "{}", name);
        }
    }

    #[test]
    fn a_damaged_body_is_read_alike_by_any_cut_and_never_past_what_serde_reads(
        (body, _) in written(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        size in 1..20_usize,
    ) {
        let mut text = body.to_string().into_bytes();
        for (place, byte) in damage {
            let place = place.index(text.len());
            text[place] = byte;
        }
        let whole = read([&text[..]]);
        prop_assert_eq!(&read(text.chunks(size)), &whole);
        let serde = serde_json::from_slice::<Value>(&text);
        match whole {
            Ok(_) => prop_assert!(serde.is_ok(), "{}", text.escape_ascii()),
            Err(InlineError::Syntax { .. }) => prop_assert!(serde.is_err(), "{}", text.escape_ascii()),
            Err(_) => {}
        }
    }
}
