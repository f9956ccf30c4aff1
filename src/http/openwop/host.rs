//! What a host may say of itself once its media are kept here.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};

use crate::http::body::answer;
use crate::http::extract::{Anyone, parts};
use crate::openwop::discovery;

/// What a host merges into its own discovery document: the kinds with their versions, and the inline cap. Lists are added to its lists.
#[utoipa::path(get, operation_id = "host_fragment", path = "/v1/openwop/host-fragment", tag = "openwop", responses((status = 200, body = Object)), security(("bearer" = [])))]
pub async fn fragment(_: Anyone, request: HttpRequest) -> HttpResponse {
    answer(StatusCode::OK, &discovery::host_fragment(&parts(&request).settings))
}
