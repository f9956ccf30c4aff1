//! Content parts of messages (RFC 0091), made ready for a log: each media part by one source, bytes stored and named by `mediaRef`.
//!
//! The order is the protocol's: whether a part's modality is allowed at all comes before anything else, and all parts are looked at
//! before anything is stored. The run references every asset that the answer names: those that are there already all at once and first,
//! new ones as they are stored; what was done before a later part failed stays so. A part is a JSON object; what it says besides its type
//! and source passes as it is, but for a trust that nobody here can vouch for.

use std::collections::BTreeMap;
use std::sync::Arc;

use mediakeep_storage::{AssetId, RunId};
use serde_json::{Map, Value, json};

use crate::access::Principal;
use crate::app::App;
use crate::assets::{AssetError, fetch, urls};
use crate::remote::RemoteError;
use crate::retention::runs;

mod store;

use store::{decode, store_data, store_url};

/// The types of parts that are media, as the protocol calls them.
const MEDIA: [&str; 3] = ["image", "audio", "document"];

/// So many assets that are there already may be named by the messages of one request: as many as a run is told of at once.
pub const MAX_NAMED: usize = 1_000;

/// What is asked for.
#[derive(Debug)]
pub struct Wish {
    /// The run whose log the messages are for: bytes are stored for it, and it references what they name.
    pub run: RunId,
    /// The messages.
    pub messages: Vec<Value>,
    /// Which types of parts are allowed beside `text`.
    pub modalities: Vec<String>,
    /// The longest part, in bytes.
    pub most: Option<u64>,
    /// Whether `url` parts are fetched.
    pub fetch: bool,
}

