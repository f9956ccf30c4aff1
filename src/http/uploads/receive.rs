//! The bytes of a request, on their way into an upload and, with the last of them, into an asset.

use std::sync::Arc;

use actix_web::http::Method;
use actix_web::{HttpRequest, web};
use mediakeep_storage::resumable::{Resumable, ResumableState};
use mediakeep_storage::{AssetId, UploadId};

use super::checksum::Checksum;
use super::headers::number;
use crate::access::Principal;
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::resumable::{self, Held, Refusal, Writer};
use crate::error::ApiError;
use crate::http::upload;
use crate::http::upload::stream::Body;

/// The bytes of a request, and what is said of them.
pub(super) struct Sent {
    body: Body,
    announced: Option<u64>,
    length: Option<u64>,
    checksum: Option<Checksum>,
}

impl Sent {
    pub(super) fn of(request: &HttpRequest, payload: web::Payload) -> Result<Self, ApiError> {
        let headers = request.headers();
        // That of a POST is the upload's own.
        let length = if *request.method() == Method::POST && request.match_info().get("uploadId").is_none() {
            None
        } else {
            number(headers, "upload-length")?
        };
        Ok(Self {
            body: Body::new(payload, headers)?.or_empty(),
            announced: upload::length(request),
            length,
            checksum: Checksum::of(headers)?,
        })
    }

    /// Writes the bytes; what came before they broke off is kept, if it can be.
    async fn write(mut self, mut writer: Writer) -> Result<Held, ApiError> {
        loop {
            let refusal = match self.body.next().await {
                Ok(Some(chunk)) => {
                    if let Some(checksum) = &mut self.checksum {
                        checksum.update(&chunk);
                    }
                    match writer.write(chunk).await {
                        Ok(()) => continue,
                        Err(error) => error.into(),
                    }
                }
                Ok(None) if self.checksum.take().is_none_or(Checksum::came_out_right) => {
                    return Ok(writer.finish().await?);
                }
                Ok(None) => AssetError::from(Refusal::Checksum).into(),
                Err(broken) => broken,
            };
            writer.give_up().await;
            return Err(refusal);
        }
    }
}

/// Appends what was sent, and makes the asset if it was the last of it.
pub(super) async fn append_to(
    app: &Arc<App>,
    principal: &Principal,
    id: UploadId,
    offset: Option<u64>,
    sent: Sent,
) -> Result<Resumable, ApiError> {
    let held = Held::take(app, &principal.tenant, id).await?;
    let refusal = match offset {
        _ if !held.upload.pieces().is_empty() => Some(Refusal::Joined),
        Some(offset) if offset != held.upload.offset => Some(Refusal::Offset { offset: held.upload.offset }),
        _ => None,
    };
    if let Some(refusal) = refusal {
        held.release().await;
        return Err(AssetError::from(refusal).into());
    }
    let keeps = sent.checksum.is_none() && !sent.body.has_digest();
    let writer = Writer::begin(held, sent.announced, sent.length, keeps).await?;
    let held = sent.write(writer).await?;
    join(app, principal, held).await
}

/// Makes the asset, if all bytes are there; says what the upload is then.
pub(super) async fn join(app: &Arc<App>, principal: &Principal, held: Held) -> Result<Resumable, ApiError> {
    if !held.is_to_be_joined() {
        let upload = held.upload.clone();
        held.release().await;
        return Ok(upload);
    }
    let mut upload = held.upload.clone();
    let asset: AssetId = held.join(principal).await?;
    if let Some(now) = resumable::find(app, &principal.tenant, upload.id).await? {
        upload = now;
    }
    upload.state = ResumableState::Finished { asset };
    Ok(upload)
}
