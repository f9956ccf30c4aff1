//! The layout: which keys there are, and why they are as they are.
//!
//! All rows lie in one tree, because a batch of sled is atomic within one tree, and a transition touches many kinds of row. The first
//! byte of a key says which kind:
//!
//! | space | key | row |
//! | --- | --- | --- |
//! | `A` | tenant, asset | the asset |
//! | `R` | tenant, run | the run |
//! | `r` | tenant, run, asset | the run references the asset; holds the place of the row below |
//! | `a` | tenant, asset, place, run | the asset is referenced by the run, newest first |
//! | `F` | tenant, run, artifact | the artifact |
//! | `f` | tenant, asset, run, artifact | the artifact names the asset |
//! | `g` | tenant, run | the last number of its artifacts |
//! | `L` | time, kind, tenant, run or asset | a look |
//! | `B` | tenant, blob | the blob, from its announcement until it is forgotten |
//! | `D` | tenant, digest | the blob that can be shared for these bytes |
//! | `S` | tenant, digest, asset | the asset has these bytes, or had, and was not erased |
//! | `h` | tenant, kind, asset or run, hold | a hold |
//! | `U` | time, tenant, blob | an announced upload, by when it last showed life |
//! | `C` | time, tenant, blob | a condemned blob, by when it goes |
//! | `X` | tenant, blob | a doomed blob |
//! | `K` | tenant, name | an idempotency key |
//! | `V` | tenant, url id | a revoked URL |
//! | `u` | tenant, url id | a delivery URL |
//! | `l` | tenant, label, url id | the delivery URL has the label |
//! | `G` | tenant | how often all of its URLs were revoked at once |
//! | `Q` | tenant | what its live assets come to, and what is reserved for its uploads |
//! | `q` | tenant, blob | how many bytes an earlier version had reserved for the announced upload |
//! | `O` | tenant, digest | a recovery record that is owed to the store, by the digest of what it is |
//! | `N` | tenant | the last number of its holds |
//! | `T` | time, kind, tenant, name | when a row of `K`, `V` or `u` may be dropped |
//! | `P` | number | an audit event that waits for its place, in the order of writing |
//! | `E` | tenant, seq | a sealed audit row |
//! | `H` | tenant | the last sealed row's seq and hash |
//! | `J` | tenant, upload | an upload in parts; what is reserved for it stands in `q`, under its name |
//! | `j` | tenant, upload, offset | one of its parts |
//! | `W` | time, tenant, upload | when it is looked at |
//! | `M` | | the version of this layout |
//!
//! - **Tenants, runs and artifacts** end with a zero byte, which no name holds: the range of tenant `a` has nothing of tenant `ab`, and keys sort
//!   as the names do. A name that stands last (idempotency keys, URL ids, which may hold anything, and holds) has no end mark. A
//!   label, which may hold anything too, comes behind its length.
//! - **Times** are nanoseconds as 128 bits, most significant byte first, sign bit turned: keys sort as the times do, before 1970 too.
//! - **A place** counts an asset's references from 0 and is written complemented, so that the newest comes first. It is a count and
//!   not a time, because two references may be of the same instant and clocks may step back.
//! - **Queues** (`L`, `U`, `C`, `T`, `W`) hold nothing but the key. The row that an entry belongs to knows the entry's time, so an entry
//!   moves when its row changes and never multiplies.

use std::str::FromStr;

use jiff::Timestamp;

use crate::error::StorageError;
use crate::ids::{ArtifactId, AssetId, BlobKey, Digest, HoldId, RunId, TenantId, UploadId};
use crate::index::codec::corrupt;
use crate::index::{Look, LookAt};
use crate::record::HoldOn;

