//! An index of a million assets: its start, what a sweep costs, a run of ten thousand assets, a manifest's pages, and what readers feel
//! of a sweep.
//!
//! The rows are written as `index rebuild` writes them. A clock to turn makes them due.

#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use mediakeep::app::App;
use mediakeep::clock::Clock;
use mediakeep::config::Settings;
use mediakeep::config::units::Span;
use mediakeep::retention::sweep;
use mediakeep::server;
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::index::Restored;
use mediakeep_storage::record::{RunRecord, RunStatus};
use mediakeep_storage::retention::{RunEnd, RunUpdate};
use mediakeep_storage::{AssetIndex, AuditEvent, BlobKey, RunId, TenantId, Timestamp};
use support::host::{connect, settings};
use support::rows::{BYTES, record};
use support::{median, number, wanted};
use tokio::runtime::Runtime;

#[expect(dead_code, reason = "each benchmark uses its part")]
mod support;

/// When everything begins, in seconds since 1970.
const BEGINNING: i64 = 1_800_000_000;

/// A run's assets, but for the one with ten thousand.
const CROWD: usize = 1_000;

const LARGE_RUN: usize = 10_000;

/// So many runs end, one a day from tomorrow on.
const ENDING: usize = 10;

const DAY: Duration = Duration::from_secs(86_400);

/// Rows that are written in one transition.
const BATCH: usize = 500;

fn main() {
    let runtime = Runtime::new().expect("a runtime");
    if wanted("index") {
        let sizes = [10_000 + LARGE_RUN, number("MEDIAKEEP_BENCH_ASSETS", 1_000_000)];
        let small = runtime.block_on(measure(sizes[0]));
        let large = runtime.block_on(measure(sizes[1]));
        println!("\n| | {} assets | {} assets | ratio |", sizes[0], sizes[1]);
        println!("| --- | --- | --- | --- |");
        for ((name, small), (_, large)) in small.iter().zip(&large) {
            println!("| {name} | {small:.1} | {large:.1} | **{:.2}** |", large / small);
        }
    }
    if wanted("readers") {
        runtime.block_on(readers(number("MEDIAKEEP_BENCH_DUE", 100_000)));
    }
}

