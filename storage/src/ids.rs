//! Names that have been looked at: whoever holds one of these types holds a valid name.

use std::fmt;
use std::str::FromStr;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A name from outside that is not of its type's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid {0}")]
pub struct BadName(pub &'static str);

/// Who owns an asset: 1 to 64 of `[A-Za-z0-9._-]`, not beginning with a dot; case counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantId(Box<str>);

impl TenantId {
    /// The tenant of that name, if it is one.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if raw.is_empty() || raw.len() > 64 || raw.starts_with('.') || !raw.bytes().all(allowed) {
            return Err(BadName("tenant"));
        }
        Ok(Self(raw.into()))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tenant's folder in a store: lower-case base32, so that stores and disks that fold case keep two tenants apart.
    pub fn prefix(&self) -> String {
        BASE32_NOPAD.encode(self.0.as_bytes()).to_ascii_lowercase()
    }

    /// The tenant whose [`prefix`](Self::prefix) this is.
    pub fn from_prefix(prefix: &str) -> Result<Self, BadName> {
        if prefix.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(BadName("tenant prefix"));
        }
        let raw = BASE32_NOPAD.decode(prefix.to_ascii_uppercase().as_bytes()).map_err(|_| BadName("tenant prefix"))?;
        Self::parse(std::str::from_utf8(&raw).map_err(|_| BadName("tenant prefix"))?)
    }
}

/// A run of the host: 1 to 128 of `[A-Za-z0-9._:~-]`, never `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Box<str>);

impl RunId {
    /// The run of that name, if it is one.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        if is_hosts_name(raw, 128) { Ok(Self(raw.into())) } else { Err(BadName("runId")) }
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether it is a name that a host may give, of at most so many characters.
fn is_hosts_name(raw: &str, most: usize) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'~' | b'-');
    (1..=most).contains(&raw.len()) && !matches!(raw, "." | "..") && raw.bytes().all(allowed)
}

/// An artifact of a run, by the name that its host gave it: of a run's form, and long enough for a run's name and a node's with a mark
/// between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactId(Box<str>);

impl ArtifactId {
    /// The artifact of that name, if it is one.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        if is_hosts_name(raw, 257) { Ok(Self(raw.into())) } else { Err(BadName("artifactId")) }
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A hold, by the name that its host gave it: of the form of a run's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HoldId(Box<str>);

impl HoldId {
    /// The hold of that name, if it is one.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        RunId::parse(raw).map(|RunId(name)| Self(name)).map_err(|_| BadName("holdId"))
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One asset: a UUIDv7, written `ast_` and 26 characters of lower-case Crockford base32, so that names sort by age.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssetId(Uuid);

const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl AssetId {
    /// A name that nobody has: 48 bits of `now`, the rest chance. Within a millisecond they have no order.
    pub fn generate(now: Timestamp) -> Self {
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let nanos = u32::try_from((millis % 1000) * 1_000_000).unwrap_or(0);
        Self(Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, millis / 1000, nanos)))
    }

    /// The asset of that name; only the one canonical spelling is a name.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        let digits = raw.strip_prefix("ast_").ok_or(BadName("assetId"))?;
        if digits.len() != 26 || digits.as_bytes()[0] > b'7' {
            return Err(BadName("assetId"));
        }
        let mut value = 0u128;
        for byte in digits.bytes() {
            let digit = CROCKFORD.iter().position(|c| *c == byte).ok_or(BadName("assetId"))?;
            value = value << 5 | digit as u128;
        }
        Ok(Self(Uuid::from_u128(value)))
    }

    /// The sixteen bytes, in the order in which names sort.
    pub fn to_bytes(self) -> [u8; 16] {
        *self.0.as_bytes()
    }

    /// The name with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0.as_u128();
        f.write_str("ast_")?;
        (0..26).rev().try_for_each(|place| {
            let digit = (value >> (place * 5)) & 31;
            fmt::Write::write_char(f, char::from(CROCKFORD[digit as usize]))
        })
    }
}

impl fmt::Debug for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a blob lies: a random name below its tenant's prefix. It says nothing of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey([u8; 16]);

