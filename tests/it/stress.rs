//! Few kinds of bytes, sent, ended and erased by many, while the sweep takes whatever it may: nothing that was acknowledged goes, and
//! nothing else stays.
//!
//! Terms are as short as they can be, so that the moment between "nobody needs it" and "it is gone" is the one in which somebody sends it
//! again. The host's clock goes with the machine's: uploads show signs of life by it.

use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mediakeep::config::units::Span;
use mediakeep::retention::verify::{self, Depth};
use mediakeep_storage::index::AssetQuery;
use mediakeep_storage::{AssetRecord, Digest, RunId, TenantId};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::harness::bytes::noise;
use crate::harness::{Asset, Caller, Host, asset, files, process};

/// How long the stress lasts: a few seconds, or as many as this variable says.
const VARIABLE: &str = "MEDIAKEEP_STRESS_SECONDS";

/// Kinds of bytes between all uploaders, the last of them large enough to be several chunks.
const KINDS: [usize; 4] = [2_000, 2_001, 2_002, 150_000];

/// A run whose log ends this soon.
const SOON: Duration = Duration::from_millis(300);

const UPLOADERS: usize = 8;

fn seconds() -> Duration {
    let asked = std::env::var(VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(asked.unwrap_or(4))
}

/// An asset that was acknowledged and that an open run keeps.
type Kept = (usize, Asset);

/// What was done in all.
#[derive(Debug, Default)]
struct Tally {
    kept: Mutex<Vec<Kept>>,
    deeds: Mutex<[usize; 6]>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_sweep_takes_what_was_acknowledged_and_none_leaves_anything_behind() {
    let host = Host::with(|settings| {
        let none = Span::seconds(0);
        settings.retention.unreferenced = none;
        settings.retention.orphan_grace = none;
        settings.retention.tombstone_bytes = none;
        settings.retention.tombstone_record = none;
    })
    .await;
    let (began, length) = (Instant::now(), seconds());
    let going = || began.elapsed() < length;
    let tally = Tally::default();
    let owner = host.owner("acme");

    let sending = join_all((0..UPLOADERS).map(|n| send(&owner, n, &tally, going)));
    let sweeping = join_all((0..2).map(|_| sweep(&host, going)));
    let (_, sweeps, ()) = tokio::join!(sending, sweeping, tick(&host, going));

    let kept = tally.kept.into_inner().expect("no panic");
    let deeds = tally.deeds.into_inner().expect("no panic");
    let sweeps: u64 = sweeps.iter().sum();
    let _ = writeln!(std::io::stdout(), "{length:?}: {deeds:?} deeds, {} kept, {sweeps} sweeps", kept.len());
    assert!(deeds.iter().all(|done| *done > 0), "{deeds:?}: too few to tell anything");
    for (kind, asset) in &kept {
        assert_opens(&owner, *kind, asset).await;
    }
    reconcile(&host).await;
    assert_eq!(host.stored_blobs().await, KINDS.len(), "one blob for each kind of bytes");
    let rows = host.app().index.assets(None, usize::MAX).await.expect("an index");
    let living = rows.iter().filter(|row| row.is_live()).count();
    let records = std::fs::read_dir(host.folder().join("blobs/t")).expect("a folder");
    let records: usize = records.map(|tenant| files(&tenant.expect("an entry").path().join("r/a"))).sum();
    assert_eq!((living, records), (kept.len(), rows.len()), "each row has its recovery record, and no other is there");
    assert_nothing_is_told_of_what_was_erased(&host, &rows);
}

/// Beside an erased asset's bytes nothing stays that says what they were.
fn assert_nothing_is_told_of_what_was_erased(host: &Host, rows: &[AssetRecord]) {
    let (tenant, erased) = (TenantId::parse("acme").expect("a tenant"), rows.iter().filter(|row| !row.is_live()));
    for row in erased {
        let records = host.folder().join("blobs/t").join(tenant.prefix()).join("r/a").join(row.id.to_string());
        for record in process::files(&records) {
            let text = std::fs::read_to_string(&record).expect("a record");
            assert!(text.contains("erased") && text.contains(&Digest::ERASED.to_string()), "{text}");
        }
    }
}

/// Whatever is past its time goes, and nothing is lost or left over.
async fn reconcile(host: &Host) {
    host.advance(SOON);
    for _ in 0..2 {
        host.sweep().await;
        // Times are whole milliseconds.
        host.advance(Duration::from_millis(1));
    }
    let found = verify::verify(host.app(), Depth::Digests).await.expect("a comparison");
    assert!(found.is_clean() && found.pending.is_empty(), "{found:?}");
    assert_eq!(host.staged_files(), 0);
}

async fn tick(host: &Host, going: impl Fn() -> bool) {
    let mut last = Instant::now();
    while going() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let passed = Duration::from_millis(last.elapsed().as_millis() as u64);
        last += passed;
        host.advance(passed);
    }
}

async fn sweep(host: &Host, going: impl Fn() -> bool) -> u64 {
    let mut sweeps = 0;
    while going() {
        host.sweep().await;
        sweeps += 1;
        tokio::task::yield_now().await;
    }
    sweeps
}

async fn send(owner: &Caller<'_>, n: usize, tally: &Tally, going: impl Fn() -> bool) {
    for round in 0.. {
        if !going() {
            return;
        }
        let kind = (n + round) % KINDS.len();
        let deed = (n * 5 + round / KINDS.len()) % 6;
        if let Some(kept) = act(owner, deed, kind, &format!("{n}-{round}")).await {
            tally.kept.lock().expect("no panic").push((kind, kept));
        }
        tally.deeds.lock().expect("no panic")[deed] += 1;
        // What others do meanwhile takes away nothing that was acknowledged.
        let some = {
            let kept = tally.kept.lock().expect("no panic");
            kept.get(round * 7919 % kept.len().max(1)).cloned()
        };
        if let Some((kind, asset)) = some {
            assert_opens(owner, kind, &asset).await;
        }
    }
}

/// Uploads bytes of a kind, and has all but one in six end again; that one is kept by a run without end.
async fn act(owner: &Caller<'_>, deed: usize, kind: usize, name: &str) -> Option<Asset> {
    let bytes = noise(KINDS[kind], kind as u64);
    let run = format!("run-{name}");
    match deed {
        0 => return Some(owner.upload_to("stays", bytes).await),
        1 => {
            owner.upload_to(&run, bytes).await;
            end_soon(owner, &run).await;
        }
        2 => {
            let asset = owner.upload_to(&run, bytes).await;
            let erased = owner.delete(&format!("/v1/assets/{}?erase=true", asset.id)).await.status();
            assert_eq!(erased, 200, "its run's log is kept, so it was there");
        }
        3 => {
            // One that the run alone keeps, and one that is on its way into it.
            owner.upload_to(&run, bytes.clone()).await;
            let (path, erase) = (format!("/v1/runs/{run}/assets"), format!("/v1/runs/{run}/erase"));
            let nothing = json!({});
            let (late, erased) = tokio::join!(upload_anyhow(owner, &path, bytes), owner.post(&erase, &nothing));
            assert!(matches!(late.status().as_u16(), 201 | 409 | 410), "{}", late.status());
            assert_eq!(erased.status(), 200);
        }
        4 => {
            let answer = upload_anyhow(owner, "/v1/assets", bytes).await;
            if answer.status() == 201 {
                let asset = asset(answer).await;
                let deleted = owner.delete(&format!("/v1/assets/{}", asset.id)).await.status();
                assert!(matches!(deleted.as_u16(), 204 | 404), "{deleted}: gone already, or now");
            }
        }
        // Nothing needs it: the next sweep is its end, and may come before the answer.
        _ => {
            let sent = upload_anyhow(owner, "/v1/assets", bytes).await.status();
            assert!(matches!(sent.as_u16(), 201 | 410), "{sent}");
        }
    }
    None
}

/// Has the run's log end soon; says it again where that was past before it was heard.
async fn end_soon(owner: &Caller<'_>, run: &str) {
    loop {
        let soon = json!({"logRetainUntil": (owner.host.now() + SOON).to_string()});
        match owner.put(&format!("/v1/runs/{run}"), &soon).await.status().as_u16() {
            200 => return,
            status => assert_eq!(status, 400),
        }
    }
}

async fn upload_anyhow(owner: &Caller<'_>, path: &str, bytes: Vec<u8>) -> Response {
    owner.request(Method::POST, path).body(bytes).send().await.expect("an answer")
}

async fn assert_opens(owner: &Caller<'_>, kind: usize, asset: &Asset) {
    let answer = owner.host.stranger().get(&asset.url).await;
    assert_eq!(answer.status(), 200, "{} was acknowledged and is kept", asset.id);
    assert_eq!(answer.bytes().await.expect("a body"), noise(KINDS[kind], kind as u64), "{}", asset.id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_that_is_registered_while_its_parent_ends_keeps_all_that_lived_at_that_moment() {
    let host = Host::with(|settings| {
        settings.retention.tombstone_bytes = Span::seconds(0);
        settings.retention.orphan_grace = Span::seconds(0);
    })
    .await;
    let owner = host.owner("acme");
    let mut kept = Vec::new();
    for round in 0..12 {
        let (parent, child) = (format!("parent-{round}"), format!("child-{round}"));
        for n in 0..5 {
            owner.upload_to(&parent, noise(300, round * 10 + n)).await;
        }
        let soon = json!({"logRetainUntil": (host.now() + SOON).to_string()});
        assert_eq!(owner.put(&format!("/v1/runs/{parent}"), &soon).await.status(), 200);
        host.advance(SOON);

        let forking = async {
            // Before, amid and after: the sweep takes some milliseconds.
            tokio::time::sleep(Duration::from_micros(700 * (round % 6))).await;
            owner.put(&format!("/v1/runs/{child}"), &json!({"forkOf": parent})).await
        };
        let (forked, _, _) = tokio::join!(forking, host.sweep(), host.sweep());

        assert_eq!(forked.status(), 200);
        let forked: Value = forked.json().await.expect("JSON");
        assert_eq!(forked["assets"], 5, "dead ones too");
        kept.push((child, forked["bytes"].clone()));
    }

    reconcile(&host).await;
    for (child, bytes) in kept {
        let now: Value = owner.get(&format!("/v1/runs/{child}")).await.json().await.expect("JSON");
        assert_eq!(now["bytes"], bytes, "what the fork was told that it has");
        for asset in referenced(&host, &child).await {
            let opens = owner.get(&format!("/v1/assets/{}/content", asset.0)).await.status().as_u16();
            assert_eq!(opens, if asset.1 { 200 } else { 410 }, "{}", asset.0);
        }
    }
}

/// What the run references, and whether it lives.
async fn referenced(host: &Host, run: &str) -> Vec<(String, bool)> {
    let tenant = TenantId::parse("acme").expect("a tenant");
    let query = AssetQuery { run: RunId::parse(run).ok(), limit: 100, ..AssetQuery::default() };
    let page = host.app().index.page(&tenant, &query, &host.app().terms(&tenant)).await.expect("a page");
    page.iter().map(|view| (view.record.id.to_string(), view.record.is_live())).collect()
}
