//! The discovery document (`/.well-known/openwop`, v1 shape): what this service is, and nothing that it is not.
//!
//! The service runs no workflows, so it supports no envelopes of its own and counts no rounds. What a *host* may say once it uses this
//! service is the host's to say.

use serde_json::{Value, json};

use crate::config::Settings;

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
}
