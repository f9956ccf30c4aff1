//! Artifacts of runs, in their host's own members and in A2A's.

use actix_web::http::header::{ACCEPT, CACHE_CONTROL, HeaderValue, VARY};
use actix_web::http::{StatusCode, header};
use actix_web::{HttpMessage, HttpRequest, HttpResponse, web};
use mediakeep_storage::AssetId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::accept;
use super::assets::present;
use super::begun::begun;
use super::body::json_up_to;
use super::extract::{self, ArtifactsRead, AssetsWrite, Caller, artifact_id, parts, run_id};
use crate::app::held::Hold;
use crate::artifacts::{self, ArtifactError, Part, Wish};
use crate::assets::{AssetError, members, urls};
use crate::error::ApiError;
use crate::projection::artifact as projection;

const JSON: &str = "application/json";
const A2A: &str = "application/a2a+json";

/// An artifact to be put.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArtifactRequest {
    /// What people call it; at most 255 bytes. Controls and path separators are taken out.
    #[serde(default)]
    name: Option<String>,
    /// What it is, in at most 4096 characters.
    #[serde(default)]
    description: Option<String>,
    /// The type that its host has registered.
    #[serde(default)]
    #[schema(max_length = 256, pattern = "^[a-z][a-z0-9_-]*(\\.[a-z][a-zA-Z0-9_-]*)+$")]
    artifact_type_id: Option<String>,
    /// The version of that type's schema.
    #[serde(default)]
    schema_version: Option<u64>,
    /// What it consists of.
    #[schema(value_type = Vec<NewArtifactPart>, min_items = 1, max_items = 1000)]
    parts: Vec<PartBody>,
}

/// A part as it is put: an asset, words, any JSON, or bytes that become an asset.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NewArtifactPart {
    /// An asset of the tenant's.
    Asset(AssetPart),
    /// Words.
    Text(TextPart),
    /// Any JSON.
    Data(DataPart),
    /// Bytes.
    Raw(RawPart),
}

/// A part as it is kept.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ArtifactPart {
    /// An asset.
    Asset(AssetPart),
    /// Words.
    Text(TextPart),
    /// Any JSON.
    Data(DataPart),
}

/// A part that is an asset.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssetPart {
    asset_id: String,
    /// What it is called here; at most 255 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<String>,
}

/// A part of words.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TextPart {
    text: String,
}

/// A part of JSON.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DataPart {
    /// Anything, `null` too.
    data: Value,
}

/// A part that brings its bytes along.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RawPart {
    /// The bytes in base64, as an ingest takes it.
    raw: String,
    /// What they are said to be.
    #[schema(min_length = 3, max_length = 255)]
    media_type: String,
    /// What they are called; at most 255 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<String>,
}

/// An artifact as it was put, with assets in the place of bytes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    artifact_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema_version: Option<u64>,
    parts: Vec<ArtifactPart>,
}

/// An A2A 1.0.1 artifact.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct A2aArtifact {
    artifact_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Each has one of `text`, `data` and `url`: an asset is its bound URL, with its type and name.
    #[schema(value_type = Vec<Object>, min_items = 1)]
    parts: Vec<Value>,
    /// `openwop`: the artifact's type and the version of its schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// A part of any kind, before it is looked at.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PartBody {
    #[serde(default)]
    asset_id: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Option<Value>>,
    #[serde(default)]
    raw: Option<String>,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    filename: Option<String>,
}

/// Puts an artifact, in place of one that is there. Its run references every asset that it names.
#[utoipa::path(put, operation_id = "put_artifact", path = "/v1/runs/{runId}/artifacts/{artifactId}", tag = "artifacts", params(("runId" = String, Path), ("artifactId" = String, Path)), request_body = ArtifactRequest,
    responses((status = 200, body = Artifact, description = "It replaced another"), (status = 201, body = Artifact, description = "It is new"), (status = 400, body = super::openapi::ErrorBody, description = "`details.reason` is `invalid_base64`, with `details.offset`, or `empty`"), (status = 404, body = super::openapi::ErrorBody, description = "Unknown or foreign assets in the parts at the positions in `details.unknown`; nothing was put"), (status = 409, body = super::openapi::ErrorBody, description = "`run_erased`: the run was erased"), (status = 429, body = super::openapi::ErrorBody)), security(("bearer" = ["assets:write"])))]
