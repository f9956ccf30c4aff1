//! `test/surface`: the blob operations. The `tenantId` of a body is a namespace inside the one tenant that the seams are for.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Seam, decoded};
use crate::access::Scope;
use crate::assets::members::RawMembers;
use crate::assets::{AssetError, fetch};
use crate::audit;
use crate::error::ApiError;
use crate::http::body::{answer, typed};
use crate::openwop::discovery::DEFAULT_BUCKET;
use crate::openwop::seams::{self as objects, NewObject, Place};

/// What is asked of a surface.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call {
    #[serde(default)]
    tenant_id: Option<String>,
    surface: String,
    op: String,
    #[serde(default)]
    args: Map<String, Value>,
}

/// The arguments of every operation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    #[serde(default)]
    bucket: Option<String>,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    prefix: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    content_base64: Option<String>,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    expires_in_seconds: Option<i64>,
    #[serde(default)]
    method: Option<String>,
}

/// The longest key and the longest name of a bucket or namespace, in bytes.
const MAX_NAME: usize = 1024;

/// The longest content type, in bytes.
const MAX_TYPE: usize = 255;

/// Entries of a page.
const PAGE: usize = 1000;

/// Answers one operation of one surface. Another surface than `blob` is one that is not there.
pub(super) async fn surface(seam: &Seam, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let call: Call = typed(Value::Object(seam.open_body(payload).await?))?;
    if call.surface != "blob" {
        return Err(ApiError::not_found());
    }
    let args: Args = typed(Value::Object(call.args))?;
    let namespace = name("tenantId", call.tenant_id.as_deref().unwrap_or_default())?;
    let bucket = name("bucket", args.bucket.as_deref().unwrap_or(DEFAULT_BUCKET))?;
    let blob = Blob { seam, place: Place::new(namespace, bucket) };
    let told = match call.op.as_str() {
        "put" => blob.put(args).await?,
        "get" => blob.get(&args).await?,
        "delete" => blob.delete(&args).await?,
        "list" => blob.list(&args).await?,
        "presign" => blob.presign(&args).await?,
        _ => return Err(ApiError::validation("op: put, get, delete, list or presign")),
    };
    Ok(answer(StatusCode::OK, &told))
}

/// A bucket that something is asked of.
struct Blob<'a> {
    seam: &'a Seam,
    place: Place,
}

impl Blob<'_> {
    async fn put(&self, args: Args) -> Result<Value, ApiError> {
        self.seam.needs(Scope::AssetsWrite)?;
        let key = key(&args)?.to_owned();
        let text = args.content_base64.as_deref();
        let bytes = decoded("contentBase64", text.ok_or_else(|| ApiError::validation("contentBase64: is needed"))?)?;
        let content_type = args.content_type.filter(|text| !text.is_empty());
        if content_type.as_ref().is_some_and(|text| text.len() > MAX_TYPE || text.chars().any(char::is_control)) {
            return Err(ApiError::validation(format!("contentType: at most {MAX_TYPE} bytes without controls")));
        }
        let mut members = RawMembers { mime_type: content_type.clone(), ..RawMembers::default() };
        members.source = Some("system".to_owned());
        let object = NewObject { key, content_type, bytes, members: members.check()? };
        let view = objects::put(&self.seam.app, &self.seam.caller, &self.place, object).await?;
        let url = crate::assets::urls::bound_url(&self.seam.app, view.record.id);
        Ok(json!({"url": url, "sizeBytes": view.record.bytes}))
    }

    async fn get(&self, args: &Args) -> Result<Value, ApiError> {
        self.seam.needs(Scope::AssetsRead)?;
        let (app, caller) = (&self.seam.app, &self.seam.caller);
        let Some(view) = objects::get(app, &caller.tenant, &self.place, key(args)?).await? else {
            return Ok(json!({"found": false}));
        };
        let bytes = match fetch::whole(app, &view.record).await {
            Ok(bytes) => bytes,
            // It ended since.
            Err(AssetError::NotFound | AssetError::Gone(_)) => return Ok(json!({"found": false})),
            Err(error) => return Err(error.into()),
        };
        audit::read(app, &view.record, audit::Reader { caller: Some(caller), claims: None }).await?;
        let content_type = objects::content_type(&view);
        Ok(json!({"found": true, "contentBase64": BASE64.encode(&bytes), "contentType": content_type}))
    }

    async fn delete(&self, args: &Args) -> Result<Value, ApiError> {
        self.seam.needs(Scope::AssetsWrite)?;
        let deleted = objects::delete(&self.seam.app, &self.seam.caller, &self.place, key(args)?).await?;
        Ok(json!({"deleted": deleted}))
    }

    async fn list(&self, args: &Args) -> Result<Value, ApiError> {
        self.seam.needs(Scope::AssetsRead)?;
        let prefix = args.prefix.as_deref().unwrap_or_default();
        let mut found = objects::list(&self.seam.app, &self.seam.caller.tenant, &self.place, prefix).await?;
        if let Some(cursor) = &args.cursor {
            // A cursor is the last key of the page before.
            found.retain(|view| objects::key(view) > cursor.as_str());
        }
        let more = found.len() > PAGE;
        found.truncate(PAGE);
        let entries: Vec<Value> =
            found.iter().map(|view| json!({"key": objects::key(view), "sizeBytes": view.record.bytes})).collect();
        let mut told = json!({"entries": entries});
        if let Some(last) = found.last().filter(|_| more) {
            told["nextCursor"] = json!(objects::key(last));
        }
        Ok(told)
    }

    async fn presign(&self, args: &Args) -> Result<Value, ApiError> {
        self.seam.needs(Scope::AssetsRead)?;
        self.seam.needs(Scope::AssetsMint)?;
        if args.method.as_deref().is_some_and(|method| method != "GET") {
            return Err(ApiError::validation("method: only GET is presigned"));
        }
        let seconds = args.expires_in_seconds.ok_or_else(|| ApiError::validation("expiresInSeconds: is needed"))?;
        let (app, caller) = (&self.seam.app, &self.seam.caller);
        let link = objects::presign(app, caller, &self.place, key(args)?, seconds).await?;
        let link = link.ok_or_else(|| {
            ApiError::new(StatusCode::NOT_FOUND, "blob_object_not_found", "there is no object of that key")
        })?;
        Ok(json!({
            "url": self.seam.url("blob", &link.token),
            "expiresAt": link.expires_at,
            "expiresAtMs": link.expires_at.as_millisecond(),
        }))
    }
}

fn key(args: &Args) -> Result<&str, ApiError> {
    match args.key.as_deref() {
        None | Some("") => Err(ApiError::validation("key: is needed")),
        Some(key) => name("key", key),
    }
}

fn name<'a>(member: &str, raw: &'a str) -> Result<&'a str, ApiError> {
    if raw.len() > MAX_NAME || raw.chars().any(char::is_control) {
        return Err(ApiError::validation(format!("{member}: at most {MAX_NAME} bytes without controls")));
    }
    Ok(raw)
}
