//! `multipart/form-data`: one part `file`, the members as text parts, in any order.

use std::cell::RefCell;
use std::rc::Rc;

use actix_multipart::{Field, Multipart, MultipartError};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use tokio::sync::Mutex;

use super::Incoming;
use super::stream::Body;
use crate::assets::ingest::{Ingest, Ingested};
use crate::assets::members::{Members, RawMembers};
use crate::error::ApiError;
use crate::http::body::cut_off;
use crate::http::extract::{self, printable};

/// The longest text part.
const MAX_TEXT: usize = 16 << 10;

/// More parts than there are members are not a form of ours.
const MAX_PARTS: usize = 32;

/// The most that may stand behind the last boundary.
const MAX_EPILOGUE: usize = 64 << 10;

pub(super) async fn take(incoming: Incoming<'_>, body: Body) -> Result<Ingested, ApiError> {
    extract::query(incoming.request, &[])?;
    incoming.store(async |ingest| read(&incoming, body, ingest).await).await
}

async fn read(incoming: &Incoming<'_>, body: Body, ingest: &mut Ingest) -> Result<Members, ApiError> {
    let (mut raw, mut of_file) = (RawMembers::default(), RawMembers::default());
    let (mut file_seen, mut parts, mut unknown) = (false, 0, None);
    let body = Rc::new(Mutex::new(body));
    // The parser knows errors of its own kind only: ours is kept beside it.
    let (stream, refusal) = stream_of(body.clone());
    let mut form = Multipart::new(incoming.request.headers(), stream);
    while let Some(field) = form.next().await {
        let field = field.map_err(|error| refused(&refusal, &error))?;
        parts += 1;
        if parts > MAX_PARTS {
            return Err(ApiError::validation(format!("the form has more than {MAX_PARTS} parts")));
        }
        let name = field.name().unwrap_or("").to_owned();
        match name.as_str() {
            "file" if file_seen => return Err(ApiError::validation("file: given twice")),
            "file" => {
                file_seen = true;
                take_file(field, ingest, &mut of_file, &refusal).await?;
            }
            "tenant" | "tenantId" => {
                if text(field, &name, &refusal).await? != incoming.start.principal.tenant.as_str() {
                    return Err(ApiError::other_tenant());
                }
            }
            _ => match raw.slot(&name).filter(|_| name != "url") {
                // A foreign tenant may still follow, and is told of first.
                None => {
                    unknown.get_or_insert_with(|| printable(&name));
                    let _ = text(field, &name, &refusal).await?;
                }
                Some(slot) => {
                    let value = text(field, &name, &refusal).await?;
                    if slot.replace(value).is_some() {
                        return Err(ApiError::validation(format!("{name}: given twice")));
                    }
                }
            },
        }
    }
    if let Some(name) = unknown {
        return Err(ApiError::validation(format!("unknown part {name}")));
    }
    if !file_seen {
        return Err(ApiError::validation("file: is needed"));
    }
    drop(form);
    read_epilogue(&body).await?;
    raw.mime_type = raw.mime_type.or(of_file.mime_type);
    raw.name = raw.name.or(of_file.name);
    Incoming::check(raw)
}

/// Takes the bytes, and the type and file name that the part itself has: they count where no member says otherwise.
async fn take_file(
    mut field: Field,
    ingest: &mut Ingest,
    of_file: &mut RawMembers,
    refusal: &Refusal,
) -> Result<(), ApiError> {
    of_file.mime_type = field.content_type().map(|mime| mime.essence_str().to_owned());
    of_file.name = field.content_disposition().and_then(|disposition| disposition.get_filename().map(str::to_owned));
    while let Some(chunk) = field.next().await {
        let chunk = chunk.map_err(|error| refused(refusal, &error))?;
        ingest.write(chunk).await?;
    }
    Ok(())
}

/// What stands behind the last boundary means nothing, but the body is whole only at its end.
async fn read_epilogue(body: &Mutex<Body>) -> Result<(), ApiError> {
    let (mut body, mut left) = (body.lock().await, MAX_EPILOGUE);
    while let Some(chunk) = body.next().await? {
        left = left.checked_sub(chunk.len()).ok_or_else(|| ApiError::validation("too much behind the form's end"))?;
    }
    Ok(())
}

async fn text(mut field: Field, name: &str, refusal: &Refusal) -> Result<String, ApiError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.next().await {
        let chunk = chunk.map_err(|error| refused(refusal, &error))?;
        if bytes.len() + chunk.len() > MAX_TEXT {
            return Err(ApiError::validation(format!("{}: longer than {MAX_TEXT} bytes", printable(name))));
        }
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| ApiError::validation(format!("{}: not UTF-8", printable(name))))
}

type Refusal = Rc<RefCell<Option<ApiError>>>;

/// The body as the form's parser wants it, and the place where our own reason is kept when the body ends in an error.
fn stream_of(
    body: Rc<Mutex<Body>>,
) -> (impl Stream<Item = Result<Bytes, actix_web::error::PayloadError>> + 'static, Refusal) {
    let refusal = Refusal::default();
    let kept = refusal.clone();
    let stream = futures_util::stream::unfold((body, kept), |(body, kept)| async move {
        let next = body.lock().await.next().await;
        match next {
            Ok(chunk) => chunk.map(|chunk| (Ok(chunk), (body, kept))),
            Err(error) => {
                *kept.borrow_mut() = Some(error);
                Some((Err(actix_web::error::PayloadError::Incomplete(None)), (body, kept)))
            }
        }
    });
    // The parser asks on behind the end.
    (stream.fuse(), refusal)
}

fn refused(refusal: &Refusal, error: &MultipartError) -> ApiError {
    if let Some(ours) = refusal.borrow_mut().take() {
        return ours;
    }
    match error {
        MultipartError::Incomplete => cut_off(),
        MultipartError::Payload(_) => {
            ApiError::validation("the form has a part or a header that is too long, or breaks off")
        }
        _ => ApiError::validation("the form cannot be read: is its boundary right, and has each part a name?"),
    }
}
