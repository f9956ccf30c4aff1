//! `http/safe-fetch`: what the guarded fetcher makes of one URL (RFC 0076 §B). It is the fetcher of every other request, with its settings;
//! only the bytes are not read.

use std::net::IpAddr;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Seam;
use crate::access::Scope;
use crate::error::ApiError;
use crate::http::body::{answer, typed};
use crate::http::content::not_fetched;
use crate::http::extract::deny;
use crate::remote::RemoteError;

/// A fetch to be judged.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    url: String,
    #[serde(default)]
    init: Option<Init>,
    /// Where the URL's name is taken to lead, once it was looked at.
    #[serde(default)]
    simulate_rebind_to: Option<String>,
}

/// How it is to be asked for. No header is passed on: they are only looked at.
#[derive(Debug, Deserialize)]
struct Init {
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
}

/// Asks for the URL, unless it is one that is not to be asked for.
pub(super) async fn fetch(seam: &Seam, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    seam.needs(Scope::AssetsWrite)?;
    let call: Call = typed(Value::Object(seam.body(payload).await?))?;
    let rebound: Option<IpAddr> = match &call.simulate_rebind_to {
        None => None,
        Some(address) => {
            Some(address.parse().map_err(|_| ApiError::validation("simulateRebindTo: expected an address"))?)
        }
    };
    if let Some(init) = &call.init {
        if init.method.as_ref().is_some_and(|method| !method.eq_ignore_ascii_case("GET")) {
            return Err(ApiError::validation("init.method: nothing is fetched but by GET"));
        }
        if init.headers.iter().any(|(name, value)| upgrades(name, value)) {
            return Ok(blocked("upgrade"));
        }
    }
    match seam.app.remote.probe(&seam.app.settings.remote, &call.url, rebound).await {
        Ok(status) => Ok(answer(StatusCode::OK, &json!({"outcome": "fetched", "status": status}))),
        Err(RemoteError::Refused(_)) => {
            deny(&seam.request, |denials| denials.credential(&seam.caller, "fetch_refused"));
            Ok(blocked("ssrf"))
        }
        Err(error) => Err(not_fetched(error)),
    }
}

fn blocked(why: &str) -> HttpResponse {
    answer(StatusCode::OK, &json!({"outcome": "blocked", "blocked": why}))
}

/// Whether a header asks for another protocol on the same connection (RFC 9110 §7.8).
fn upgrades(name: &str, value: &Value) -> bool {
    let asks = |value: &Value| {
        let mut options = value.as_str().unwrap_or_default().split(',');
        options.any(|option| option.trim().eq_ignore_ascii_case("upgrade"))
    };
    match name.to_ascii_lowercase().as_str() {
        "upgrade" => true,
        "connection" => asks(value) || value.as_array().into_iter().flatten().any(asks),
        _ => false,
    }
}
