//! A body as it comes, measured against the `Content-Digest` that it was announced with.

use std::time::Duration;

use actix_web::http::header::HeaderMap;
use actix_web::web;
use bytes::Bytes;
use data_encoding::BASE64;
use futures_util::StreamExt;
use ring::digest;

use crate::assets::AssetError;
use crate::error::ApiError;
use crate::http::body::{PATIENCE, cut_off, stopped};

/// A request's body.
pub(in crate::http) struct Body {
    payload: web::Payload,
    digest: Option<Expected>,
    patience: Duration,
    is_empty: bool,
}

struct Expected {
    hash: digest::Context,
    right: Vec<u8>,
}

impl Body {
    pub(in crate::http) fn new(payload: web::Payload, headers: &HeaderMap) -> Result<Self, ApiError> {
        let hash = || digest::Context::new(&digest::SHA256);
        let digest = content_digest(headers)?.map(|right| Expected { hash: hash(), right });
        Ok(Self { payload, digest, patience: PATIENCE, is_empty: true })
    }

    /// The same of a body that may have no bytes.
    pub(in crate::http) fn or_empty(self) -> Self {
        Self { is_empty: false, ..self }
    }

    /// Whether its bytes are good only as a whole.
    pub(in crate::http) fn has_digest(&self) -> bool {
        self.digest.is_some()
    }

    /// The next bytes; `None` at the end, which is an end only if there were any, the digest is right and nothing was cut off.
    pub(in crate::http) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let next = tokio::time::timeout(self.patience, self.payload.next()).await;
        match next.map_err(|_| stopped())? {
            Some(Ok(chunk)) => {
                self.is_empty &= chunk.is_empty();
                if let Some(expected) = &mut self.digest {
                    expected.hash.update(&chunk);
                }
                Ok(Some(chunk))
            }
            Some(Err(_)) => Err(cut_off()),
            None if self.is_empty => Err(AssetError::Empty.into()),
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

/// The SHA-256 of `Content-Digest` (RFC 9530); other algorithms are passed over. Of several the last counts (RFC 8941).
fn content_digest(headers: &HeaderMap) -> Result<Option<Vec<u8>>, ApiError> {
    let wrong = || ApiError::validation("Content-Digest: not of the form sha-256=:base64:");
    let mut found = None;
    for line in headers.get_all("content-digest") {
        for member in line.to_str().map_err(|_| wrong())?.split(',') {
            let (name, value) = member.trim().split_once('=').ok_or_else(wrong)?;
            if !name.eq_ignore_ascii_case("sha-256") {
                continue;
            }
            // Parameters mean nothing here.
            let value = value.split(';').next().unwrap_or_default().trim();
            let text = value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).ok_or_else(wrong)?;
            let digest = BASE64.decode(text.as_bytes()).map_err(|_| wrong())?;
            if digest.len() != 32 {
                return Err(wrong());
            }
            found = Some(digest);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use actix_web::dev::Payload;
    use actix_web::error::PayloadError;
    use actix_web::test::TestRequest;
    use actix_web::{FromRequest, HttpRequest};
    use futures_util::Stream;
    use futures_util::stream::{iter, pending};

    use super::*;

    type Piece = Result<Bytes, PayloadError>;

    async fn body(pieces: impl Stream<Item = Piece> + 'static) -> Body {
        let request: HttpRequest = TestRequest::default().to_http_request();
        let mut payload = Payload::Stream { payload: Box::pin(pieces) as Pin<Box<dyn Stream<Item = Piece>>> };
        let payload = web::Payload::from_request(&request, &mut payload).await.expect("any payload is one");
        Body { patience: Duration::from_millis(20), ..Body::new(payload, request.headers()).expect("no digest") }
    }

    #[actix_web::test]
    async fn a_sender_that_falls_silent_is_given_up() {
        let piece = || iter([Ok(Bytes::from_static(b"some"))]);

        let mut silent = body(piece().chain(pending())).await;
        assert_eq!(silent.next().await.expect("a piece").as_deref(), Some(b"some".as_slice()));
        assert_eq!(silent.next().await.expect_err("silence").status(), 400);

        let mut whole = body(piece()).await;
        assert!(whole.next().await.expect("a piece").is_some());
        assert!(whole.next().await.expect("the end").is_none());
    }
}
