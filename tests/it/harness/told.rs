//! An answer, all of it, as one value that can be held against another.

use std::collections::BTreeMap;

use bytes::Bytes;
use reqwest::Response;
use serde_json::Value;

/// What was answered, without what differs between any two answers: `Date` and `X-Request-Id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub status: u16,
    pub headers: BTreeMap<String, Vec<String>>,
    pub body: Bytes,
}

impl Told {
    /// Reads the answer to its end.
    pub async fn of(answer: Response) -> Self {
        let status = answer.status().as_u16();
        let mut headers = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in answer.headers() {
            let value = value.to_str().expect("a header of text").to_owned();
            headers.entry(name.to_string()).or_default().push(value);
        }
        headers.remove("date");
        assert!(headers.remove("x-request-id").is_some(), "an answer has a name");
        Self { status, headers, body: answer.bytes().await.expect("a body to its end") }
    }

    /// The one line of that header; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        let lines = self.headers.get(name).map_or(&[][..], Vec::as_slice);
        assert!(lines.len() < 2, "{name} is there {} times", lines.len());
        lines.first().map_or("", String::as_str)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// `error`, and `details.reason` behind a colon if there is one.
    pub fn refusal(&self) -> String {
        let body = self.json();
        let code = body["error"].as_str().expect("a code").to_owned();
        match body["details"]["reason"].as_str() {
            Some(reason) => format!("{code}: {reason}"),
            None => code,
        }
    }
}