pub async fn put(
    caller: Caller<AssetsWrite>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    extract::query(&request, &[])?;
    let (app, run, id) = (parts(&request), run_id(&request)?, artifact_id(&request)?);
    let most = usize::try_from(app.settings.limits.max_json_bytes.0).unwrap_or(usize::MAX);
    let asked: ArtifactRequest = json_up_to(&request, payload, &caller.principal, most).await?;
    let wish = asked.wish()?;
    // Its bytes are held for as long as they are worked on.
    let hold = request.extensions_mut().remove::<Hold>();
    let putting = async move {
        let put = artifacts::put(&app, &caller.principal, &run, &id, wish).await.map_err(refusal);
        drop(hold);
        put
    };
    let (artifact, replaced) = begun(putting).await?;
    let status = if replaced { StatusCode::OK } else { StatusCode::CREATED };
    Ok(super::body::answer(status, &projection::plain(&artifact)))
}

/// An artifact: as A2A's if `Accept` prefers `application/a2a+json`, else as it was put, whatever else is acceptable.
#[utoipa::path(get, operation_id = "show_artifact", path = "/v1/runs/{runId}/artifacts/{artifactId}", tag = "artifacts", params(("runId" = String, Path), ("artifactId" = String, Path)),
    responses((status = 200, description = "The artifact; `Content-Type` says which of the two it is", content((Artifact = "application/json"), (A2aArtifact = "application/a2a+json")), headers(("Vary" = String, description = "`Accept`")))), security(("bearer" = ["artifacts:read"])))]
pub async fn show(caller: Caller<ArtifactsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    extract::query(&request, &[])?;
    let (app, tenant) = (parts(&request), &caller.principal.tenant);
    let artifact = artifacts::show(&app, tenant, &run_id(&request)?, &artifact_id(&request)?).await?;
    let lines = request.headers().get_all(ACCEPT).map(HeaderValue::as_bytes);
    let (content_type, document) = if accept::prefers(lines, A2A, JSON) {
        let assets = artifacts::assets(&app, tenant, &artifact).await?;
        (A2A, projection::a2a(&artifact, &assets, |asset| urls::bound_url(&app, asset)))
    } else {
        (JSON, projection::plain(&artifact))
    };
    let mut response = HttpResponse::Ok();
    response.insert_header((CACHE_CONTROL, "no-store")).insert_header((VARY, "Accept"));
    Ok(response.insert_header((header::CONTENT_TYPE, content_type)).body(document.to_string()))
}

impl ArtifactRequest {
    fn wish(self) -> Result<Wish, ApiError> {
        let name = self.name.map(|name| members::file_name("name", &name)).transpose()?.flatten();
        let parts = self.parts.into_iter().enumerate();
        let wish = Wish {
            name,
            description: self.description,
            artifact_type_id: self.artifact_type_id,
            schema_version: self.schema_version,
            parts: parts.map(|(at, part)| part.read(at)).collect::<Result<_, _>>()?,
        };
        wish.check()?;
        Ok(wish)
    }
}

impl PartBody {
    fn read(self, at: usize) -> Result<Part, ApiError> {
        let invalid = |what: &str| ApiError::validation(format!("parts/{at}: {what}"));
        let filename = self.filename.map(|name| members::file_name(&format!("parts/{at}/filename"), &name));
        let filename = filename.transpose()?.flatten();
        let (has_name, has_type) = (filename.is_some(), self.media_type.is_some());
        let part = match (self.asset_id, self.text, self.data, self.raw) {
            (Some(id), None, None, None) => Part::Asset { asset: AssetId::parse(&id).ok(), filename },
            (None, Some(text), None, None) => Part::Text(text),
            (None, None, Some(data), None) => Part::Data(data.unwrap_or(Value::Null)),
            (None, None, None, Some(base64)) => {
                let media_type = self.media_type.ok_or_else(|| invalid("raw needs a mediaType"))?;
                return Ok(Part::Raw { base64, media_type, filename });
            }
            _ => return Err(invalid("exactly one of assetId, text, data and raw")),
        };
        match part {
            _ if has_type => Err(invalid("mediaType stands beside raw alone")),
            Part::Text(_) | Part::Data(_) if has_name => Err(invalid("filename stands beside assetId or raw")),
            part => Ok(part),
        }
    }
}

fn refusal(error: ArtifactError) -> ApiError {
    let said = error.to_string();
    match error {
        ArtifactError::Base64 { part, offset } => {
            let path = format!("/parts/{part}/raw");
            ApiError::validation(said).reason("invalid_base64").with("offset", offset).with("path", path)
        }
        ArtifactError::Asset(error) => AssetError::into(error),
    }
}