/// The first byte of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Space {
    Assets = b'A',
    Runs = b'R',
    RunAssets = b'r',
    AssetRuns = b'a',
    Artifacts = b'F',
    AssetArtifacts = b'f',
    ArtifactNumbers = b'g',
    Looks = b'L',
    Blobs = b'B',
    Digests = b'D',
    Same = b'S',
    Holds = b'h',
    Uploads = b'U',
    Condemned = b'C',
    Doomed = b'X',
    Claims = b'K',
    Revoked = b'V',
    Urls = b'u',
    Labels = b'l',
    Epochs = b'G',
    Usage = b'Q',
    Reserved = b'q',
    Owed = b'O',
    HoldNumbers = b'N',
    Tidy = b'T',
    Waiting = b'P',
    Events = b'E',
    Heads = b'H',
    Resumables = b'J',
    ResumableParts = b'j',
    ResumableLooks = b'W',
    ResumableReserved = b'y',
    Meta = b'M',
}

/// Most keys are no longer than this.
const USUAL: usize = 80;

/// A key, or the beginning of keys, put together part by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(Vec<u8>);

impl Key {
    pub(super) fn space(space: Space) -> Self {
        let mut key = Vec::with_capacity(USUAL);
        key.push(space as u8);
        Self(key)
    }

    pub(super) fn of(space: Space, tenant: &TenantId) -> Self {
        Self::space(space).name(tenant.as_str())
    }

    pub(super) fn asset(tenant: &TenantId, id: AssetId) -> Self {
        Self::of(Space::Assets, tenant).bytes(&id.to_bytes())
    }

    pub(super) fn run(tenant: &TenantId, id: &RunId) -> Self {
        Self::of(Space::Runs, tenant).name(id.as_str())
    }

    pub(super) fn assets_of(tenant: &TenantId, run: &RunId) -> Self {
        Self::of(Space::RunAssets, tenant).name(run.as_str())
    }

    pub(super) fn run_asset(tenant: &TenantId, run: &RunId, asset: AssetId) -> Self {
        Self::assets_of(tenant, run).bytes(&asset.to_bytes())
    }

    pub(super) fn runs_of(tenant: &TenantId, asset: AssetId) -> Self {
        Self::of(Space::AssetRuns, tenant).bytes(&asset.to_bytes())
    }

    pub(super) fn asset_run(tenant: &TenantId, asset: AssetId, place: u64, run: &RunId) -> Self {
        Self::runs_of(tenant, asset).number(!place).name(run.as_str())
    }

    pub(super) fn artifacts_of(tenant: &TenantId, run: &RunId) -> Self {
        Self::of(Space::Artifacts, tenant).name(run.as_str())
    }

    pub(super) fn artifact(tenant: &TenantId, run: &RunId, id: &ArtifactId) -> Self {
        Self::artifacts_of(tenant, run).name(id.as_str())
    }

    pub(super) fn artifacts_naming(tenant: &TenantId, asset: AssetId) -> Self {
        Self::of(Space::AssetArtifacts, tenant).bytes(&asset.to_bytes())
    }

    pub(super) fn asset_artifact(tenant: &TenantId, asset: AssetId, run: &RunId, id: &ArtifactId) -> Self {
        Self::artifacts_naming(tenant, asset).name(run.as_str()).name(id.as_str())
    }

    pub(super) fn artifact_number(tenant: &TenantId, run: &RunId) -> Self {
        Self::of(Space::ArtifactNumbers, tenant).name(run.as_str())
    }

    pub(super) fn look(at: Timestamp, tenant: &TenantId, what: &LookAt) -> Self {
        let key = Self::space(Space::Looks).time(at);
        match what {
            LookAt::Asset(id) => key.bytes(b"a").name(tenant.as_str()).bytes(&id.to_bytes()),
            LookAt::Run(id) => key.bytes(b"r").name(tenant.as_str()).name(id.as_str()),
        }
    }

    pub(super) fn blob(tenant: &TenantId, blob: BlobKey) -> Self {
        Self::of(Space::Blobs, tenant).bytes(&blob.to_bytes())
    }

