//! Terms that have become shorter, and what they end at once.
//!
//! What wakes a sweep is a queue of looks, each placed under the terms of its day. Under longer terms a look comes too soon and moves; under
//! shorter ones it comes late. So the store has a note of the longest terms that looks were placed under, and while the present ones
//! are shorter every live asset is looked at: by whoever counts what would end, before the service starts, and by the first sweep, which
//! ends what is past its floor. That costs what there is, once.

use std::collections::HashMap;

use futures_util::future::join_all;
use jiff::SignedDuration;
use mediakeep_storage::retention::{Stake, Terms, Until, after};
use mediakeep_storage::{AssetRecord, RunId, StorageError, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::assets::library::put_end_record;

/// So many assets are read at a time.
const PAGE: usize = 1_000;

/// So many are looked at at a time: each waits for the index, and side by side they share the wait.
const SIDE_BY_SIDE: usize = 32;

/// Of so many runs it is remembered whether they still keep anything.
const RUNS: usize = 10_000;

/// Where the note lies in the store.
const NOTE: &str = "terms.json";

/// The terms by which a look of a live asset goes, other than a run's own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Noted {
    unreferenced: SignedDuration,
    grace: SignedDuration,
}

impl Noted {
    fn of(app: &App) -> Self {
        let terms = app.common_terms();
        Self { unreferenced: terms.unreferenced, grace: terms.grace }
    }

    fn longest(self, other: Self) -> Self {
        Self { unreferenced: self.unreferenced.max(other.unreferenced), grace: self.grace.max(other.grace) }
    }

    /// Whether none of these is longer than the other ones.
    fn is_within(self, other: Self) -> bool {
        self.longest(other) == other
    }
}

/// What the store says; `None` if it says nothing that reads.
async fn noted(app: &App) -> Result<Option<Noted>, StorageError> {
    let note = app.blobs.note(NOTE).await?;
    Ok(note.and_then(|json| serde_json::from_slice(&json).ok()))
}

async fn note(app: &App, terms: Noted) -> Result<(), StorageError> {
    let json = serde_json::to_vec(&terms).expect("two lengths of time can be written");
    app.blobs.put_note(NOTE, json).await
}

/// Notes terms that are longer than any before: looks are placed under them from now on.
pub async fn note_longer(app: &App) -> Result<(), StorageError> {
    let now = Noted::of(app);
    match noted(app).await? {
        Some(before) if before.longest(now) != before => note(app, before.longest(now)).await,
        _ => Ok(()),
    }
}

/// How many assets a sweep would end only because terms have become shorter: under the noted ones they would go on. Where the store has
/// no note nobody knows, and all count that a sweep would end.
///
/// The note has all the terms that end what is there already. A run's default end is an instant in its row from the closing or reference
/// that set it: a shorter `default_run_log`, common or a tenant's own, counts for later ones alone.
pub async fn count_unforeseen(app: &App) -> Result<usize, StorageError> {
    let Some(before) = noted(app).await? else {
        return count(app).await;
    };
    if before.is_within(Noted::of(app)) {
        return Ok(0);
    }
    let (mut walk, mut count) = (Walk::new(app), 0);
    while let Some(past) = walk.next().await? {
        count += walk.going_on_under(before, &past).await?;
    }
    Ok(count)
}

/// How many assets a sweep would end now; changes nothing.
pub async fn count(app: &App) -> Result<usize, StorageError> {
    if !are_shorter(app).await? {
        return app.index.count_due(usize::MAX, &app.common_terms(), app.now()).await;
    }
    let (mut walk, mut count) = (Walk::new(app), 0);
    while let Some(past) = walk.next().await? {
        count += past.len();
    }
    Ok(count)
}

async fn are_shorter(app: &App) -> Result<bool, StorageError> {
    let now = Noted::of(app);
    Ok(noted(app).await?.is_none_or(|before| !before.is_within(now)))
}

