//! What a host says of the bytes that it sends: the same members in JSON, in multipart and in a query.

use mediakeep_storage::record::{Labels, Origin};
use mediakeep_storage::{Digest, Timestamp};
use ring::digest;
use serde_json::json;

use super::{AssetError, instant};
use crate::http::disposition::clean_name;
use crate::media::Declared;

/// The members as they came: text, not looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawMembers {
    /// `mimeType`.
    pub mime_type: Option<String>,
    /// `name`.
    pub name: Option<String>,
    /// `alt`.
    pub alt: Option<String>,
    /// `title`.
    pub title: Option<String>,
    /// `nodeId`.
    pub node_id: Option<String>,
    /// `envelopeId`.
    pub envelope_id: Option<String>,
    /// `correlationId`.
    pub correlation_id: Option<String>,
    /// `source`.
    pub source: Option<String>,
    /// `sha256`.
    pub sha256: Option<String>,
    /// `retainUntil`.
    pub retain_until: Option<String>,
    /// `delivery`.
    pub delivery: Option<String>,
    /// `url`: where to fetch the bytes from; of an inline body alone.
    pub url: Option<String>,
}

/// The members, looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    /// The type that was declared, if it says anything.
    pub declared: Option<Declared>,
    /// Words for people.
    pub labels: Labels,
    /// The place in the host's log.
    pub origin: Origin,
    /// The digest that the bytes must have.
    pub sha256: Option<Digest>,
    /// How long to keep them.
    pub asked_until: Option<Timestamp>,
    /// Whether the envelope may carry them itself.
    pub inline_allowed: bool,
}

/// The longest names and texts, in bytes for a name and in characters for the rest.
pub const MAX_NAME: usize = 255;
const MAX_ALT: usize = 1024;
const MAX_TITLE: usize = 256;
const MAX_ID: usize = 128;

/// The longest label of a delivery URL, in characters.
const MAX_LABEL: usize = 256;

impl RawMembers {
    /// Where the member of that name belongs; `None`: there is no such member.
    pub fn slot(&mut self, name: &str) -> Option<&mut Option<String>> {
        Some(match name {
            "mimeType" => &mut self.mime_type,
            "name" => &mut self.name,
            "alt" => &mut self.alt,
            "title" => &mut self.title,
            "nodeId" => &mut self.node_id,
            "envelopeId" => &mut self.envelope_id,
            "correlationId" => &mut self.correlation_id,
            "source" => &mut self.source,
            "sha256" => &mut self.sha256,
            "retainUntil" => &mut self.retain_until,
            "delivery" => &mut self.delivery,
            "url" => &mut self.url,
            _ => return None,
        })
    }

    /// Looks at every member; the first that is not what it should be is named. Whether a time has come is not asked here: of a request
    /// that is sent again it may have (see [`Members::keepable`]).
    pub fn check(self) -> Result<Members, AssetError> {
        let declared = self.mime_type.as_deref().map(Declared::parse).transpose();
        let source = self.source.unwrap_or_else(|| "ai-generation".to_owned());
        if !matches!(source.as_str(), "ai-generation" | "user" | "system") {
            return Err(AssetError::Invalid("source: ai-generation, user or system".to_owned()));
        }
        let inline_allowed = match self.delivery.as_deref() {
            None | Some("auto") => true,
            Some("url") => false,
            Some(_) => return Err(AssetError::Invalid("delivery: auto or url".to_owned())),
        };
        Ok(Members {
            declared: declared.map_err(|_| AssetError::Invalid("mimeType: not a media type".to_owned()))?.flatten(),
            labels: Labels {
                name: self.name.map(|name| file_name("name", &name)).transpose()?.flatten(),
                alt: self.alt.map(|alt| words("alt", alt, MAX_ALT)).transpose()?,
                title: self.title.map(|title| words("title", title, MAX_TITLE)).transpose()?,
            },
            origin: Origin {
                node_id: self.node_id.map(|id| outer_id("nodeId", id)).transpose()?,
                envelope_id: self.envelope_id.map(|id| outer_id("envelopeId", id)).transpose()?,
                correlation_id: self.correlation_id.map(|id| outer_id("correlationId", id)).transpose()?,
                source,
            },
            sha256: self.sha256.map(|hex| sha256(&hex)).transpose()?,
            asked_until: self.retain_until.map(|at| instant("retainUntil", &at)).transpose()?,
            inline_allowed,
        })
    }
}

impl Members {
    /// Refuses to keep something until a time that has passed, or longer than anything is kept.
    pub fn keepable(&self, now: Timestamp, longest: Option<Timestamp>) -> Result<(), AssetError> {
        self.asked_until.map_or(Ok(()), |at| ahead("retainUntil", at, now, longest))
    }

    /// Two requests with the same fingerprint ask for the same thing: the asset's bytes and the members, not how they were wrapped.
    pub fn fingerprint(&self, sha256: Digest) -> Digest {
        let text = json!([
            sha256,
            self.declared.as_ref().map(Declared::as_str),
            self.labels.name,
            self.labels.alt,
            self.labels.title,
            self.origin.node_id,
            self.origin.envelope_id,
            self.origin.correlation_id,
            self.origin.source,
            self.asked_until,
            self.inline_allowed,
        ]);
        let hash = digest::digest(&digest::SHA256, text.to_string().as_bytes());
        Digest(hash.as_ref().try_into().expect("a digest is always 32 bytes"))
    }
}