impl BlobKey {
    /// A name that nobody has.
    pub fn generate() -> Self {
        Self(*Uuid::new_v4().as_bytes())
    }

    /// The sixteen bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The key with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The key of that spelling: 32 lower-case hex digits.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        decode_hex(raw).map(Self).ok_or(BadName("blob key"))
    }
}

impl fmt::Display for BlobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// An upload that comes in parts: a random name, which is no capability, since whoever uses it needs its tenant's credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UploadId([u8; 16]);

impl UploadId {
    /// A name that nobody has.
    pub fn generate() -> Self {
        Self(*Uuid::new_v4().as_bytes())
    }

    /// The sixteen bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The upload with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The upload of that spelling: 32 lower-case hex digits.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        decode_hex(raw).map(Self).ok_or(BadName("upload"))
    }

    /// Under this key stands what is reserved for it.
    pub(crate) fn reservation(self) -> BlobKey {
        BlobKey(self.0)
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

/// A SHA-256 of an asset's bytes, written in lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// What stands in place of the digest of an erased asset.
    pub const ERASED: Self = Self([0; 32]);

    /// The digest of that spelling; upper-case digits are understood.
    pub fn parse(raw: &str) -> Result<Self, BadName> {
        decode_hex(&raw.to_ascii_lowercase()).map(Self).ok_or(BadName("sha256"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn decode_hex<const N: usize>(raw: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(raw.as_bytes()).ok()?.try_into().ok()
}

/// Each of these is written as its text, and read through its `parse`: a stored name is as valid as one from outside.
macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl FromStr for $name {
            type Err = BadName;
            fn from_str(raw: &str) -> Result<Self, BadName> {
                Self::parse(raw)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&raw).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for HoldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

as_text!(TenantId, RunId, ArtifactId, HoldId, AssetId, BlobKey, Digest, UploadId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_id_reads_back_as_it_was_written() {
        let id = AssetId::generate(Timestamp::from_second(1_800_000_000).expect("a time in range"));
        let text = id.to_string();

        assert_eq!(text.len(), 30);
        assert_eq!(AssetId::parse(&text), Ok(id));
    }

    #[test]
    fn only_the_canonical_spelling_is_an_asset_id() {
        let good = "ast_01jc0000000000000000000000";
        assert!(AssetId::parse(good).is_ok());
        for bad in [
            "",
            "ast_",
            "AST_01jc0000000000000000000000",
            "ast_01JC0000000000000000000000",
            "ast_81jc0000000000000000000000",
            "ast_01jc000000000000000000000i",
            "ast_01jc00000000000000000000000",
            "../../etc/passwd",
        ] {
            assert!(AssetId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn asset_ids_sort_by_age() {
        let at = |second| Timestamp::from_second(second).expect("a time in range");
        let (older, newer) = (AssetId::generate(at(1_000)), AssetId::generate(at(1_001)));

        assert!(older < newer);
        assert!(older.to_string() < newer.to_string());
    }

    #[test]
    fn two_tenants_that_differ_in_case_have_two_prefixes() {
        let (upper, lower) = (TenantId::parse("Acme"), TenantId::parse("acme"));
        let (upper, lower) = (upper.expect("a tenant"), lower.expect("a tenant"));

        assert_ne!(upper.prefix(), lower.prefix());
        assert_eq!(TenantId::from_prefix(&upper.prefix()), Ok(upper));
    }

    #[test]
    fn names_that_walk_out_of_their_folder_are_no_names() {
        for bad in ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "ä", "a%2fb", "a\0"] {
            assert!(TenantId::parse(bad).is_err(), "{bad}");
        }
        for bad in ["", ".", "..", "a/b", "a\\b", "a b", "ä", "a%2fb", "a\0"] {
            assert!(RunId::parse(bad).is_err() && ArtifactId::parse(bad).is_err(), "{bad}");
        }
        assert!(RunId::parse("run:1~a.b-c_D").is_ok());
        assert!(ArtifactId::parse(&"a".repeat(257)).is_ok() && ArtifactId::parse(&"a".repeat(258)).is_err());
    }
}
