//! Artifacts of runs (RFC 0205): documents of a host's own whose parts are texts, JSON values, and assets.
//!
//! What is promised:
//!
//! - An artifact is what was put last, whole. Putting it references every asset that it names for its run, in one transition with the
//!   document itself; a later put takes no reference away, because a log may have quoted what stood there before.
//! - Bytes that a part brings along (`raw`) are stored as assets of the run before the transition, by the one way in; equal bytes of a run
//!   are one asset ([`crate::assets::once`]). The document holds no bytes. What was stored before something failed stays, referenced by
//!   the run.
//! - It lives as long as its run keeps anything, and is gone at once when the run is erased; from then on nothing can be put there.
//! - Whoever may read artifacts may read the content of the assets that an artifact names as it stands now, and of no other asset.
//! - A part whose asset is over stays: the document is what the host said. Its URL says 410, as every other does.
//!
//! Deliberately absent: lists, deletion, and revisions of artifacts; a fork's copies of its parent's; any look into `data`; and any fetching: a
//! part that is a URL of somebody else's is no part that can be put.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::{try_join, try_join_all};
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::index::{NewArtifact, PutArtifact};
use mediakeep_storage::record::{ArtifactRecord, Owed, ReferenceRecord, RunRecord};
use mediakeep_storage::{ArtifactId, AssetId, AssetRecord, AuditEvent, Digest, RunId, TenantId};
use serde_json::json;

use crate::access::Principal;
use crate::app::App;
use crate::assets::AssetError;
use crate::assets::ingest::Ingest;
use crate::assets::members::{Members, RawMembers};
use crate::assets::once::{self, Weighed};
use crate::base64::{BadBase64, Decoder};
use crate::retention::{artifacts, runs};

mod document;

pub use document::{MAX_DESCRIPTION, MAX_DOCUMENT, MAX_PARTS, Part, Wish};

/// Why an artifact is not put.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The base64 of a part is none.
    #[error("parts/{part}/raw: character {offset} does not belong there")]
    Base64 {
        /// Which part.
        part: usize,
        /// Which character.
        offset: u64,
    },
    /// Something of the assets.
    #[error(transparent)]
    Asset(#[from] AssetError),
}

/// The run's artifact of that name.
pub async fn show(app: &App, tenant: &TenantId, run: &RunId, id: &ArtifactId) -> Result<ArtifactRecord, AssetError> {
    app.index.artifact(tenant, run, id).await?.ok_or(AssetError::NotFound)
}

/// The rows of the assets that an artifact names, as far as they are there.
pub async fn assets(
    app: &App,
    tenant: &TenantId,
    artifact: &ArtifactRecord,
) -> Result<HashMap<AssetId, AssetRecord>, AssetError> {
    let mut found = HashMap::with_capacity(artifact.assets.len());
    for some in artifact.assets.chunks(SIDE_BY_SIDE) {
        let rows = try_join_all(some.iter().map(|id| app.index.find(tenant, *id))).await?;
        found.extend(rows.into_iter().flatten().map(|record| (record.id, record)));
    }
    Ok(found)
}

/// So many rows are read at a time.
const SIDE_BY_SIDE: usize = 16;

/// Refuses the content of an asset that no artifact names: to whoever may read artifacts alone it is as if it were not there.
pub async fn must_name(app: &App, tenant: &TenantId, asset: AssetId) -> Result<(), AssetError> {
    app.index.artifact_naming(tenant, asset).await?.map(drop).ok_or(AssetError::NotFound)
}

/// Puts the artifact; says whether it replaced another.
pub async fn put(
    app: &Arc<App>,
    caller: &Principal,
    run: &RunId,
    id: &ArtifactId,
    wish: Wish,
) -> Result<(ArtifactRecord, bool), ArtifactError> {
    let raws = weigh(&wish)?;
    wish.fits()?;
    look_at(app, caller, run, &wish, !raws.is_empty()).await?;
    let stored = store(app, caller, run, &wish, &raws).await?;
    let (document, assets, at) = wish.document(&stored);
    let artifact = NewArtifact { run: run.clone(), id: id.clone(), document, assets };
    let (artifact, run, replaced) = transition(app, caller, &artifact, &at).await?;
    after(app, &caller.tenant, &artifact, &run).await?;
    Ok((artifact, replaced))
}

/// A part that brings its bytes along.
struct Raw {
    part: usize,
    weighed: Weighed,
    members: Members,
}

/// Decodes every part that brings bytes: nothing is stored before all of them were read.
fn weigh(wish: &Wish) -> Result<Vec<Raw>, ArtifactError> {
    let mut raws = Vec::new();
    for (part, said) in wish.parts.iter().enumerate() {
        let Part::Raw { base64, media_type, filename } = said else {
            continue;
        };
        let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
        let mut pieces = Pieces::of(base64);
        let mut bytes = 0;
        while let Some(piece) = pieces.next().map_err(|bad| ArtifactError::Base64 { part, offset: bad.offset })? {
            hash.update(&piece);
            bytes += piece.len() as u64;
        }
        if bytes == 0 {
            return Err(AssetError::Empty.into());
        }
        let sha256 = Digest(hash.finish().as_ref().try_into().expect("a digest is always 32 bytes"));
        let members = RawMembers {
            mime_type: Some(media_type.clone()),
            name: filename.clone(),
            sha256: Some(sha256.to_string()),
            delivery: Some("url".to_owned()),
            ..RawMembers::default()
        };
        let no_type = |_| AssetError::Invalid(format!("parts/{part}/mediaType: not a media type"));
        let members = members.check().map_err(no_type)?;
        raws.push(Raw { part, weighed: Weighed { bytes, sha256 }, members });
    }
    Ok(raws)
}

