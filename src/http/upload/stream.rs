//! A body as it comes, measured against the `Content-Digest` that it was announced with.

use actix_web::http::header::HeaderMap;
use actix_web::web;
use bytes::Bytes;
use data_encoding::BASE64;
use futures_util::StreamExt;
use ring::digest;

use crate::assets::AssetError;
use crate::error::ApiError;
use crate::http::body::cut_off;

/// A request's body.
pub(super) struct Body {
    payload: web::Payload,
    digest: Option<Expected>,
}

struct Expected {
    hash: digest::Context,
    right: Vec<u8>,
}

impl Body {
    pub(super) fn new(payload: web::Payload, headers: &HeaderMap) -> Result<Self, ApiError> {
        let hash = || digest::Context::new(&digest::SHA256);
        let digest = content_digest(headers)?.map(|right| Expected { hash: hash(), right });
        Ok(Self { payload, digest })
    }

    /// The next bytes; `None` at the end, which is an end only if the digest is right and nothing was cut off.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        match self.payload.next().await {
            Some(Ok(chunk)) => {
                if let Some(expected) = &mut self.digest {
                    expected.hash.update(&chunk);
                }
                Ok(Some(chunk))
            }
            Some(Err(_)) => Err(cut_off()),
            None => self.check_digest().map(|()| None),
        }
    }

    fn check_digest(&mut self) -> Result<(), ApiError> {
        match self.digest.take() {
            Some(expected) if expected.hash.clone().finish().as_ref() != expected.right => {
                Err(AssetError::DigestMismatch { what: "Content-Digest" }.into())
            }
            _ => Ok(()),
        }
    }
}

/// The SHA-256 of `Content-Digest` (RFC 9530); other algorithms are passed over.
fn content_digest(headers: &HeaderMap) -> Result<Option<Vec<u8>>, ApiError> {
    let wrong = || ApiError::validation("Content-Digest: not of the form sha-256=:base64:");
    for line in headers.get_all("content-digest") {
        for member in line.to_str().map_err(|_| wrong())?.split(',') {
            let (name, value) = member.trim().split_once('=').ok_or_else(wrong)?;
            if name != "sha-256" {
                continue;
            }
            let text = value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).ok_or_else(wrong)?;
            let digest = BASE64.decode(text.as_bytes()).map_err(|_| wrong())?;
            return if digest.len() == 32 { Ok(Some(digest)) } else { Err(wrong()) };
        }
    }
    Ok(None)
}
