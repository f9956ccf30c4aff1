//! `multipart/form-data`: one part `file`, the members as text parts, in any order.

use actix_web::http::header::{ContentDisposition, HeaderValue};
use bytes::Bytes;

use self::parts::{BadForm, Event, Parts};
use super::Incoming;
use super::stream::Body;
use crate::assets::ingest::{Ingest, Ingested};
use crate::assets::members::{Members, RawMembers};
use crate::error::ApiError;
use crate::http::body::cut_off;
use crate::http::extract::{self, other_tenant, printable};

mod parts;

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
    let mut form = Form::new(&incoming.content_type, body)?;
    while let Some(part) = form.part().await? {
        parts += 1;
        if parts > MAX_PARTS {
            return Err(ApiError::validation(format!("the form has more than {MAX_PARTS} parts")));
        }
        let name = part.name.as_str();
        match name {
            "file" if file_seen => return Err(ApiError::validation("file: given twice")),
            "file" => {
                file_seen = true;
                while let Some(bytes) = form.data().await? {
                    ingest.write(bytes).await?;
                }
                of_file.mime_type = part.mime_type;
                of_file.name = part.file_name;
            }
            "tenant" | "tenantId" => {
                if form.text(name).await? != incoming.start.principal.tenant.as_str() {
                    return Err(other_tenant(incoming.request, &incoming.start.principal));
                }
            }
            _ => match raw.slot(name).filter(|_| name != "url") {
                // A foreign tenant may still follow, and is told of first.
                None => {
                    unknown.get_or_insert_with(|| printable(name));
                    let _ = form.text(name).await?;
                }
                Some(slot) => {
                    if slot.replace(form.text(name).await?).is_some() {
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
    // What the part itself says counts where no member says otherwise.
    raw.mime_type = raw.mime_type.or(of_file.mime_type);
    raw.name = raw.name.or(of_file.name);
    Incoming::check(raw)
}

/// A form on its way.
struct Form {
    body: Body,
    parts: Parts,
}

/// What a part says of itself.
struct Part {
    name: String,
    file_name: Option<String>,
    mime_type: Option<String>,
}

impl Form {
    fn new(content_type: &str, body: Body) -> Result<Self, ApiError> {
        let content_type: Option<mime::Mime> = content_type.parse().ok();
        let boundary = content_type.as_ref().and_then(|mime| mime.get_param(mime::BOUNDARY));
        let parts = Parts::new(boundary.map_or("", |boundary| boundary.as_str())).map_err(refusal)?;
        Ok(Self { body, parts })
    }

    /// The next part; `None` at the end of the form, and then the body is whole.
    async fn part(&mut self) -> Result<Option<Part>, ApiError> {
        loop {
            match self.next().await? {
                Some(Event::Begins(headers)) => return Part::read(&headers).map(Some),
                Some(Event::Data(_) | Event::Ends) => {}
                None => return Ok(None),
            }
        }
    }

    /// The next bytes of the part; `None` at its end.
    async fn data(&mut self) -> Result<Option<Bytes>, ApiError> {
        match self.next().await? {
            Some(Event::Data(bytes)) => Ok(Some(bytes)),
            _ => Ok(None),
        }
    }

    /// All of a part that is text.
    async fn text(&mut self, name: &str) -> Result<String, ApiError> {
        let mut text = Vec::new();
        while let Some(bytes) = self.data().await? {
            if text.len() + bytes.len() > MAX_TEXT {
                return Err(ApiError::validation(format!("{}: longer than {MAX_TEXT} bytes", printable(name))));
            }
            text.extend_from_slice(&bytes);
        }
        String::from_utf8(text).map_err(|_| ApiError::validation(format!("{}: not UTF-8", printable(name))))
    }

    async fn next(&mut self) -> Result<Option<Event>, ApiError> {
        let mut epilogue = 0;
        loop {
            if let Some(event) = self.parts.next().map_err(refusal)? {
                return Ok(Some(event));
            }
            match self.body.next().await? {
                Some(chunk) if self.parts.has_ended() => {
                    epilogue += chunk.len();
                    if epilogue > MAX_EPILOGUE {
                        return Err(ApiError::validation("too much behind the form's end"));
                    }
                }
                Some(chunk) => self.parts.push(&chunk),
                None => return self.parts.finish().map(|()| None).map_err(refusal),
            }
        }
    }
}

impl Part {
    /// Reads a part's headers. Its own length is not among what counts.
    fn read(headers: &[u8]) -> Result<Self, ApiError> {
        let unnamed = || ApiError::validation("a part of the form has no name");
        let mut part = Self { name: String::new(), file_name: None, mime_type: None };
        let mut named = false;
        for line in headers.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|b| *b == b':').ok_or_else(unnamed)?;
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-disposition") {
                let value = HeaderValue::from_bytes(value).map_err(|_| unnamed())?;
                let disposition = ContentDisposition::from_raw(&value).map_err(|_| unnamed())?;
                part.name = disposition.get_name().ok_or_else(unnamed)?.to_owned();
                part.file_name = disposition.get_filename().map(str::to_owned);
                named = true;
            } else if name.eq_ignore_ascii_case(b"content-type") {
                part.mime_type = std::str::from_utf8(value).ok().map(str::to_owned);
            } else if name.eq_ignore_ascii_case(b"content-transfer-encoding") && !is_plain(value) {
                return Err(ApiError::validation("a part of the form is encoded: send its bytes as they are"));
            }
        }
        if named { Ok(part) } else { Err(unnamed()) }
    }
}

/// Whether bytes of this transfer encoding are the bytes themselves.
fn is_plain(encoding: &[u8]) -> bool {
    ["binary", "8bit", "7bit"].iter().any(|plain| encoding.eq_ignore_ascii_case(plain.as_bytes()))
}

fn refusal(bad: BadForm) -> ApiError {
    match bad {
        BadForm::CutOff => cut_off(),
        other => ApiError::validation(other.to_string()),
    }
}