/// A file name, cleaned; `None` when nothing of it is left.
pub fn file_name(member: &str, raw: &str) -> Result<Option<String>, AssetError> {
    if raw.len() > MAX_NAME {
        return Err(AssetError::Invalid(format!("{member}: longer than {MAX_NAME} bytes")));
    }
    Ok(clean_name(raw))
}

/// The words of `alt`.
pub fn alt(raw: String) -> Result<String, AssetError> {
    words("alt", raw, MAX_ALT)
}

/// The words of `title`.
pub fn title(raw: String) -> Result<String, AssetError> {
    words("title", raw, MAX_TITLE)
}

/// The words of a hold's `reason`.
pub fn reason(raw: String) -> Result<String, AssetError> {
    if raw.is_empty() {
        return Err(AssetError::Invalid("reason: empty".to_owned()));
    }
    words("reason", raw, MAX_TITLE)
}

/// An instant that has not come, and is not further away than anybody may ask for.
pub fn future(member: &str, raw: &str, now: Timestamp, longest: Option<Timestamp>) -> Result<Timestamp, AssetError> {
    let at = instant(member, raw)?;
    ahead(member, at, now, longest)?;
    Ok(at)
}

/// An instant, come or not.
pub fn instant(member: &str, raw: &str) -> Result<Timestamp, AssetError> {
    instant::read(raw).ok_or_else(|| AssetError::Invalid(format!("{member}: not a time such as 2030-01-31T12:00:00Z")))
}

fn ahead(member: &str, at: Timestamp, now: Timestamp, longest: Option<Timestamp>) -> Result<(), AssetError> {
    if at <= now {
        return Err(AssetError::Invalid(format!("{member}: that time has passed")));
    }
    if longest.is_some_and(|longest| at > longest) {
        return Err(AssetError::Invalid(format!("{member}: further away than this service keeps anything")));
    }
    Ok(())
}

fn words(member: &str, raw: String, most: usize) -> Result<String, AssetError> {
    if raw.chars().count() > most {
        return Err(AssetError::Invalid(format!("{member}: longer than {most} characters")));
    }
    Ok(raw)
}

/// An id of the host's own: 1 to 128 characters without controls.
pub fn outer_id(member: &str, raw: String) -> Result<String, AssetError> {
    let length = raw.chars().count();
    if !(1..=MAX_ID).contains(&length) || raw.chars().any(char::is_control) {
        return Err(AssetError::Invalid(format!("{member}: 1 to {MAX_ID} characters without controls")));
    }
    Ok(raw)
}

/// The label of a delivery URL.
pub fn label(raw: String) -> Result<String, AssetError> {
    let length = raw.chars().count();
    if !(1..=MAX_LABEL).contains(&length) || raw.chars().any(char::is_control) {
        return Err(AssetError::Invalid(format!("label: 1 to {MAX_LABEL} characters without controls")));
    }
    Ok(raw)
}

fn sha256(hex: &str) -> Result<Digest, AssetError> {
    Digest::parse(hex).map_err(|_| AssetError::Invalid("sha256: not 64 hex digits".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("a time in range")
    }

    fn with(name: &str, value: &str) -> Result<Members, AssetError> {
        let mut raw = RawMembers::default();
        *raw.slot(name).expect("a member") = Some(value.to_owned());
        let members = raw.check()?;
        members.keepable(now(), None)?;
        Ok(members)
    }

    #[test]
    fn a_member_that_is_not_what_it_should_be_is_named() {
        let long = "x".repeat(2000);
        for (name, value) in [
            ("mimeType", "no type"),
            ("name", long.as_str()),
            ("alt", &long),
            ("title", &long),
            ("nodeId", ""),
            ("envelopeId", "a\nb"),
            ("correlationId", &long),
            ("source", "robot"),
            ("sha256", "abc"),
            ("retainUntil", "tomorrow"),
            ("retainUntil", "2001-01-01T00:00:00Z"),
            ("delivery", "never"),
        ] {
            let refusal = with(name, value).expect_err(name).to_string();
            assert!(refusal.starts_with(name), "{refusal}");
            assert!(!refusal.contains(&long), "the value is not repeated");
        }
    }

    #[test]
    fn a_time_finer_than_ours_is_rounded_up() {
        let members = with("retainUntil", "2030-01-01T00:00:00.0000001Z").expect("a valid time");
        let millis = members.asked_until.expect("a time").as_millisecond();
        assert_eq!(millis % 1000, 1);
    }

    #[test]
    fn the_fingerprint_is_of_bytes_and_members() {
        let plain = with("alt", "a chart").expect("valid");
        let other = with("alt", "another").expect("valid");
        let (one, two) = (Digest([1; 32]), Digest([2; 32]));

        assert_eq!(plain.fingerprint(one), plain.clone().fingerprint(one));
        assert_ne!(plain.fingerprint(one), plain.fingerprint(two));
        assert_ne!(plain.fingerprint(one), other.fingerprint(one));
    }
}
