//! The bytes of an answer: asked for before anything is said, and then sent with the length that was said.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody, SizedStream};
use actix_web::http::header;
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use futures_util::StreamExt;
use mediakeep_storage::blob::{Blob, BlobStream};
use mediakeep_storage::{BlobKey, StorageError};

use crate::http::range::{Plan, multipart};

/// What is small enough is read in one piece: one body, no stream.
const SMALL: u64 = 64 * 1024;

/// The first bytes of an answer, asked for before anything is said.
pub(super) enum Begun {
    /// All of a small one.
    Small(Bytes),
    /// Those of the first range.
    Stream(BlobStream),
}

pub(super) async fn begin(blob: &Blob, plan: &Plan) -> Result<Begun, StorageError> {
    let first = match plan {
        Plan::Whole => 0..blob.bytes(),
        Plan::Single(range) => range.clone(),
        Plan::Multiple(ranges) => return Ok(Begun::Stream(blob.stream_now(ranges[0].clone()).await?)),
        Plan::Unsatisfiable => 0..0,
    };
    if first.end - first.start <= SMALL {
        return Ok(Begun::Small(blob.read_and_keep(first).await?));
    }
    Ok(Begun::Stream(blob.stream_now(first).await?))
}

pub(super) fn body(response: &mut HttpResponseBuilder, begun: Begun, length: u64) -> HttpResponse {
    match begun {
        Begun::Small(bytes) => response.body(bytes),
        Begun::Stream(stream) => response.body(SizedStream::new(length, stream)),
    }
}

/// Several ranges, each with its own head, and the exact length of it all.
pub(super) fn several(
    response: &mut HttpResponseBuilder,
    blob: &Blob,
    ranges: &[Range<u64>],
    begun: Begun,
    content_type: &Bytes,
) -> HttpResponse {
    let boundary = multipart::Boundary::from_random(u128::from_be_bytes(BlobKey::generate().to_bytes()));
    let content_type = String::from_utf8_lossy(content_type);
    let framing = multipart::Framing::new(boundary, &content_type, ranges, blob.bytes());
    let length = framing.content_length();
    response.insert_header((header::CONTENT_TYPE, framing.content_type()));
    let closing = futures_util::stream::iter([Ok(Bytes::from(framing.closing()))]);
    let parts: Vec<_> = framing.parts().to_vec();
    let blob = blob.clone();
    let mut first = match begun {
        Begun::Stream(stream) => Some(stream),
        Begun::Small(_) => None,
    };
    let parts = futures_util::stream::iter(parts).flat_map(move |part| {
        let head = futures_util::stream::iter([Ok(Bytes::from(part.head))]);
        head.chain(first.take().unwrap_or_else(|| blob.stream(part.range)))
    });
    response.body(SizedStream::new(length, Box::pin(parts.chain(closing))))
}

/// The body of a HEAD answer: it has a length, and no bytes.
pub(super) struct Headless(pub(super) u64);

impl MessageBody for Headless {
    type Error = std::convert::Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.0)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Poll::Ready(None)
    }
}
