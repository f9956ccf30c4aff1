//! Takes a run's debug bundle as a host made it, and writes one that may travel: without a byte of its media, and without anything that
//! opens by itself. One that does not pass the check is not written.
//!
//! ```sh
//! export MEDIAKEEP_KEY=mk_…
//! cargo run --example export_bundle -- http://127.0.0.1:8787 bundle.json export.json
//! ```
//!
//! The bytes are stored for the bundle's run; whoever gets the bundle asks for them by the bound URLs in it, with a credential of the
//! tenant. The same bundle may be exported again: what is stored already is found.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use again::{Failure, Service, send};
use reqwest::{Method, RequestBuilder};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

mod again;

/// The most URLs of one request.
const BATCH: usize = 1000;

/// How the answer to a scrub begins.
const BUNDLE: &str = "{\"bundle\":";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "export_bundle: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, from, to] = arguments.as_slice() else {
        return Err("usage: export_bundle SERVER BUNDLE OUT".into());
    };
    let (service, mut says) = (Service::at(server)?, std::io::stderr());

    let scrubbed = send(post(&service, "scrub", std::fs::read_to_string(from)?)).await?;
    let (bundle, done) = parts(&scrubbed)?;
    writeln!(says, "{} media stored, {} places written anew", done["stored"], done["rewritten"])?;

    let checked: Value = serde_json::from_str(&send(post(&service, "check", bundle.to_owned())).await?)?;
    if checked["ok"] != json!(true) {
        for finding in checked["findings"].as_array().into_iter().flatten() {
            writeln!(says, "{} at {}: {}", text(finding, "code"), text(finding, "path"), text(finding, "message"))?;
        }
        return Err(format!("the bundle does not pass the check, and {to} is not written").into());
    }

    let run = run_of(bundle)?;
    let assets = manifest(&service, &run).await?;
    let live = resolve(&service, &assets).await?;
    writeln!(says, "{} assets in the manifest, {live} of them live", assets.len())?;
    write(Path::new(to), bundle)
}

fn post(service: &Service, what: &str, body: String) -> RequestBuilder {
    service.request(Method::POST, &format!("/v1/debug-bundles/{what}")).body(body)
}

/// The bundle as it stands in the answer, byte for byte, and what was done to it.
fn parts(scrubbed: &str) -> Result<(&str, Value), Failure> {
    let rest = scrubbed.strip_prefix(BUNDLE).ok_or("the answer does not begin with the bundle")?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    values.next().ok_or("the answer ends too soon")??;
    let bundle = &rest[..values.byte_offset()];
    let whole: Value = serde_json::from_str(scrubbed)?;
    Ok((bundle, whole["scrub"].clone()))
}

/// Every asset of the run, page by page.
async fn manifest(service: &Service, run: &str) -> Result<Vec<Value>, Failure> {
    let (mut assets, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let request =
            service.request(Method::GET, &format!("/v1/runs/{run}/debug-bundle/manifest")).query(&[("limit", "100")]);
        let request = cursor.iter().fold(request, |request, cursor| request.query(&[("cursor", cursor)]));
        let mut page: Value = serde_json::from_str(&send(request).await?)?;
        if let Some(more) = page["assets"].as_array_mut() {
            assets.append(more);
        }
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return Ok(assets);
        }
    }
}

/// How many of the assets their URLs lead to now. One that the tenant does not have at all should not be in its manifest.
async fn resolve(service: &Service, assets: &[Value]) -> Result<usize, Failure> {
    let mut live = 0;
    for batch in assets.chunks(BATCH) {
        let urls: Vec<&Value> = batch.iter().map(|asset| &asset["url"]).collect();
        let request = post(service, "resolve", json!({"urls": urls}).to_string());
        let answer: Value = serde_json::from_str(&send(request).await?)?;
        for (asset, result) in batch.iter().zip(answer["results"].as_array().into_iter().flatten()) {
            match result["state"].as_str() {
                Some("live") => live += 1,
                Some("expired" | "erased") => {}
                _ => return Err(format!("{} leads nowhere", asset["url"]).into()),
            }
        }
    }
    Ok(live)
}

fn run_of(bundle: &str) -> Result<String, Failure> {
    let bundle: Value = serde_json::from_str(bundle)?;
    let run = bundle.pointer("/run/runId").or_else(|| bundle.get("runId")).and_then(Value::as_str);
    Ok(run.ok_or("the bundle does not say which run it is of")?.to_owned())
}

/// All of it, or nothing: a bundle that was cut off looks like one.
fn write(to: &Path, bundle: &str) -> Result<(), Failure> {
    let beside = to.with_extension("part");
    std::fs::write(&beside, bundle)?;
    std::fs::rename(&beside, to)?;
    Ok(())
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}
