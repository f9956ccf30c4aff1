//! What a sender says of an upload before its bytes come: the tus `Upload-Metadata`, and what is to become of them.

use data_encoding::BASE64;
use mediakeep_storage::resumable::Purpose;
use mediakeep_storage::{RunId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::AssetError;
use crate::app::App;
use crate::assets::members::{Members, RawMembers};
use crate::retention::runs::longest;

/// What a request wishes for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// How many bytes there will be; `None`: said later.
    pub length: Option<u64>,
    /// What they are for.
    pub purpose: Purpose,
    /// What is said of them.
    pub said: Said,
}

/// What is said of an upload, as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// `Upload-Metadata`.
    #[serde(default)]
    pub metadata: Option<String>,
    /// `Upload-Concat`.
    #[serde(default)]
    pub concat: Option<String>,
    /// `Idempotency-Key`: of the request that began it, for the asset at its end.
    #[serde(default)]
    pub idempotency_key: Option<String>,
}

impl Said {
    /// What an upload's row has of it.
    pub fn of(said: &Value) -> Self {
        serde_json::from_value(said.clone()).unwrap_or_default()
    }

    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// The members and the run; the first that is not what it should be is named. Keys that nobody knows are passed over.
    pub fn read(&self) -> Result<(Members, Option<RunId>), AssetError> {
        let (mut raw, mut run, mut file) = (RawMembers::default(), None, RawMembers::default());
        for (key, value) in pairs(self.metadata.as_deref().unwrap_or_default())? {
            let slot = match key {
                "runId" => &mut run,
                "filename" => &mut file.name,
                "filetype" => &mut file.mime_type,
                "url" => continue,
                _ => match raw.slot(key) {
                    Some(slot) => slot,
                    None => continue,
                },
            };
            let text = String::from_utf8(value);
            *slot = Some(text.map_err(|_| AssetError::Invalid(format!("Upload-Metadata: {key}: not UTF-8")))?);
        }
        raw.name = raw.name.or(file.name);
        // A browser that does not know the type says nothing in it.
        raw.mime_type = raw.mime_type.or(file.mime_type).filter(|declared| !declared.is_empty());
        let run = run.map(|run| RunId::parse(&run)).transpose();
        let run =
            run.map_err(|_| AssetError::Invalid("runId: 1 to 128 of A-Z a-z 0-9 . _ : ~ -, not . or ..".to_owned()))?;
        Ok((raw.check()?, run))
    }

    /// Refuses at the beginning what would be refused at the end, as far as that can be known.
    pub(super) async fn check(&self, app: &App, tenant: &TenantId, now: Timestamp) -> Result<(), AssetError> {
        let (members, run) = self.read()?;
        members.keepable(now, longest(app, now))?;
        if let Some(run) = run
            && app.index.find_run(tenant, &run).await?.is_some_and(|run| run.erased_at.is_some())
        {
            return Err(AssetError::RunErased);
        }
        Ok(())
    }
}

/// Refuses metadata that does not read, whatever its keys are.
pub fn must_read(metadata: &str) -> Result<(), AssetError> {
    pairs(metadata).map(drop)
}

/// The keys, each with its value.
fn pairs(metadata: &str) -> Result<Vec<(&str, Vec<u8>)>, AssetError> {
    let wrong = |what: &str| AssetError::Invalid(format!("Upload-Metadata: {what}"));
    let mut pairs: Vec<(&str, Vec<u8>)> = Vec::new();
    if metadata.trim().is_empty() {
        return Ok(pairs);
    }
    for pair in metadata.split(',') {
        let mut words = pair.trim().split(' ');
        let (key, value, more) = (words.next().unwrap_or_default(), words.next(), words.next());
        if key.is_empty() || more.is_some() || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(wrong("pairs of a key and its value in base64, with one space between them"));
        }
        if pairs.iter().any(|(known, _)| *known == key) {
            return Err(wrong("a key appears twice"));
        }
        let value = BASE64.decode(value.unwrap_or_default().as_bytes()).map_err(|_| wrong("a value is not base64"))?;
        pairs.push((key, value));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(metadata: &str) -> Said {
        Said { metadata: Some(metadata.to_owned()), ..Said::default() }
    }

    fn pair(key: &str, value: &str) -> String {
        format!("{key} {}", BASE64.encode(value.as_bytes()))
    }

    #[test]
    fn metadata_is_members_a_run_and_what_clients_call_a_file() {
        let both = [pair("runId", "run-1"), pair("filename", "a.png"), pair("filetype", "image/png"), pair("alt", "x")];
        let (members, run) = said(&both.join(",")).read().expect("it reads");
        assert_eq!(run.as_ref().map(RunId::as_str), Some("run-1"));
        assert_eq!((members.labels.name.as_deref(), members.labels.alt.as_deref()), (Some("a.png"), Some("x")));
        assert_eq!(members.declared.as_ref().map(|declared| declared.as_str()), Some("image/png"));

        let (members, _) = said(&[pair("filename", "a"), pair("name", "b")].join(", ")).read().expect("it reads");
        assert_eq!(members.labels.name.as_deref(), Some("b"), "a member of ours says more");
    }

    #[test]
    fn keys_that_nobody_knows_are_passed_over_if_they_read() {
        let odd = format!("is_confidential,{},{}", pair("relativePath", "null"), pair("url", "http://x/"));
        assert_eq!(said(&odd).read().expect("it reads").0, said("").read().expect("it reads").0);
    }

    #[test]
    fn what_does_not_read_is_refused_and_not_repeated() {
        for metadata in ["name !!!!", "name YQ", "name  YQ==", "name YQ== x", ",", "name YQ==,name Yg==", "näme YQ=="]
        {
            let refused = said(metadata).read().expect_err(metadata).to_string();
            assert!(refused.starts_with("Upload-Metadata: ") && !refused.contains("YQ"), "{refused}");
        }
        assert!(said("name /w==").read().is_err(), "not UTF-8");
        assert!(said(&pair("runId", "a/b")).read().is_err());
    }
}
