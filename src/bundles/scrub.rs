//! Scrubbing a bundle: its media are stored for its run, and where they stood stands their bound URL.
//!
//! Equal bytes of the same run are one asset, whichever scrub stored them: those that the run references already are found by their
//! digest, and two scrubs at a time meet in an idempotency key made of it. What was stored before something failed stays, referenced by the
//! run; the same bundle sent again finds it.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use mediakeep_storage::index::AssetQuery;
use mediakeep_storage::{AssetId, AssetView, RunId, TenantId};
use serde_json::json;

use super::answer::Scrubbed;
use super::body::Reader;
use super::found::{Finding, Found, MANIFEST, What};
use super::spool::Spool;
use super::text::Media;
use super::{BundleError, Reading};
use crate::access::Principal;
use crate::app::App;
use crate::assets::ingest::{Ingest, Start};
use crate::assets::library::{self, MAX_PAGE};
use crate::assets::members::{Members, RawMembers};
use crate::assets::{AssetError, urls};
use crate::audit::signed::signed;
use crate::json::string::{Piece, StringReader};
use crate::projection::manifest::{Counts, Manifest};

/// So many assets of a run stand in the manifest of a bundle; what is more is behind its `nextCursor`.
const MAX_LISTED: usize = 10_000;

/// Another scrub that stores the same bytes is waited for so often, and so long each time.
const WAITS: u32 = 100;
const WAIT: Duration = Duration::from_millis(100);

/// The findings that a scrub tells: what it could not mend.
const TOLD: [&str; 4] = ["foreign_url", "malformed", "source_ambiguous", "source_missing"];

/// Stores the bundle's media, and gives the answer to be read piece by piece.
pub async fn scrub(app: &Arc<App>, caller: &Principal, bundle: Reading<'_>) -> Result<Scrubbed, BundleError> {
    let (mut found, spool) = bundle.finish()?;
    let mut spool = spool.ok_or_else(|| AssetError::Internal("a bundle to scrub lies on no disk".to_owned()))?;
    spool.seal().await?;
    let run = found.run.as_deref().and_then(|run| RunId::parse(run).ok()).ok_or(BundleError::NoRun)?;
    replace_manifest(&mut found);
    let mut work = Work { app, caller, run: &run, spool, known: HashMap::new(), stored: 0 };
    let assets = work.store(&found).await?;
    let (stored, spool) = (work.stored, work.spool);
    let manifest = manifest(app, &caller.tenant, &run).await?;
    let rewritten = found
        .edits
        .iter()
        .filter(|edit| matches!(edit.what, What::Media(..) | What::Quoted(_) | What::Link(..)))
        .count();
    let findings: Vec<_> = found.findings.iter().filter(|finding| TOLD.contains(&finding.code)).map(told).collect();
    let scrub = json!({"stored": stored, "rewritten": rewritten, "findings": findings});
    let insert = match found.manifest {
        Some(_) => manifest,
        None if found.is_empty => format!("\"{MANIFEST}\":{manifest}"),
        None => format!(",\"{MANIFEST}\":{manifest}"),
    };
    let place = found.manifest.unwrap_or(found.bundle.end - 1..found.bundle.end - 1);
    Ok(Scrubbed {
        spool,
        at: found.bundle.start,
        end: found.bundle.end,
        edits: found.edits.into_iter().peekable(),
        urls: assets.into_iter().map(|asset| urls::bound_url(app, asset)).collect(),
        app: app.clone(),
        insert: Some((place, insert)),
        head: Some("{\"bundle\":"),
        tail: Some(format!(",\"scrub\":{scrub}}}")),
        window: (0, Bytes::new()),
    })
}

fn told(finding: &Finding) -> serde_json::Value {
    json!({"path": finding.path, "code": finding.code, "message": finding.message})
}

/// What lies in a manifest of an earlier scrub goes with it.
fn replace_manifest(found: &mut Found) {
    if let Some(manifest) = &found.manifest {
        found.edits.retain(|edit| !manifest.contains(&edit.range.start));
        let inside = format!("/{MANIFEST}/");
        found.findings.retain(|finding| !finding.path.starts_with(&inside));
    }
}

/// The storing of a bundle's media.
struct Work<'a> {
    app: &'a Arc<App>,
    caller: &'a Principal,
    run: &'a RunId,
    spool: Spool,
    /// Assets of the run by the digests of their bytes, in hex.
    known: HashMap<String, AssetId>,
    stored: u64,
}