    pub(super) fn digest(tenant: &TenantId, digest: &Digest) -> Self {
        Self::of(Space::Digests, tenant).bytes(&digest.0)
    }

    pub(super) fn owed(tenant: &TenantId, name: &Digest) -> Self {
        Self::of(Space::Owed, tenant).bytes(&name.0)
    }

    /// The assets with these bytes.
    pub(super) fn same_as(tenant: &TenantId, digest: &Digest) -> Self {
        Self::of(Space::Same, tenant).bytes(&digest.0)
    }

    pub(super) fn same(tenant: &TenantId, digest: &Digest, asset: AssetId) -> Self {
        Self::same_as(tenant, digest).bytes(&asset.to_bytes())
    }

    pub(super) fn holds_on(tenant: &TenantId, on: &HoldOn) -> Self {
        let key = Self::of(Space::Holds, tenant);
        match on {
            HoldOn::Asset(id) => key.bytes(b"a").bytes(&id.to_bytes()),
            HoldOn::Run(id) => key.bytes(b"r").name(id.as_str()),
        }
    }

    pub(super) fn hold(tenant: &TenantId, on: &HoldOn, id: &HoldId) -> Self {
        Self::holds_on(tenant, on).bytes(id.as_str().as_bytes())
    }

    /// An entry of one of the two queues of blobs by time.
    pub(super) fn blob_at(queue: Space, at: Timestamp, tenant: &TenantId, blob: BlobKey) -> Self {
        Self::space(queue).time(at).name(tenant.as_str()).bytes(&blob.to_bytes())
    }

    pub(super) fn doomed(tenant: &TenantId, blob: BlobKey) -> Self {
        Self::of(Space::Doomed, tenant).bytes(&blob.to_bytes())
    }

    pub(super) fn resumable(tenant: &TenantId, id: UploadId) -> Self {
        Self::of(Space::Resumables, tenant).bytes(&id.to_bytes())
    }

    /// What is reserved for it.
    pub(super) fn resumable_reserved(tenant: &TenantId, id: UploadId) -> Self {
        Self::of(Space::ResumableReserved, tenant).bytes(&id.to_bytes())
    }

    /// The parts of an upload.
    pub(super) fn resumable_parts(tenant: &TenantId, id: UploadId) -> Self {
        Self::of(Space::ResumableParts, tenant).bytes(&id.to_bytes())
    }

    pub(super) fn resumable_part(tenant: &TenantId, id: UploadId, offset: u64) -> Self {
        Self::resumable_parts(tenant, id).number(offset)
    }

    pub(super) fn resumable_look(at: Timestamp, tenant: &TenantId, id: UploadId) -> Self {
        Self::space(Space::ResumableLooks).time(at).name(tenant.as_str()).bytes(&id.to_bytes())
    }

    /// The delivery URLs with this label.
    pub(super) fn label(tenant: &TenantId, label: &str) -> Self {
        Self::of(Space::Labels, tenant).number(label.len() as u64).bytes(label.as_bytes())
    }

    pub(super) fn labelled(tenant: &TenantId, label: &str, url_id: &str) -> Self {
        Self::label(tenant, label).bytes(url_id.as_bytes())
    }

    /// A row of `Claims`, `Revoked` or `Urls`.
    pub(super) fn named(space: Space, tenant: &TenantId, name: &str) -> Self {
        Self::of(space, tenant).bytes(name.as_bytes())
    }

    /// When that row may be dropped.
    pub(super) fn tidy(at: Timestamp, space: Space, tenant: &TenantId, name: &str) -> Self {
        Self::space(Space::Tidy).time(at).bytes(&[space as u8]).name(tenant.as_str()).bytes(name.as_bytes())
    }

    pub(super) fn waiting(number: u64) -> Self {
        Self::space(Space::Waiting).number(number)
    }

    pub(super) fn event(tenant: &TenantId, seq: u64) -> Self {
        Self::of(Space::Events, tenant).number(seq)
    }

