//! The audit log's rows and the hash that chains them.
//!
//! A transition writes its [`AuditEvent`] in its own transaction; a sealer gives the waiting rows their place in the tenant's chain
//! within a second ([`crate::index::Upkeep::seal_audit`]). The chain promises that a row changed, dropped or reordered is found; that
//! the whole tail was cut is found only by whoever kept a checkpoint. A row never holds a capability or a credential: URLs are named
//! by their `urlId`, principals by their key's id.

use jiff::Timestamp;
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AssetId, Digest, RunId, TenantId};

/// What happened. The names are those of the audit log's `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// An asset was stored.
    Ingest,
    /// An asset's name, alternative text or title was changed.
    Amend,
    /// A URL was made.
    Mint,
    /// A URL was revoked.
    Revoke,
    /// Bytes were read.
    Read,
    /// An authentic caller was refused.
    Denied,
    /// A run took up assets.
    Refer,
    /// An artifact was written.
    Artifact,
    /// A hold was placed.
    Hold,
    /// A hold was lifted.
    Lift,
    /// A run's retention was set.
    Floor,
    /// An asset ended because nothing keeps it.
    Expire,
    /// An asset was erased.
    Erase,
    /// The key ring changed.
    Key,
    /// An isolation check ran.
    Check,
}

/// One thing that happened, as its transition tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(rename = "type")]
    pub kind: AuditKind,
    /// By whom: the id of a key, an issuer and subject, or a part of the service itself (`sweep`).
    pub principal: String,
    /// The asset it was done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_id: Option<AssetId>,
    /// The run it was done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The URL it was done to, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_id: Option<String>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl AuditEvent {
    /// An event of which nothing more is known yet.
    pub fn new(kind: AuditKind, principal: impl Into<String>, at: Timestamp) -> Self {
        Self { at, kind, principal: principal.into(), asset_id: None, run_id: None, url_id: None, details: None }
    }

    /// The same, done to this asset.
    pub fn asset(mut self, id: AssetId) -> Self {
        self.asset_id = Some(id);
        self
    }

    /// The same, done to this run.
    pub fn run(mut self, id: &RunId) -> Self {
        self.run_id = Some(id.clone());
        self
    }

    /// The same, done to this URL.
    pub fn url(mut self, id: impl Into<String>) -> Self {
        self.url_id = Some(id.into());
        self
    }

    /// The same, with this to add.
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// A sealed row: an event with its place in its tenant's chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    /// Its place, from 1.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: AuditEvent,
    /// The hash of the row before it; of the first, [`AuditRow::GENESIS`].
    pub previous: Digest,
    /// The hash of this row.
    pub hash: Digest,
}

impl AuditRow {
    /// What the first row of a chain follows.
    pub const GENESIS: Digest = Digest([0; 32]);

    /// Gives an event its place behind the row with that hash.
    pub fn seal(tenant: &TenantId, seq: u64, event: AuditEvent, previous: Digest) -> Self {
        let mut row = Self { seq, event, previous, hash: Self::GENESIS };
        row.hash = row.digest(tenant);
        row
    }

    /// Whether the row is as it was sealed.
    pub fn holds(&self, tenant: &TenantId) -> bool {
        self.digest(tenant) == self.hash
    }

    /// SHA-256 over the tenant, a line feed, and the canonical JSON of the row without its `hash`.
    fn digest(&self, tenant: &TenantId) -> Digest {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Value::Object(members) = &mut value {
            members.remove("hash");
        }
        let text = format!("{tenant}\n{}", canonical(&value));
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"))
    }
}

/// RFC 8785 JSON of a value without fractions: members sorted by their UTF-16 code units, no white space.
///
/// Integers and strings are written by `serde_json` as the RFC wants them; a number with a fraction may not be, so what we sign
/// and chain holds none.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (place, name) in names.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(&members[name], out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(second: i64) -> AuditEvent {
        let at = Timestamp::from_second(second).expect("a time in range");
        AuditEvent::new(AuditKind::Ingest, "acme-host", at).details(json!({"bytes": 3}))
    }

    #[test]
    fn a_changed_row_no_longer_holds() {
        let tenant = TenantId::parse("acme").expect("a tenant");
        let row = AuditRow::seal(&tenant, 1, event(1), AuditRow::GENESIS);
        assert!(row.holds(&tenant));

        let mut changed = row.clone();
        changed.event.principal = "someone-else".into();
        assert!(!changed.holds(&tenant));
        let mut moved = row.clone();
        moved.seq = 2;
        assert!(!moved.holds(&tenant));
        assert!(!row.holds(&TenantId::parse("other").expect("a tenant")));
    }

    #[test]
    fn a_row_reads_back_as_it_was_written() {
        let tenant = TenantId::parse("acme").expect("a tenant");
        let row = AuditRow::seal(&tenant, 7, event(5), Digest([9; 32]));

        let text = serde_json::to_string(&row).expect("a row is JSON");
        let back: AuditRow = serde_json::from_str(&text).expect("our own JSON reads");
        assert_eq!(back, row);
        assert!(back.holds(&tenant));
    }

    #[test]
    fn members_are_sorted_as_rfc_8785_sorts_them() {
        let value =
            json!({"\u{20ac}": 1, "\r": 2, "1": [true, null, {"b": "ö\n", "a": -1}], "\u{1f600}": 3, "\u{fb33}": 4});

        assert_eq!(
            canonical(&value),
            "{\"\\r\":2,\"1\":[true,null,{\"a\":-1,\"b\":\"ö\\n\"}],\"\u{20ac}\":1,\"\u{1f600}\":3,\"\u{fb33}\":4}"
        );
    }
}
