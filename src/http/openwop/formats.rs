//! The names of export formats, for anybody.

use actix_web::{HttpRequest, HttpResponse};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::http::meta::cacheable;
use crate::openwop::formats;

/// A format by its two names.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Format {
    /// The short one.
    alias: &'static str,
    /// The media type.
    media_type: &'static str,
}

/// All of them.
#[derive(Debug, Serialize, ToSchema)]
pub struct FormatList {
    formats: Vec<Format>,
}

/// The formats that have an alias.
#[utoipa::path(get, operation_id = "list_formats", path = "/v1/formats", tag = "openwop", responses((status = 200, body = FormatList), (status = 304, description = "Unchanged")), security(()))]
pub async fn list(request: HttpRequest) -> HttpResponse {
    let formats = formats::FORMATS.into_iter().map(Format::from).collect();
    cacheable(&request, "application/json", &json!(FormatList { formats }))
}

/// One format, by its alias or by its media type, whose slash may be escaped.
#[utoipa::path(get, operation_id = "show_format", path = "/v1/formats/{aliasOrType}", tag = "openwop", params(("aliasOrType" = String, Path)),
    responses((status = 200, body = Format), (status = 304, description = "Unchanged"), (status = 404, body = crate::http::openapi::ErrorBody, description = "No format has that name")), security(()))]
pub async fn show(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    // The router leaves an escaped slash, plus and percent sign as they are.
    let name = percent_decode_str(request.match_info().query("aliasOrType")).decode_utf8_lossy();
    let format = formats::find(&name).map(Format::from).ok_or_else(ApiError::not_found)?;
    Ok(cacheable(&request, "application/json", &json!(format)))
}

impl From<(&'static str, &'static str)> for Format {
    fn from((alias, media_type): (&'static str, &'static str)) -> Self {
        Self { alias, media_type }
    }
}