    /// A key that was read from the tree.
    pub(super) fn read(raw: &[u8]) -> Self {
        Self(raw.to_vec())
    }

    /// The first key of the space behind everything up to and including `at`.
    pub(super) fn behind_time(space: Space, at: Timestamp) -> Self {
        Self(Self::space(space).time(at).end())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The tenant and the name of a key that `named` made.
    pub(super) fn into_named(self) -> Result<(TenantId, String), StorageError> {
        let mut parts = Parts::of(&self.0);
        let tenant = parts.name()?;
        let name = std::str::from_utf8(parts.0).map_err(|_| bad_key())?;
        Ok((tenant, name.to_owned()))
    }

    pub(super) fn is_in(&self, space: Space) -> bool {
        self.0.first() == Some(&(space as u8))
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The first key behind all that begin with this one.
    pub(super) fn end(&self) -> Vec<u8> {
        let mut end = self.0.clone();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                break;
            }
        }
        end
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn name(self, name: &str) -> Self {
        self.bytes(name.as_bytes()).bytes(&[0])
    }

    fn number(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    fn time(self, at: Timestamp) -> Self {
        self.bytes(&(at.as_nanosecond() ^ i128::MIN).to_be_bytes())
    }
}

/// Reads a key back, part by part, from behind its space.
#[derive(Debug)]
pub(super) struct Parts<'k>(&'k [u8]);

impl<'k> Parts<'k> {
    pub(super) fn of(key: &'k [u8]) -> Self {
        Self(key.get(1..).unwrap_or_default())
    }

    /// The look of a key in `Looks`.
    pub(super) fn look(mut self) -> Result<Look, StorageError> {
        let due = self.time()?;
        let kind = self.bytes::<1>()?;
        let tenant = self.name()?;
        let at = match &kind {
            b"a" => LookAt::Asset(self.asset()?),
            b"r" => LookAt::Run(self.name()?),
            _ => return Err(bad_key()),
        };
        Ok(Look { tenant, at, due })
    }

    /// The blob of a key in `Uploads` or `Condemned`, and its time.
    pub(super) fn blob_at(mut self) -> Result<(Timestamp, TenantId, BlobKey), StorageError> {
        Ok((self.time()?, self.name()?, self.blob()?))
    }

    /// The upload of a key in `ResumableLooks`.
    pub(super) fn resumable_look(mut self) -> Result<(TenantId, UploadId), StorageError> {
        self.time()?;
        Ok((self.name()?, UploadId::from_bytes(self.bytes()?)))
    }

    /// The key of the row that a key in `Tidy` speaks of.
    pub(super) fn tidy(mut self) -> Result<Key, StorageError> {
        self.time()?;
        Ok(Key::read(self.0))
    }

    pub(super) fn time(&mut self) -> Result<Timestamp, StorageError> {
        let nanos = i128::from_be_bytes(self.bytes()?) ^ i128::MIN;
        Timestamp::from_nanosecond(nanos).map_err(|_| bad_key())
    }

    pub(super) fn number(&mut self) -> Result<u64, StorageError> {
        self.bytes().map(u64::from_be_bytes)
    }

    pub(super) fn asset(&mut self) -> Result<AssetId, StorageError> {
        self.bytes().map(AssetId::from_bytes)
    }

    pub(super) fn blob(&mut self) -> Result<BlobKey, StorageError> {
        self.bytes().map(BlobKey::from_bytes)
    }

    pub(super) fn name<T: FromStr>(&mut self) -> Result<T, StorageError> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(bad_key)?;
        let name = std::str::from_utf8(&self.0[..end]).map_err(|_| bad_key())?;
        self.0 = &self.0[end + 1..];
        name.parse().map_err(|_| bad_key())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], StorageError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(bad_key)?;
        self.0 = rest;
        Ok(*bytes)
    }
}

fn bad_key() -> StorageError {
    corrupt("a key is not of its space's form".into())
}

#[cfg(test)]
mod tests;
