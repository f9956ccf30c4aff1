//! Somebody who calls, and what is answered.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use super::{Host, form};

/// Somebody who calls.
#[derive(Clone)]
pub struct Caller<'h> {
    pub host: &'h Host,
    pub(super) credential: Option<String>,
}

/// What an ingest answered.
#[derive(Debug, Clone)]
pub struct Asset {
    /// The whole answer.
    pub answer: Value,
    /// The asset's id.
    pub id: String,
    /// The durable URL.
    pub url: String,
}

impl Caller<'_> {
    /// A request to a path, or to a whole URL.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = if path.starts_with("http") { path.to_owned() } else { self.host.url(path) };
        let request = self.host.client.request(method, url);
        match &self.credential {
            Some(credential) => request.bearer_auth(credential),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.expect("an answer")
    }

    pub async fn head(&self, path: &str) -> Response {
        self.request(Method::HEAD, path).send().await.expect("an answer")
    }

    pub async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).send().await.expect("an answer")
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        self.request(Method::POST, path).json(body).send().await.expect("an answer")
    }

    pub async fn put(&self, path: &str, body: &Value) -> Response {
        self.request(Method::PUT, path).json(body).send().await.expect("an answer")
    }

    pub async fn patch(&self, path: &str, body: &Value) -> Response {
        self.request(Method::PATCH, path).json(body).send().await.expect("an answer")
    }

    /// A request that ingests into the run `run-1`, without its body.
    pub fn ingest(&self) -> RequestBuilder {
        self.request(Method::POST, "/v1/runs/run-1/assets")
    }

    /// Sends an inline body into the run `run-1`.
    pub async fn inline(&self, body: &Value) -> Response {
        self.ingest().json(body).send().await.expect("an answer")
    }

    /// Sends a form into the run `run-1`.
    pub async fn form(&self, form: form::Form) -> Response {
        self.ingest().header("content-type", form::TYPE).body(form.end()).send().await.expect("an answer")
    }

    /// Sends bytes of that type into the run `run-1`, with a query.
    pub async fn raw(&self, query: &str, mime_type: &str, bytes: impl Into<reqwest::Body>) -> Response {
        let request = self.request(Method::POST, &format!("/v1/runs/run-1/assets{query}"));
        request.header("content-type", mime_type).body(bytes).send().await.expect("an answer")
    }

    /// Sends bytes into a run as they are.
    pub async fn upload_to(&self, run: &str, bytes: impl Into<Vec<u8>>) -> Asset {
        self.upload_at(&format!("/v1/runs/{run}/assets"), bytes.into()).await
    }

    /// Sends bytes into the run `run-1`.
    pub async fn upload(&self, bytes: impl Into<Vec<u8>>) -> Asset {
        self.upload_to("run-1", bytes).await
    }

    /// Sends bytes that no run references.
    pub async fn upload_loose(&self, bytes: impl Into<Vec<u8>>) -> Asset {
        self.upload_at("/v1/assets", bytes.into()).await
    }

    async fn upload_at(&self, path: &str, bytes: Vec<u8>) -> Asset {
        let request = self.request(Method::POST, path).header("content-type", "application/octet-stream");
        asset(request.body(bytes).send().await.expect("an answer")).await
    }

    /// A delivery URL that lives so many seconds.
    pub async fn share(&self, asset: &Asset, seconds: i64) -> String {
        let body = json!({"class": "delivery", "expiresInSeconds": seconds});
        let answer = self.post(&format!("/v1/assets/{}/urls", asset.id), &body).await;
        assert_eq!(answer.status(), 201);
        let answer: Value = answer.json().await.expect("JSON");
        answer["url"].as_str().expect("a URL").to_owned()
    }

    /// The asset object.
    pub async fn show(&self, asset: &Asset) -> Value {
        let answer = self.get(&format!("/v1/assets/{}", asset.id)).await;
        assert_eq!(answer.status(), 200);
        answer.json().await.expect("JSON")
    }
}

/// An ingest's answer, which has to be a 201.
pub async fn asset(answer: Response) -> Asset {
    let status = answer.status();
    let answer: Value = answer.json().await.expect("JSON");
    assert_eq!(status, 201, "{answer}");
    let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).expect(pointer).to_owned();
    Asset { id: text("/asset/assetId"), url: text("/url"), answer }
}

/// A refusal's body, which has to be the closed object.
pub async fn refusal(answer: Response) -> Value {
    let status = answer.status();
    assert!(status.is_client_error() || status.is_server_error(), "{status}");
    let body: Value = answer.json().await.expect("a refusal is JSON");
    let members: Vec<&String> = body.as_object().expect("an object").keys().collect();
    assert!(members.iter().all(|name| ["error", "message", "details"].contains(&name.as_str())), "{body}");
    assert!(body["error"].is_string() && body["message"].is_string(), "{body}");
    body
}
