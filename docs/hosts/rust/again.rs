//! Requests that are sent again for as long as that helps. Every request here may be: reading changes nothing, and what stores something
//! names itself by an `Idempotency-Key` or finds what an earlier attempt stored.

use std::error::Error;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// So often a request is sent.
const ATTEMPTS: u32 = 5;

/// What the service wishes is done, up to this; a quota asks for a minute.
const LONGEST: Duration = Duration::from_secs(60);

/// What goes wrong is told to a person.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// A client of a service, with the key from the environment.
pub(crate) struct Service {
    client: Client,
    base: String,
    key: String,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Service {
    /// The service at that address; `MEDIAKEEP_KEY` is the credential.
    pub(crate) fn at(base: &str) -> Result<Self, Failure> {
        let key = std::env::var("MEDIAKEEP_KEY").map_err(|_| "MEDIAKEEP_KEY: an API key is needed")?;
        // The process chooses its own cryptography; a second choice is refused, and then there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().connect_timeout(Duration::from_secs(10)).build()?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), key })
    }

    /// A request to that path; what is sent with it is JSON.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key);
        request.header("content-type", "application/json")
    }
}

/// Sends the request until the service has done it, or says that it will not. Gives the text of its answer.
pub(crate) async fn send(request: RequestBuilder) -> Result<String, Failure> {
    let mut attempt = 1;
    loop {
        let again = request.try_clone().ok_or("a request whose body is a stream is sent once")?;
        let (wait, failure): (Duration, Failure) = match again.send().await {
            Ok(answer) if answer.status().is_success() => return Ok(answer.text().await?),
            Ok(answer) => match wait(&answer) {
                Some(wait) => (wait, refusal(answer).await),
                None => return Err(refusal(answer).await),
            },
            // Nobody knows whether it was done: that is what the key is for.
            Err(error) => (Duration::from_secs(1 << attempt.min(5)), error.without_url().into()),
        };
        if attempt == ATTEMPTS {
            return Err(failure);
        }
        attempt += 1;
        tokio::time::sleep(wait.min(LONGEST)).await;
    }
}

/// How long to wait before it is sent again; `None`: the same answer would come.
fn wait(answer: &Response) -> Option<Duration> {
    let said = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let said = said.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    match answer.status() {
        // Too many at a time, or a store that is down.
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some(said.unwrap_or(Duration::from_secs(2))),
        // Only that the same request is still running has a `Retry-After`; other conflicts stay.
        StatusCode::CONFLICT => said,
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => Some(Duration::from_secs(2)),
        _ => None,
    }
}

/// What the service says is wrong.
async fn refusal(answer: Response) -> Failure {
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap_or_default();
    let text = |member: &str| body[member].as_str().unwrap_or_default().to_owned();
    format!("{status} {}: {}", text("error"), text("message")).into()
}