impl Work<'_> {
    /// What each of the media became; those that no edit names are left out of the store, and stand for themselves.
    async fn store(&mut self, found: &Found) -> Result<Vec<AssetId>, BundleError> {
        let used: BTreeSet<usize> = found
            .edits
            .iter()
            .filter_map(|edit| if let What::Media(at, _) | What::Quoted(at) = edit.what { Some(at) } else { None })
            .collect();
        self.know(used.iter().map(|at| &found.media[*at])).await?;
        let nothing = AssetId::generate(self.app.now());
        let mut assets = vec![nothing; found.media.len()];
        for at in used {
            let media = &found.media[at];
            let sha256 = media.weighed.sha256.to_string();
            let asset = match self.known.get(&sha256) {
                Some(asset) => *asset,
                None => self.keep(media).await?,
            };
            self.known.insert(sha256, asset);
            assets[at] = asset;
        }
        Ok(assets)
    }

    /// Looks up which of the bytes the run references already.
    async fn know(&mut self, media: impl Iterator<Item = &Media>) -> Result<(), BundleError> {
        let (app, tenant) = (self.app, &self.caller.tenant);
        let mut wanted = BTreeSet::new();
        for media in media {
            let sha256 = media.weighed.sha256;
            if !wanted.contains(&sha256.to_string()) && app.index.blob_of(tenant, &sha256).await?.is_some() {
                wanted.insert(sha256.to_string());
            }
        }
        let live = Some("live".to_owned());
        let mut query =
            AssetQuery { run: Some(self.run.clone()), state: live, limit: MAX_PAGE, ..AssetQuery::default() };
        while self.known.len() < wanted.len() {
            let page = app.index.page(tenant, &query, &app.terms(tenant)).await?;
            let Some(last) = page.last() else {
                break;
            };
            query.after = Some(last.record.id);
            for view in page.iter().filter(|view| !view.floor.until.is_past(app.now())) {
                let sha256 = view.record.sha256.to_string();
                if wanted.contains(&sha256) {
                    self.known.entry(sha256).or_insert(view.record.id);
                }
            }
        }
        Ok(())
    }

    /// Stores one of the media, or finds what another scrub has just made of the same bytes.
    async fn keep(&mut self, media: &Media) -> Result<AssetId, BundleError> {
        // No caller's key has a colon.
        let mut key = Some(format!("scrub:{}", media.weighed.sha256));
        let members = members(media)?;
        for _ in 0..WAITS {
            let bytes = Some(media.weighed.bytes);
            let start = Start {
                principal: self.caller.clone(),
                run: Some(self.run.clone()),
                idempotency_key: key.clone(),
                announced: bytes,
                at_most: bytes,
                from: None,
            };
            let mut ingest = Ingest::begin_at(self.app, start, self.spool.slot()).await?;
            if let Err(error) = self.feed(media, &mut ingest).await {
                ingest.abandon().await;
                return Err(error);
            }
            match ingest.finish(members.clone()).await {
                Ok(ingested) if ingested.view.record.is_live() => {
                    self.stored += u64::from(!ingested.replayed);
                    return Ok(ingested.view.record.id);
                }
                Err(AssetError::IdempotencyInFlight) => tokio::time::sleep(WAIT).await,
                // What the key made is over, or was said to be of another type.
                Ok(_) | Err(AssetError::IdempotencyMismatch) => key = None,
                Err(error) => return Err(error.into()),
            }
        }
        Err(AssetError::IdempotencyInFlight.into())
    }

    async fn feed(&mut self, media: &Media, ingest: &mut Ingest) -> Result<(), BundleError> {
        let (mut body, mut string) = (Reader::new(media.form), StringReader::default());
        let (mut at, mut out) = (media.body.start, BytesMut::new());
        let changed = || BundleError::from(io::Error::other("the bundle on the disk is not what was read"));
        while at < media.body.end {
            let chunk = self.spool.read(&(at..media.body.end)).await?;
            at += chunk.len() as u64;
            let mut rest = chunk.as_ref();
            while !rest.is_empty() {
                let (piece, used) = string.next(rest).map_err(|_| changed())?;
                let decoded = match piece {
                    Piece::Text(text) => body.push(text, &mut out),
                    Piece::Char(character) => body.push(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut out),
                    Piece::More | Piece::End => Ok(()),
                };
                decoded.map_err(|_| changed())?;
                rest = &rest[used..];
            }
            if !out.is_empty() {
                ingest.write(out.split().freeze()).await?;
            }
        }
        body.finish(&mut out).map_err(|_| changed())?;
        if !out.is_empty() {
            ingest.write(out.freeze()).await?;
        }
        Ok(())
    }
}

/// What is said of the bytes: their type, if it is one, and their digest, lest other bytes be stored than were read.
fn members(media: &Media) -> Result<Members, AssetError> {
    let raw = |mime_type| RawMembers {
        mime_type,
        sha256: Some(media.weighed.sha256.to_string()),
        delivery: Some("url".to_owned()),
        ..RawMembers::default()
    };
    raw(media.declared.clone()).check().or_else(|_| raw(None).check())
}

/// The run's manifest, signed.
async fn manifest(app: &App, tenant: &TenantId, run: &RunId) -> Result<String, BundleError> {
    let of_run = app.index.run(tenant, run).await?;
    let counts = of_run.map_or(Counts { assets: 0, bytes: 0 }, |run| Counts { assets: run.assets, bytes: run.bytes });
    let url = |view: &AssetView| urls::bound_url(app, view.record.id);
    let mut manifest = Manifest::new(run, counts, &[], None, url, app.now());
    let mut query = AssetQuery { run: Some(run.clone()), limit: MAX_PAGE, ..AssetQuery::default() };
    loop {
        let (views, more) = library::page(app, tenant, query.clone()).await?;
        query.after = views.last().map(|view| view.record.id);
        manifest.assets.append(&mut Manifest::new(run, counts, &views, None, url, app.now()).assets);
        if !more {
            break;
        }
        if manifest.assets.len() >= MAX_LISTED {
            manifest.truncated = true;
            break;
        }
    }
    let signed = signed(&app.live().ring, &manifest).map_err(|error| AssetError::Internal(error.to_string()))?;
    Ok(signed.to_string())
}