/// What can be said before anything is stored: whether each asset is there, and whether the run takes anything.
async fn look_at(app: &App, caller: &Principal, run: &RunId, wish: &Wish, stores: bool) -> Result<(), AssetError> {
    let tenant = &caller.tenant;
    let mut positions = Vec::new();
    for (position, asset) in wish.named() {
        let known = match asset {
            Some(asset) => app.index.find(tenant, asset).await?.is_some(),
            None => false,
        };
        if !known {
            positions.push(position);
        }
    }
    if !positions.is_empty() {
        return Err(AssetError::Unknown { positions });
    }
    if stores && app.index.find_run(tenant, run).await?.is_some_and(|run| run.erased_at.is_some()) {
        return Err(AssetError::RunErased);
    }
    Ok(())
}

/// Stores the bytes that parts bring along; says which asset each part became.
async fn store(
    app: &Arc<App>,
    caller: &Principal,
    run: &RunId,
    wish: &Wish,
    raws: &[Raw],
) -> Result<HashMap<usize, AssetId>, ArtifactError> {
    let digests = raws.iter().map(|raw| raw.weighed.sha256);
    let mut known = once::known(app, &caller.tenant, run, digests).await?;
    let mut stored = HashMap::with_capacity(raws.len());
    for Raw { part, weighed, members } in raws {
        let Part::Raw { base64, .. } = &wish.parts[*part] else {
            continue;
        };
        let asset = match known.get(&weighed.sha256) {
            Some(asset) => *asset,
            None => {
                let feed = async |ingest: &mut Ingest| {
                    let mut pieces = Pieces::of(base64);
                    let bad = |bad: BadBase64| ArtifactError::Base64 { part: *part, offset: bad.offset };
                    while let Some(piece) = pieces.next().map_err(bad)? {
                        ingest.write(piece).await?;
                    }
                    Ok::<_, ArtifactError>(())
                };
                once::keep(app, caller, run, *weighed, members, feed).await?.0
            }
        };
        known.insert(weighed.sha256, asset);
        stored.insert(*part, asset);
    }
    Ok(stored)
}

/// The transition; `at` says at which part each of the assets stands.
async fn transition(
    app: &App,
    caller: &Principal,
    artifact: &NewArtifact,
    at: &[usize],
) -> Result<(ArtifactRecord, RunRecord, bool), AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let details = json!({"artifactId": artifact.id, "assets": artifact.assets});
    let audit = AuditEvent::new(AuditKind::Artifact, &*caller.id, now).run(&artifact.run).details(details);
    match app.index.put_artifact(tenant, artifact, &app.terms(tenant), audit, now).await? {
        PutArtifact::Done { artifact, run, replaced } => Ok((*artifact, *run, replaced)),
        PutArtifact::Unknown(positions) => {
            let positions = positions.into_iter().filter_map(|position| at.get(position).copied()).collect();
            Err(AssetError::Unknown { positions })
        }
        PutArtifact::RunErased => Err(AssetError::RunErased),
    }
}

/// What follows the transition: the records beside the bytes say it too, before anybody is told.
async fn after(app: &App, tenant: &TenantId, artifact: &ArtifactRecord, run: &RunRecord) -> Result<(), AssetError> {
    artifact.assets.iter().for_each(|id| app.rows.changed(*id));
    let references = ReferenceRecord::new(&artifact.run, &artifact.assets, artifact.put_at);
    let quoted = async {
        if !references.assets.is_empty() {
            app.blobs.put_references(tenant, &references).await?;
            app.paid.note(tenant, &Owed::References(references.clone()));
        }
        artifacts::write_record(app, tenant, &artifact.run, &artifact.id, artifact.number).await
    };
    try_join(runs::put_recovery_record(app, tenant, run), quoted).await.map(drop)
}

/// A string of base64, decoded piece by piece.
struct Pieces<'a> {
    text: std::slice::Chunks<'a, u8>,
    decoder: Option<Decoder>,
}

/// So much base64 is decoded at once.
const STEP: usize = 64 << 10;

impl<'a> Pieces<'a> {
    fn of(text: &'a str) -> Self {
        Self { text: text.as_bytes().chunks(STEP), decoder: Some(Decoder::new()) }
    }

    /// The next bytes, which may be none; `None` at the end.
    fn next(&mut self) -> Result<Option<Bytes>, BadBase64> {
        let mut out = BytesMut::new();
        match (self.text.next(), &mut self.decoder) {
            (Some(step), Some(decoder)) => decoder.push(step, &mut out)?,
            (_, ended) => match ended.take() {
                Some(decoder) => decoder.finish(&mut out)?,
                None => return Ok(None),
            },
        }
        Ok(Some(out.freeze()))
    }
}