/// Ends what is past its floor and would be looked at late, if the terms have become shorter; says what ended.
pub async fn catch_up(app: &App) -> Result<Vec<AssetRecord>, StorageError> {
    let mut ended = Vec::new();
    if !are_shorter(app).await? {
        return Ok(ended);
    }
    let mut walk = Walk::new(app);
    while let Some(past) = walk.next().await? {
        for some in past.chunks(app.blobs.side_by_side()) {
            if app.is_stopping() {
                return Ok(ended);
            }
            for record in join_all(some.iter().map(|record| end(app, record))).await {
                ended.extend(record?);
            }
        }
    }
    note(app, Noted::of(app)).await?;
    Ok(ended)
}

async fn end(app: &App, record: &AssetRecord) -> Result<Option<AssetRecord>, StorageError> {
    let terms = app.terms(&record.tenant);
    let after = app.index.expire_if_due(&record.tenant, record.id, &terms, "sweep", app.now()).await?;
    let Some(after) = after.filter(|after| !after.is_live()) else {
        return Ok(None);
    };
    app.rows.changed(after.id);
    put_end_record(app, &after).await;
    Ok(Some(after))
}

/// A walk over every asset.
struct Walk<'a> {
    app: &'a App,
    now: Timestamp,
    behind: Option<(TenantId, mediakeep_storage::AssetId)>,
    /// Whether the run's end and the grace are past.
    runs: HashMap<(TenantId, RunId), bool>,
}

impl<'a> Walk<'a> {
    fn new(app: &'a App) -> Self {
        Self { app, now: app.now(), behind: None, runs: HashMap::new() }
    }

    /// Those of the next assets that live past their floor; `None`: all have been looked at.
    async fn next(&mut self) -> Result<Option<Vec<AssetRecord>>, StorageError> {
        let page = self.app.index.assets(self.behind.clone(), PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(None);
        };
        self.behind = Some((last.tenant.clone(), last.id));
        let mut likely = Vec::new();
        for record in page {
            if record.is_live() && self.may_be_past(&record).await? {
                likely.push(record);
            }
        }
        let mut past = Vec::new();
        for some in likely.chunks(SIDE_BY_SIDE) {
            for (record, is_past) in some.iter().zip(join_all(some.iter().map(|record| self.is_past(record))).await) {
                if is_past? {
                    past.push(record.clone());
                }
            }
        }
        Ok(Some(past))
    }

    /// A quick look: whether what its row tells of keeps it no longer.
    async fn may_be_past(&mut self, record: &AssetRecord) -> Result<bool, StorageError> {
        let terms = self.app.terms(&record.tenant);
        let asked = record.asked_until.map(|at| Until::At(at).plus(terms.grace));
        if asked.is_some_and(|until| !until.is_past(self.now)) {
            return Ok(false);
        }
        let Some(run) = &record.run else {
            return Ok(Until::At(after(record.created_at, terms.unreferenced)).plus(terms.grace).is_past(self.now));
        };
        let name = (record.tenant.clone(), run.clone());
        if let Some(over) = self.runs.get(&name) {
            return Ok(*over);
        }
        let row = self.app.index.find_run(&record.tenant, run).await?;
        let over = row.is_none_or(|row| Stake::of(&row, false).keeps(&terms).is_past(self.now));
        if self.runs.len() >= RUNS {
            self.runs.clear();
        }
        self.runs.insert(name, over);
        Ok(over)
    }

    async fn is_past(&self, record: &AssetRecord) -> Result<bool, StorageError> {
        self.is_past_under(record, &self.app.terms(&record.tenant)).await
    }

    async fn is_past_under(&self, record: &AssetRecord, terms: &Terms) -> Result<bool, StorageError> {
        let view = self.app.index.view(&record.tenant, record.id, terms).await?;
        Ok(view.is_some_and(|view| view.record.is_live() && view.floor.until.is_past(self.now)))
    }

    /// How many of these would not be past their floor under other terms.
    async fn going_on_under(&self, other: Noted, records: &[AssetRecord]) -> Result<usize, StorageError> {
        let mut count = 0;
        for some in records.chunks(SIDE_BY_SIDE) {
            let looks = some.iter().map(async |record| {
                let terms =
                    Terms { unreferenced: other.unreferenced, grace: other.grace, ..self.app.terms(&record.tenant) };
                self.is_past_under(record, &terms).await
            });
            for is_past in join_all(looks).await {
                count += usize::from(!is_past?);
            }
        }
        Ok(count)
    }
}