type Figures = Vec<(&'static str, f64)>;

/// Milliseconds of everything that is asked of an index of that size.
async fn measure(assets: usize) -> Figures {
    let folder = support::folder();
    let settings = |_: &Path| settings_of(folder.path());
    let clock = Clock::manual(beginning());
    let began = Instant::now();
    first_asset(settings(folder.path()), &clock).await;
    let app = App::open(settings(folder.path()), clock.clone(), "http://bench").await.expect("stores");
    fill(&app, assets).await;
    app.close().await;
    drop(app);
    println!(
        "{assets} assets written in {:.0} s; the index has {} MiB",
        began.elapsed().as_secs_f64(),
        size_of(&folder.path().join("index")) >> 20
    );

    let began = Instant::now();
    let running = server::start(settings(folder.path()), clock.clone(), None).await.expect("it starts");
    let mut figures = vec![("start of the service, ms", millis(began))];
    let pages = pages(running.address).await;
    figures.push(("a manifest's first pages of 500, ms", pages.0));
    figures.push(("its last pages, ms", pages.1));
    running.stop().await;

    let app = App::open(settings(folder.path()), clock.clone(), "http://bench").await.expect("stores");
    figures.push(("a run of 10,000 assets kept for longer, ms", extend(&app, "large").await));
    figures.push(("a run of 1,000 assets kept for longer, ms", extend(&app, "stays-0").await));
    let (mut sweeps, mut settled) = (Vec::new(), Vec::new());
    for day in 0..ENDING {
        clock.advance(DAY);
        let began = Instant::now();
        if day % 2 == 0 {
            let report = sweep::sweep(&app).await.expect("a sweep");
            assert_eq!(report.expired, CROWD as u64, "one run's assets");
            sweeps.push(millis(began));
        } else {
            settle(&app).await;
            settled.push(millis(began));
        }
    }
    figures.push(("a sweep of 1,000 due, ms", median(sweeps)));
    figures.push(("the index's part of it, ms", median(settled)));
    app.close().await;
    figures
}

/// Makes the store, which an index has to have beside it.
async fn first_asset(settings: Settings, clock: &Clock) {
    let running = server::start(settings, clock.clone(), None).await.expect("it starts");
    let address = running.address;
    tokio::task::spawn_blocking(move || {
        connect(address).post("/v1/runs/first/assets", "text/plain", b"first").capability()
    })
    .await
    .expect("an upload");
    running.stop().await;
}

/// Runs of 1,000 assets, of which some end; and one of 10,000.
async fn fill(app: &App, assets: usize) {
    let tenant = tenant();
    put_run(app, "large", 400).await;
    put_assets(app, &tenant, "large", LARGE_RUN).await;
    for n in 0..(assets - LARGE_RUN) / CROWD {
        match n {
            0..ENDING => {
                put_run(app, &format!("ends-{n}"), n + 1).await;
                put_assets(app, &tenant, &format!("ends-{n}"), CROWD).await;
            }
            _ => {
                let run = format!("stays-{}", n - ENDING);
                put_run(app, &run, 300 + n % 50).await;
                put_assets(app, &tenant, &run, CROWD).await;
            }
        }
    }
    // In the small one every run ends: one more stays, to be kept for longer.
    put_run(app, "stays-0", 300).await;
}

/// A run whose log ends so many days after the beginning.
async fn put_run(app: &App, run: &str, days: usize) {
    let run = RunRecord {
        id: RunId::parse(run).expect("a run"),
        registered: true,
        status: RunStatus::Closed,
        end: RunEnd::At(beginning() + DAY * u32::try_from(days).expect("some days")),
        retention_after_close: None,
        fork_of: None,
        workflow_id: None,
        created_at: beginning(),
        erased_at: None,
        revision: 1,
    };
    restore(&*app.index, app, vec![Restored::Run(run)]).await;
}

/// Assets of a run, live ones; says where their bytes would be.
async fn put_assets(app: &App, tenant: &TenantId, run: &str, count: usize) -> Vec<BlobKey> {
    let blobs: Vec<BlobKey> = (0..count).map(|_| BlobKey::generate()).collect();
    for some in blobs.chunks(BATCH) {
        let rows = some.iter().map(|blob| Restored::Asset {
            record: Box::new(record(tenant, run, *blob, next_birth())),
            has_bytes: true,
        });
        restore(&*app.index, app, rows.collect()).await;
    }
    blobs
}

/// When the next asset was made: one after the other, so that their names lie in the index as those of a run do that made them.
fn next_birth() -> Timestamp {
    static BORN: AtomicU32 = AtomicU32::new(0);
    beginning() - 100 * DAY + Duration::from_secs(BORN.fetch_add(1, Ordering::Relaxed).into())
}

async fn restore(index: &dyn AssetIndex, app: &App, what: Vec<Restored>) {
    let tenant = tenant();
    index.restore(&tenant, what, &app.terms(&tenant), beginning()).await.expect("rows are written");
}

/// What a sweep asks of the index: the looks that are due, each to its end.
async fn settle(app: &App) {
    let (now, mut expired) = (app.now(), 0);
    loop {
        let due = app.index.due(now, 256).await.expect("looks");
        if due.is_empty() {
            break;
        }
        for look in due {
            loop {
                let terms = app.terms(&look.tenant);
                let settled = app.index.settle(&look, 256, &terms, "bench", now).await.expect("a settlement");
                expired += settled.expired.len();
                if settled.done {
                    break;
                }
            }
        }
    }
    assert_eq!(expired, CROWD, "one run's assets");
}

/// Moves the end of a run's log; milliseconds of one time.
async fn extend(app: &App, run: &str) -> f64 {
    let mut times = Vec::new();
    for day in 0..9 {
        let update = RunUpdate {
            id: RunId::parse(run).expect("a run"),
            log_retain_until: Some(Some(beginning() + DAY * (500 + day))),
            log_retention_seconds: None,
            status: None,
            fork_of: None,
            workflow_id: None,
        };
        let (tenant, audit) = (tenant(), AuditEvent::new(AuditKind::Floor, "bench", app.now()));
        let began = Instant::now();
        let updated = app.index.update_run(&tenant, &update, &app.terms(&tenant), audit, app.now()).await;
        times.push(millis(began));
        updated.expect("an index").expect("a later end");
    }
    median(times)
}

/// Milliseconds of the first pages of the large run's manifest, and of its last.
async fn pages(address: SocketAddr) -> (f64, f64) {
    let mut pages = tokio::task::spawn_blocking(move || {
        let (mut connection, mut cursor, mut times) = (connect(address), String::new(), Vec::new());
        loop {
            let began = Instant::now();
            let path = format!("/v1/runs/large/debug-bundle/manifest?limit=500{cursor}");
            let answer = connection.ask("GET", &path, "");
            times.push(millis(began));
            assert_eq!(answer.status, 200);
            match answer.json()["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return times,
            }
        }
    })
    .await
    .expect("pages");
    assert_eq!(pages.len(), LARGE_RUN / 500, "full pages");
    // The first one of all reads the index from the disk.
    let last = pages.split_off(pages.len() - 7);
    (median(pages[1..8].to_vec()), median(last))
}

/// How long the slowest readers of a hundred wait, alone and while so many expired small assets are swept.
async fn readers(due: usize) {
    let folder = support::folder();
    let clock = Clock::manual(beginning());
    let mut settings = settings_of(folder.path());
    settings.retention.tombstone_bytes = Span::seconds(0);
    first_asset(settings.clone(), &clock).await;
    let app = App::open(settings.clone(), clock.clone(), "http://bench").await.expect("stores");
    put_run(&app, "stays", 400).await;
    put_assets(&app, &tenant(), "stays", CROWD).await;
    put_run(&app, "ends", 1).await;
    let blobs = put_assets(&app, &tenant(), "ends", due).await;
    app.close().await;
    drop(app);
    put_bytes(folder.path(), &blobs);

    let running = server::start(settings, clock.clone(), None).await.expect("it starts");
    let (address, app) = (running.address, running.app.clone());
    let paths: Vec<String> = tokio::task::spawn_blocking(move || {
        let mut connection = connect(address);
        let upload =
            |n: u32| connection.post("/v1/runs/read/assets", "text/plain", &n.to_le_bytes().repeat(256)).capability();
        (0..50).map(upload).collect()
    })
    .await
    .expect("uploads");
    // The service's own first sweep comes after a minute, and is to find nothing: one is enough at a time.
    tokio::time::sleep(Duration::from_secs(65)).await;
    let alone = read(address, &paths, tokio::time::sleep(Duration::from_secs(5))).await;
    clock.advance(DAY);
    let began = Instant::now();
    let mut report = sweep::Report::default();
    let beside = read(address, &paths, async {
        report = sweep::sweep(&app).await.expect("a sweep");
    })
    .await;
    println!(
        "\n{} assets ended and {} blobs removed in {:.0} s",
        report.expired,
        report.removed_blobs,
        began.elapsed().as_secs_f64()
    );
    println!("| GET of 1 KiB, 4 connections | alone | beside the sweep | ratio |");
    println!("| --- | --- | --- | --- |");
    for (name, part) in [("p50, ms", 0.5), ("p99, ms", 0.99), ("slowest, ms", 1.0)] {
        let (alone, beside) = (at(&alone, part), at(&beside, part));
        println!("| {name} | {alone:.2} | {beside:.2} | **{:.2}** |", beside / alone);
    }
    println!("| requests | {} | {} | |", alone.len(), beside.len());
    drop(app);
    running.stop().await;
}

/// Has four connections ask again and again until something is done; milliseconds of each, shortest first.
async fn read(address: SocketAddr, paths: &[String], until: impl Future<Output = ()>) -> Vec<f64> {
    let done = std::sync::Arc::new(AtomicBool::new(false));
    let readers = (0..4).map(|reader| {
        let (paths, done) = (paths.to_vec(), done.clone());
        tokio::task::spawn_blocking(move || {
            let (mut connection, mut times) = (connect(address), Vec::new());
            for path in paths.iter().cycle().skip(reader * 13) {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let began = Instant::now();
                assert_eq!(connection.get(path).status, 200, "whatever is swept, this is kept");
                times.push(millis(began));
            }
            times
        })
    });
    let readers: Vec<_> = readers.collect();
    until.await;
    done.store(true, Ordering::Relaxed);
    let mut times: Vec<f64> = try_join_all(readers).await.expect("readers end").into_iter().flatten().collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Bytes where the store has them, without waiting for the disk.
fn put_bytes(folder: &Path, blobs: &[BlobKey]) {
    let all = folder.join("blobs/t").join(tenant().prefix()).join("b");
    let bytes = vec![b'x'; usize::try_from(BYTES).expect("small")];
    for blob in blobs {
        let key = blob.to_string();
        let part = all.join(&key[..2]);
        fs::create_dir_all(&part).and_then(|()| fs::write(part.join(&key), &bytes)).expect("a file");
    }
}

fn settings_of(folder: &Path) -> Settings {
    let mut settings = settings(folder, SocketAddr::from(([127, 0, 0, 1], 0)));
    settings.retention.sweep_interval = Span::hours(24 * 365);
    settings.retention.grace = Span::seconds(0);
    settings
}

fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries
        .map(|path| if path.is_dir() { size_of(&path) } else { fs::metadata(path).map_or(0, |file| file.len()) })
        .sum()
}

/// The value that this part of all does not exceed; they are sorted.
fn at(sorted: &[f64], part: f64) -> f64 {
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

fn tenant() -> TenantId {
    TenantId::parse("bench").expect("a tenant")
}

fn beginning() -> Timestamp {
    Timestamp::from_second(BEGINNING).expect("a time in range")
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}
