//! One asset in the shapes that a host's own documents need.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use data_encoding::BASE64;
use mediakeep_storage::AssetRecord;
use serde_json::Value;

use crate::access::{Principal, Scope};
use crate::app::App;
use crate::assets::urls::{self, Wish};
use crate::assets::{AssetError, fetch, members};
use crate::audit;
use crate::error::ApiError;
use crate::http::body::answer;
use crate::http::extract::{self, AssetsRead, Caller, asset_id, parts};
use crate::projection::envelope::{self, Carried};
use crate::projection::part::{self, A2a, Source};
use crate::projection::speech;

/// The forms, by their names in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Envelope,
    ContentPart,
    A2aPart,
    AttachmentRef,
    Speech,
}

/// An asset in one of the protocol's shapes. A URL in it is a capability if the caller may have one, else the bound one.
#[utoipa::path(get, operation_id = "project_asset", path = "/v1/assets/{assetId}/as/{form}", tag = "openwop",
    params(("assetId" = String, Path), ("form" = String, Path), ("by" = Option<String>, Query), ("voiceId" = Option<String>, Query)),
    responses((status = 200, body = Object, description = "`envelope`: an AI envelope; `content-part`: a part of a message to a model; `a2a-part`: a part of an A2A artifact; `attachment-ref`: a trigger's attachment; `speech`: a synthesizer's answer"), (status = 400, body = crate::http::openapi::ErrorBody, description = "The asset cannot take that form"), (status = 410, body = crate::http::openapi::ErrorBody, description = "It is over: `details.reason` is `asset_expired` or `asset_erased`")), security(("bearer" = ["assets:read"])))]
pub async fn show(caller: Caller<AssetsRead>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let app = parts(&request);
    let asset = asset_id(&request)?;
    let row = fetch::open_bound(&app, &caller.principal.tenant, asset).await?;
    // Only now: what is no asset of the caller's is one 404, whatever is wrong with the rest of the request.
    let form = Form::parse(request.match_info().query("form")).ok_or_else(ApiError::not_found)?;
    let wish = Asked::read(&request, form)?;
    let view = View { app: &app, caller: &caller.principal, record: &row.view.record };
    let document = match form {
        Form::Envelope => {
            let inline = envelope::may_inline(view.record, view.cap());
            view.carried(inline, |carried| envelope::envelope(view.record, carried)).await?
        }
        Form::ContentPart => view.content_part(wish.by.as_deref()).await?,
        Form::A2aPart => view.a2a_part(wish.by.as_deref()).await?,
        Form::AttachmentRef => part::attachment_ref(view.record),
        Form::Speech => view.speech(wish.voice.as_deref()).await?,
    };
    Ok(answer(StatusCode::OK, &document))
}

impl Form {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "envelope" => Self::Envelope,
            "content-part" => Self::ContentPart,
            "a2a-part" => Self::A2aPart,
            "attachment-ref" => Self::AttachmentRef,
            "speech" => Self::Speech,
            _ => return None,
        })
    }

    /// The parameters that the form knows.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::ContentPart | Self::A2aPart => &["by"],
            Self::Speech => &["voiceId"],
            Self::Envelope | Self::AttachmentRef => &[],
        }
    }
}

/// What the query says.
#[derive(Debug, Default)]
struct Asked {
    by: Option<String>,
    voice: Option<String>,
}

impl Asked {
    fn read(request: &HttpRequest, form: Form) -> Result<Self, ApiError> {
        let known = form.parameters();
        let mut found = extract::query(request, known)?;
        Ok(match known {
            ["by"] => Self { by: found.pop().flatten(), voice: None },
            ["voiceId"] => Self { by: None, voice: found.pop().flatten() },
            _ => Self::default(),
        })
    }
}

/// A living asset, and who wants to see it.
struct View<'a> {
    app: &'a App,
    caller: &'a Principal,
    record: &'a AssetRecord,
}

impl View<'_> {
    async fn content_part(&self, by: Option<&str>) -> Result<Value, ApiError> {
        if part::modality(self.record).is_none() {
            return Err(cannot("no part of a message to a model is a video"));
        }
        let (url, data);
        let source = match by {
            None | Some("mediaRef") => Source::MediaRef,
            Some("url") => {
                url = self.url().await?;
                Source::Url(&url)
            }
            Some("data") => {
                data = self.small().await?;
                Source::Data(&data)
            }
            Some(_) => return Err(ApiError::validation("by: mediaRef, url or data")),
        };
        part::content_part(self.record, source).ok_or_else(|| cannot("there is no part of this kind"))
    }

    async fn a2a_part(&self, by: Option<&str>) -> Result<Value, ApiError> {
        match by {
            None | Some("url") => {
                Ok(part::a2a_part(self.record, A2a::Bound(&urls::bound_url(self.app, self.record.id))))
            }
            Some("raw") => Ok(part::a2a_part(self.record, A2a::Raw(&self.small().await?))),
            Some(_) => Err(ApiError::validation("by: url or raw")),
        }
    }

    async fn speech(&self, voice: Option<&str>) -> Result<Value, ApiError> {
        if self.record.kind != "audio" {
            return Err(cannot("only audio is speech"));
        }
        let voice = voice.ok_or_else(|| ApiError::validation("voiceId: is needed"))?;
        let voice = members::outer_id("voiceId", voice.to_owned())?;
        let inline = speech::may_inline(self.record, self.cap());
        let document = self.carried(inline, |carried| speech::speech(self.record, carried, &voice)).await?;
        document.ok_or_else(|| cannot("only audio is speech"))
    }

    /// What `make` makes of the bytes themselves, or else of a URL that leads to them.
    async fn carried<T>(&self, inline: bool, make: impl FnOnce(Carried<'_>) -> T) -> Result<T, ApiError> {
        if inline {
            return Ok(make(Carried::Base64(&self.bytes().await?)));
        }
        Ok(make(Carried::Url(&self.url().await?)))
    }

    /// The durable capability, if the caller may have one; else the URL that asks for a credential.
    async fn url(&self) -> Result<String, ApiError> {
        if !self.caller.scopes.has(Scope::AssetsMint) {
            return Ok(urls::bound_url(self.app, self.record.id));
        }
        let minted = urls::mint(self.app, self.caller, &[Some(self.record.id)], Wish::Durable).await?;
        let minted = minted.into_iter().next().ok_or(AssetError::NotFound)?;
        Ok(minted.url)
    }

    /// The bytes in base64, up to the inline cap.
    async fn small(&self) -> Result<String, ApiError> {
        let cap = self.cap();
        if !envelope::may_inline(self.record, cap) {
            return Err(cannot(&format!("it carries its bytes itself only up to {cap} of them, and never a video's")));
        }
        self.bytes().await
    }

    async fn bytes(&self) -> Result<String, ApiError> {
        let bytes = fetch::whole(self.app, self.record).await?;
        audit::read(self.app, self.record, audit::Reader { caller: Some(self.caller), claims: None }).await?;
        Ok(BASE64.encode(&bytes))
    }

    fn cap(&self) -> u64 {
        self.app.inline_cap(&self.record.tenant)
    }
}

/// 400: the asset is not of a kind, or not of a size, for the form.
fn cannot(why: &str) -> ApiError {
    ApiError::validation(format!("form: the asset cannot take it: {why}"))
}
