//! Takes a `media.*` envelope whose payload has its bytes inline, hands them to mediakeep, and prints the envelope with the URL instead.
//!
//! ```sh
//! export MEDIAKEEP_KEY=mk_…
//! cargo run --example offload_envelope -- http://127.0.0.1:8787 run-1 envelope.json    # or the envelope on stdin
//! ```
//!
//! The same envelope may be offloaded again, after a crash or because a node is replayed: its key is made of what it is, so the URL that
//! comes back is the one that came before.

use std::io::{Read, Write};
use std::process::ExitCode;

use again::{Failure, Service, send};
use data_encoding::HEXLOWER;
use reqwest::Method;
use ring::digest;
use serde_json::{Map, Value, json};

mod again;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "offload_envelope: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (server, run, file) = match arguments.as_slice() {
        [server, run] => (server, run, None),
        [server, run, file] => (server, run, Some(file)),
        _ => return Err("usage: offload_envelope SERVER RUN [FILE]".into()),
    };
    let text = match file {
        Some(file) => std::fs::read_to_string(file)?,
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
    };
    let envelope = serde_json::from_str(&text)?;
    let envelope = offload(&Service::at(server)?, run, envelope).await?;
    writeln!(std::io::stdout(), "{envelope:#}")?;
    Ok(())
}

/// The envelope by URL. One that has no bytes inline comes back as it is.
async fn offload(service: &Service, run: &str, mut envelope: Value) -> Result<Value, Failure> {
    if !envelope["type"].as_str().is_some_and(|kind| kind.starts_with("media.")) {
        return Err("this is no media envelope".into());
    }
    let Some(bytes) = envelope["payload"].as_object_mut().and_then(|payload| payload.remove("base64")) else {
        return Ok(envelope);
    };
    let body = asset(&envelope, &bytes);
    let key = key(run, &body);
    let request = service.request(Method::POST, &format!("/v1/runs/{run}/assets"));
    let request = request.header("Idempotency-Key", key).body(body.to_string());
    let answer: Value = serde_json::from_str(&send(request).await?)?;
    // What the bytes are is what was found, not what was said: a consumer believes the payload.
    for member in ["url", "bytes", "mimeType", "durationSeconds"] {
        if let Some(found) = answer["envelope"]["payload"].get(member) {
            envelope["payload"][member] = found.clone();
        }
    }
    if let Some(rendering) = envelope.pointer_mut("/meta/rendering/mimeType") {
        *rendering = answer["asset"]["mimeType"].clone();
    }
    Ok(envelope)
}

/// What is sent: the bytes, and what the envelope says of them.
fn asset(envelope: &Value, bytes: &Value) -> Value {
    let mut body = Map::from_iter([("base64".to_owned(), bytes.clone()), ("delivery".to_owned(), json!("url"))]);
    for (member, place) in [
        ("mimeType", "/payload/mimeType"),
        ("name", "/payload/name"),
        ("alt", "/payload/alt"),
        ("title", "/meta/rendering/title"),
        ("nodeId", "/nodeId"),
        ("envelopeId", "/envelopeId"),
        ("correlationId", "/correlationId"),
        ("source", "/meta/source"),
    ] {
        if let Some(value) = envelope.pointer(place).filter(|value| !value.is_null()) {
            body.insert(member.to_owned(), value.clone());
        }
    }
    Value::Object(body)
}

/// The same for the same envelope, and another for any other.
fn key(run: &str, body: &Value) -> String {
    let hash = digest::digest(&digest::SHA256, format!("{run}\n{body}").as_bytes());
    format!("envelope-{}", HEXLOWER.encode(hash.as_ref()))
}
