//! Uploads in parts, as clients of tus 1.0.0 make them.

use data_encoding::BASE64;
use reqwest::{Method, RequestBuilder};

use crate::harness::Caller;
use crate::harness::told::Told;

mod broken;
mod buckets;
mod clients;
mod endings;
mod joined;
mod protocol;
mod shared;
mod writers;

/// The bytes of an upload.
const OCTETS: &str = "application/offset+octet-stream";

/// A key of `Upload-Metadata` with its value.
fn pair(key: &str, value: &str) -> String {
    format!("{key} {}", BASE64.encode(value.as_bytes()))
}

/// A request of the protocol.
fn request(caller: &Caller<'_>, method: Method, url: &str) -> RequestBuilder {
    caller.request(method, url).header("tus-resumable", "1.0.0")
}

async fn told(request: RequestBuilder) -> Told {
    Told::of(request.send().await.expect("an answer")).await
}

/// Asks for a new upload.
async fn create(caller: &Caller<'_>, headers: &[(&str, &str)]) -> Told {
    let asked = request(caller, Method::POST, "/v1/uploads");
    told(headers.iter().fold(asked, |asked, (name, value)| asked.header(*name, *value))).await
}

/// A new upload of that length; its URL.
async fn begun(caller: &Caller<'_>, length: usize, headers: &[(&str, &str)]) -> String {
    let length = length.to_string();
    let headers = [&[("upload-length", length.as_str())], headers].concat();
    let answer = create(caller, &headers).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.header("location").to_owned()
}

/// A PATCH at that offset, without its body.
fn patch(caller: &Caller<'_>, url: &str, offset: usize) -> RequestBuilder {
    request(caller, Method::PATCH, url).header("content-type", OCTETS).header("upload-offset", offset)
}

async fn append(caller: &Caller<'_>, url: &str, offset: usize, bytes: &[u8]) -> Told {
    told(patch(caller, url, offset).body(bytes.to_vec())).await
}

async fn look(caller: &Caller<'_>, url: &str) -> Told {
    told(request(caller, Method::HEAD, url)).await
}

/// Where the upload goes on.
async fn offset(caller: &Caller<'_>, url: &str) -> usize {
    let answer = look(caller, url).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("upload-offset").parse().expect("a number")
}

/// The bytes of the asset that was made.
async fn bytes_of(caller: &Caller<'_>, answer: &Told) -> Vec<u8> {
    let id = answer.header("mediakeep-asset-id");
    let content = caller.get(&format!("/v1/assets/{id}/content")).await;
    assert_eq!(content.status(), 200, "{answer:?}");
    content.bytes().await.expect("the bytes").to_vec()
}

/// How many assets the caller has.
async fn assets(caller: &Caller<'_>) -> usize {
    let page: serde_json::Value = caller.get("/v1/assets").await.json().await.expect("JSON");
    page["assets"].as_array().expect("a list").len()
}