/// Why the messages are not taken.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// A part of a type that is not allowed.
    #[error("{path}: {modality} is not among the modalities")]
    Modality {
        /// Which part.
        path: String,
        /// Its type.
        modality: String,
    },
    /// A part that is not what it should be.
    #[error("{path}: {what}")]
    Invalid {
        /// Which.
        path: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Its base64 is none.
    #[error("{path}/data: character {offset} does not belong there")]
    Base64 {
        /// Which part.
        path: String,
        /// Which character.
        offset: u64,
    },
    /// Some `mediaRef`s, or URLs of ours, name nothing of this tenant: these parts.
    #[error("unknown assets at {paths:?}")]
    Unknown {
        /// Where.
        paths: Vec<String>,
    },
    /// What its URL leads to cannot be had.
    #[error("{path}/url: {error}")]
    Remote {
        /// Which part.
        path: String,
        /// Why.
        error: RemoteError,
    },
    /// Something of the assets.
    #[error(transparent)]
    Asset(#[from] AssetError),
}

/// A media part.
#[derive(Debug)]
struct Part {
    message: usize,
    part: usize,
    source: Source,
}

/// Where its bytes are.
#[derive(Debug)]
enum Source {
    /// In the part, in base64.
    Data(String),
    /// In an asset.
    Ref(String),
    /// Behind a URL.
    Url(String),
}

/// The messages in the protocol's own words, with their bytes stored.
pub async fn normalize(app: &Arc<App>, caller: &Principal, mut wish: Wish) -> Result<Vec<Value>, ContentError> {
    gate(&wish)?;
    let parts = read(&mut wish.messages)?;
    let most = wish.most.unwrap_or(u64::MAX).min(app.settings.limits.max_upload_bytes.0);
    let named = look_at(app, caller, &parts, most, wish.fetch).await?;
    refer(app, caller, &wish.run, named).await?;
    for Part { message, part, source } in parts {
        let path = path(message, part);
        let object = wish.messages[message]["content"][part].as_object_mut();
        let Some(object) = object else {
            continue;
        };
        name(object);
        let declared = object.get("mimeType").and_then(Value::as_str).map(str::to_owned);
        let stored = match source {
            Source::Data(text) => Some(store_data(app, caller, &wish.run, &text, declared, &path).await?),
            Source::Url(url) if wish.fetch => match urls::asset_of_own(app, &caller.tenant, &url) {
                Some(own) => own,
                None => Some(store_url(app, caller, &wish.run, &url, declared, most, &path).await?),
            },
            Source::Url(_) | Source::Ref(_) => None,
        };
        if let Some(asset) = stored {
            for source in ["data", "dataBase64", "url"] {
                object.remove(source);
            }
            object.insert("mediaRef".to_owned(), json!(format!("blob:{asset}")));
        }
    }
    Ok(wish.messages)
}

/// Each part's type against the modalities: before anything else is asked of it.
fn gate(wish: &Wish) -> Result<(), ContentError> {
    let allowed: Vec<&str> = wish.modalities.iter().map(|modality| proper(modality)).collect();
    for (message, value) in wish.messages.iter().enumerate() {
        for (part, value) in value["content"].as_array().into_iter().flatten().enumerate() {
            let path = path(message, part);
            let Some(kind) = value["type"].as_str() else {
                return Err(ContentError::Invalid { path, what: "a part is an object with a type" });
            };
            if kind != "text" && !allowed.contains(&proper(kind)) {
                let modality = kind.chars().take(64).collect();
                return Err(ContentError::Modality { path, modality });
            }
        }
    }
    Ok(())
}

/// The media parts, each with one source. Bytes are taken out of their messages: they are held once.
fn read(messages: &mut [Value]) -> Result<Vec<Part>, ContentError> {
    let mut parts = Vec::new();
    for (message, value) in messages.iter_mut().enumerate() {
        let whole = |what| ContentError::Invalid { path: format!("/messages/{message}"), what };
        let object = value.as_object_mut().ok_or_else(|| whole("a message is an object"))?;
        let content = match object.get_mut("content") {
            None | Some(Value::Null | Value::String(_)) => continue,
            Some(Value::Array(content)) => content,
            Some(_) => return Err(whole("content is a string or a list of parts")),
        };
        for (part, value) in content.iter_mut().enumerate() {
            let invalid = |what| ContentError::Invalid { path: path(message, part), what };
            let kind = value["type"].as_str().unwrap_or_default();
            if kind == "text" {
                value["text"].as_str().ok_or_else(|| invalid("a text part has a text"))?;
                continue;
            }
            if !MEDIA.contains(&proper(kind)) {
                return Err(invalid("a part is text, image, audio or document"));
            }
            value["mimeType"]
                .as_str()
                .filter(|name| name.contains('/'))
                .ok_or_else(|| invalid("it needs a mimeType"))?;
            let source = source(value).ok_or_else(|| invalid("exactly one of url, mediaRef and data"))?;
            parts.push(Part { message, part, source });
        }
    }
    Ok(parts)
}

fn source(part: &mut Value) -> Option<Source> {
    const NAMES: [&str; 4] = ["data", "dataBase64", "mediaRef", "url"];
    let mut given = NAMES.into_iter().filter(|name| part.get(name).is_some_and(|value| !value.is_null()));
    let (Some(name), None) = (given.next(), given.next()) else {
        return None;
    };
    let Value::String(value) = part.get_mut(name)? else {
        return None;
    };
    Some(match name {
        "mediaRef" => Source::Ref(value.clone()),
        "url" => Source::Url(value.clone()),
        _ => Source::Data(std::mem::take(value)),
    })
}

/// The assets that parts name, each with the part that names it first.
type Named = BTreeMap<AssetId, String>;

/// What can be said of each part before anything is stored: its base64, its size, whether its asset is there. Says what they name.
async fn look_at(
    app: &App,
    caller: &Principal,
    parts: &[Part],
    most: u64,
    fetches: bool,
) -> Result<Named, ContentError> {
    let (mut named, mut unknown) = (Named::new(), Vec::new());
    for Part { message, part, source } in parts {
        let path = path(*message, *part);
        let asset = match source {
            Source::Data(text) => {
                let bytes = decode(text, &path, async |_| Ok(())).await?;
                if bytes > most {
                    return Err(AssetError::TooLarge { limit: most }.into());
                }
                continue;
            }
            Source::Ref(name) => name.strip_prefix("blob:").and_then(|id| AssetId::parse(id).ok()),
            Source::Url(url) if fetches => match urls::asset_of_own(app, &caller.tenant, url) {
                Some(own) => own,
                None => continue,
            },
            Source::Url(_) => continue,
        };
        let row = match asset {
            Some(asset) => fetch::open_bound(app, &caller.tenant, asset).await,
            None => Err(AssetError::NotFound),
        };
        match row {
            Ok(row) if row.view.record.bytes > most => return Err(AssetError::TooLarge { limit: most }.into()),
            Ok(row) => {
                named.entry(row.view.record.id).or_insert(path);
            }
            Err(AssetError::NotFound) => unknown.push(path),
            Err(error) => return Err(error.into()),
        }
    }
    if unknown.is_empty() { Ok(named) } else { Err(ContentError::Unknown { paths: unknown }) }
}

/// Makes the run reference what the messages name: all of it, or nothing. A log that quotes an asset keeps it.
async fn refer(app: &App, caller: &Principal, run: &RunId, named: Named) -> Result<(), ContentError> {
    if named.is_empty() {
        return Ok(());
    }
    if named.len() > MAX_NAMED {
        return Err(ContentError::Invalid { path: "/messages".to_owned(), what: "they name more than 1000 assets" });
    }
    let (ids, paths): (Vec<String>, Vec<String>) = named.into_iter().map(|(id, path)| (id.to_string(), path)).unzip();
    match runs::refer(app, caller, run, &ids).await {
        Ok(_) => Ok(()),
        Err(AssetError::Unknown { positions }) => {
            let paths = positions.into_iter().filter_map(|position| paths.get(position).cloned()).collect();
            Err(ContentError::Unknown { paths })
        }
        Err(error) => Err(error.into()),
    }
}

/// The part in the protocol's own words; a trust that was given is taken back.
fn name(part: &mut Map<String, Value>) {
    let kind = part.get("type").and_then(Value::as_str).map(proper).unwrap_or_default().to_owned();
    part.insert("type".to_owned(), Value::from(kind));
    if part.contains_key("contentTrust") {
        part.insert("contentTrust".to_owned(), Value::from("untrusted"));
    }
}

/// The protocol's own name of a type.
fn proper(kind: &str) -> &str {
    if kind == "file" { "document" } else { kind }
}

fn path(message: usize, part: usize) -> String {
    format!("/messages/{message}/content/{part}")
}
