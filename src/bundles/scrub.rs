//! Scrubbing a bundle: its media are stored for its run, and where they stood stands their bound URL.
//!
//! Equal bytes of the same run are one asset, whichever scrub stored them ([`once`]). What was stored before something failed stays,
//! referenced by the run; the same bundle sent again finds it.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;
use std::vec;

use bytes::{Bytes, BytesMut};
use mediakeep_storage::index::AssetQuery;
use mediakeep_storage::{AssetId, AssetView, Digest, RunId, TenantId};
use serde_json::json;

use super::body::Body;
use super::scan::{Edit, Finding, Found, MANIFEST, What};
use super::spool::Spool;
use super::text::Media;
use super::{BundleError, Reading};
use crate::access::Principal;
use crate::app::App;
use crate::assets::ingest::Ingest;
use crate::assets::library::{self, MAX_PAGE};
use crate::assets::members::{Members, RawMembers};
use crate::assets::{AssetError, once, urls};
use crate::audit::signed::signed;
use crate::json::string::{Piece, StringReader};
use crate::projection::manifest::{Counts, Manifest};

/// So many assets of a run stand in the manifest of a bundle; what is more is behind its `nextCursor`.
const MAX_LISTED: usize = 10_000;

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
    let rewritten =
        found.edits.iter().filter(|edit| matches!(edit.what, What::Media(_) | What::Quoted(_) | What::Link(_))).count();
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
    /// Assets of the run by the digests of their bytes.
    known: HashMap<Digest, AssetId>,
    stored: u64,
}

impl Work<'_> {
    /// What each of the media became; those that no edit names are left out of the store, and stand for themselves.
    async fn store(&mut self, found: &Found) -> Result<Vec<AssetId>, BundleError> {
        let used: BTreeSet<usize> = found
            .edits
            .iter()
            .filter_map(|edit| if let What::Media(at) | What::Quoted(at) = edit.what { Some(at) } else { None })
            .collect();
        let wanted = used.iter().map(|at| found.media[*at].weighed.sha256);
        self.known = once::known(self.app, &self.caller.tenant, self.run, wanted).await?;
        let nothing = AssetId::generate(self.app.now());
        let mut assets = vec![nothing; found.media.len()];
        for at in used {
            let media = &found.media[at];
            let sha256 = media.weighed.sha256;
            let asset = match self.known.get(&sha256) {
                Some(asset) => *asset,
                None => self.keep(media).await?,
            };
            self.known.insert(sha256, asset);
            assets[at] = asset;
        }
        Ok(assets)
    }

    /// Stores one of the media, or finds what another scrub has just made of the same bytes.
    async fn keep(&mut self, media: &Media) -> Result<AssetId, BundleError> {
        let (app, caller, run, members) = (self.app, self.caller, self.run, members(media)?);
        let feed = async |ingest: &mut Ingest| self.feed(media, ingest).await;
        let (asset, made) = once::keep(app, caller, run, media.weighed, &members, feed).await?;
        self.stored += u64::from(made);
        Ok(asset)
    }

    async fn feed(&mut self, media: &Media, ingest: &mut Ingest) -> Result<(), BundleError> {
        let (mut body, mut string) = (Body::new(media.form), StringReader::default());
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

/// The answer, read piece by piece: the bundle as it was but for what is written anew, and what was done.
#[derive(Debug)]
pub struct Scrubbed {
    spool: Spool,
    at: u64,
    end: u64,
    edits: Peekable<vec::IntoIter<Edit>>,
    /// What the media became.
    urls: Vec<String>,
    app: Arc<App>,
    insert: Option<(Range<u64>, String)>,
    head: Option<&'static str>,
    tail: Option<String>,
    /// What was read of the bundle last, and from where.
    window: (u64, Bytes),
}

/// A piece is at least so long, but for the last.
const PIECE: usize = 32 << 10;

impl Scrubbed {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut out = BytesMut::with_capacity(PIECE * 2);
        out.extend_from_slice(self.head.take().unwrap_or_default().as_bytes());
        while out.len() < PIECE {
            let insert = self.insert.as_ref().map_or(u64::MAX, |(range, _)| range.start);
            let edit = self.edits.peek().map_or(u64::MAX, |edit| edit.range.start);
            let stop = insert.min(edit).min(self.end);
            if self.at < stop {
                let piece = self.window(stop).await?;
                out.extend_from_slice(&piece);
            } else if edit <= insert && edit < self.end {
                self.write_edit(&mut out);
            } else if let Some((range, text)) = self.insert.take() {
                out.extend_from_slice(text.as_bytes());
                self.at = range.end;
            } else if let Some(tail) = self.tail.take() {
                out.extend_from_slice(tail.as_bytes());
            } else {
                break;
            }
        }
        Ok((!out.is_empty()).then(|| out.freeze()))
    }

    fn write_edit(&mut self, out: &mut BytesMut) {
        let Some(Edit { range, what }) = self.edits.next() else {
            return;
        };
        if range.start < self.at {
            return;
        }
        match what {
            What::Media(at) => out.extend_from_slice(self.urls[at].as_bytes()),
            What::Link(asset) => out.extend_from_slice(urls::bound_url(&self.app, asset).as_bytes()),
            What::Quoted(at) => out.extend_from_slice(format!("\"{}\"", self.urls[at]).as_bytes()),
            What::Null => out.extend_from_slice(b"null"),
            What::Name => out.extend_from_slice(b"url"),
        }
        self.at = range.end;
    }

    /// What the bundle says from here on, at most to `stop`.
    async fn window(&mut self, stop: u64) -> io::Result<Bytes> {
        let (from, read) = &self.window;
        if !(*from..from + read.len() as u64).contains(&self.at) {
            self.window = (self.at, self.spool.read(&(self.at..self.end)).await?);
        }
        let (from, read) = &self.window;
        let begin = usize::try_from(self.at - from).unwrap_or(0);
        let length = usize::try_from(stop - self.at).unwrap_or(usize::MAX);
        let piece = read.slice(begin..begin.saturating_add(length).min(read.len()));
        self.at += piece.len() as u64;
        Ok(piece)
    }
}
