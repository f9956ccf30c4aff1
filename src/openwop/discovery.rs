//! The discovery document (`/.well-known/openwop`, v1 shape): what this service is, and nothing that it is not.
//!
//! The service runs no workflows, so it supports no envelopes of its own and counts no rounds. What a *host* may say once it uses this
//! service is the host's to say: [`host_fragment`] is what it may add then, and all of it is so.

use serde_json::{Map, Value, json};

use crate::config::Settings;
use crate::projection::envelope::{KINDS, SCHEMA_VERSION};

/// The version of the protocol that the shapes follow.
pub const PROTOCOL_VERSION: &str = "1.1.0";

/// The document.
pub fn document(settings: &Settings) -> Value {
    let limits = &settings.limits;
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "limits": {"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0},
        "aiProviders": {"maxInlineMediaBytes": limits.max_inline_media_bytes.0},
        "x-host-mediakeep-mediaAssets": {
            "version": env!("CARGO_PKG_VERSION"),
            "assetClasses": ["capability", "bound"],
            "maxUploadBytes": limits.max_upload_bytes.0,
            "maxJsonBytes": limits.max_json_bytes.0,
            "maxDeliverySeconds": settings.capabilities.max_delivery.as_secs(),
            "clockSkewSeconds": settings.capabilities.clock_skew.as_secs(),
            "defaultRunLogSeconds": settings.retention.default_run_log.as_secs(),
            "unreferencedSeconds": settings.retention.unreferenced.as_secs(),
        },
    })
}

/// What a host that keeps its media here merges into its own document, each member under the name that it has there. Lists are added to its
/// lists: a host that names kinds at all has to name the four universal ones too, and only it can say that of itself.
///
/// It holds no identifier of a model's capability: those are the host's to gate on, and nobody may advertise one that is not.
pub fn host_fragment(settings: &Settings) -> Value {
    let versions: Map<String, Value> = KINDS.iter().map(|kind| ((*kind).to_owned(), json!(SCHEMA_VERSION))).collect();
    let mut fragment = json!({
        "supportedEnvelopes": KINDS,
        "schemaVersions": versions,
        "aiProviders": {"maxInlineMediaBytes": settings.limits.max_inline_media_bytes.0},
    });
    if settings.conformance.seams {
        fragment["blobStorage"] = json!({
            "supported": true,
            "buckets": [DEFAULT_BUCKET],
            "presignSupported": true,
            "maxObjectBytes": max_object_bytes(settings),
        });
    }
    fragment
}

/// The bucket of the blob surface of which nobody says which.
pub const DEFAULT_BUCKET: &str = "default";

/// The largest object of the blob surface: what fits, in base64, into a JSON body, beside as much else as a request has.
pub fn max_object_bytes(settings: &Settings) -> u64 {
    const BESIDE: u64 = 16 << 10;
    let limits = &settings.limits;
    limits.max_upload_bytes.0.min(limits.max_json_bytes.0.saturating_sub(BESIDE) / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_nothing_that_is_not_so() {
        let document = document(&Settings::default());
        assert_eq!(document["supportedEnvelopes"], json!([]));
        assert_eq!(document["aiProviders"]["maxInlineMediaBytes"], 262_144);
        for absent in ["blobStorage", "debugBundle", "modelCapabilities", "httpClient"] {
            assert_eq!(document.get(absent), None, "{absent}");
        }
    }
    #[test]
    fn a_host_is_offered_nothing_that_only_it_could_know() {
        let mut settings = Settings::default();
        let fragment = host_fragment(&settings);
        assert_eq!(fragment["supportedEnvelopes"], json!(["media.image", "media.audio", "media.file"]));
        for absent in ["modelCapabilities", "blobStorage", "debugBundle", "httpClient", "limits", "protocolVersion"] {
            assert_eq!(fragment.get(absent), None, "{absent}");
        }
        settings.conformance.seams = true;
        let blobs = &host_fragment(&settings)["blobStorage"];
        assert_eq!((&blobs["supported"], &blobs["presignSupported"]), (&json!(true), &json!(true)));
        assert!(blobs["maxObjectBytes"].as_u64().is_some_and(|most| most < 72 << 20));
    }
}
