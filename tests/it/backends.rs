//! The same stories on the other index and the other store.
//!
//! The stories of this binary run on the embedded index and on files. One of them starts a PostgreSQL server, and the whole binary once
//! more on it, with the bytes in the buckets of an S3 server.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mediakeep::config::units::Span;
use mediakeep_storage::testing;
use reqwest::Method;

use crate::harness::Host;
use crate::harness::bytes::noise;
use crate::harness::index::{self, Home, Kind};
use crate::harness::lines;
use crate::harness::process::{Place, eventually, ran, url};
use crate::harness::store;

/// Stories that would say nothing of PostgreSQL, and why. They are told once, in the ordinary run.
const TOLD_ONCE: &[(&str, &str)] = &[
    ("arrows::", "reads source files"),
    ("backends::", "this, and stories that name their index themselves"),
    ("backup::", "names its index and its store itself"),
    ("bundles::memory::", "a bundle of which neither index nor store hears"),
    ("command_line::help_lists_what_there_is", "needs no index"),
    ("command_line::verify_finds_what_is_lost", "puts a file into the store's folder"),
    ("command_line::the_openapi_document_needs_no_configuration", "needs no index"),
    ("crash::an_index_that_was_cut_off_while_it_was_made_is_made_anew", "cuts off a file of sled's"),
    ("documents::", "reads source files"),
    ("erase::nothing_is_left_of_a_tenant", "looks into the store's folder"),
    ("full_disk::a_bundle_to_scrub_is_refused", "fills the disk under the store's files"),
    ("full_disk::a_disk_full_of_bytes", "fills the disk under the store's files"),
    ("full_disk::a_disk_full_under_the_index", "fills the disk under sled's file"),
    ("full_disk::an_index_whose_disk_fills", "fills the disk under sled's file"),
    ("holds::names_as_long", "the tests' S3 server keeps a name as a file's, of 255 bytes with what it adds"),
    ("ingest::limits::a_body_without_a_length_is_refused_when_the_room_goes", "a bucket has no end"),
    ("ingest::limits::what_would_not_leave_enough_free", "a bucket has no end"),
    (
        "ingest::members::a_run_is_named_by",
        "the tests' S3 server keeps a name as a file's, of 255 bytes with what it adds",
    ),
    ("middle::", "needs no index"),
    ("moving::", "names its stores itself"),
    (
        "overload::readers_beyond",
        "a thousand slow readers of the tests' own bucket fill the system's memory for connections",
    ),
    (
        "policy::settings_that_would_end_more_than_a_thousand",
        "the tests' S3 server walks its whole bucket for each list: a thousand ends are a thousand walks",
    ),
    ("power::", "traces what is written to sled's file"),
    ("quickstart::", "its index is always sled"),
    ("replicas::", "names its index and its store itself"),
    ("rotation::a_replica_that_reads", "names its index itself"),
    ("runs::a_name_that_is_no_run_id", "the tests' S3 server keeps a name as a file's, of 255 bytes with what it adds"),
    ("schemathesis::", "asks what the document says, which knows nothing of the index"),
    ("settings::a_command_that_looks_after_stores", "looks for the store's folder"),
    ("settings::a_setting_that_cannot_be_stops", "looks for the store's folder"),
    ("settings::an_index_or_a_store_that_is_missing", "takes the store's folder away"),
    ("settings::a_file_that_is_named_has_to_exist", "needs no index"),
    (
        "settings::a_second_process_on_one_index_is_told_so_within_a_second",
        "sled's file lock: PostgreSQL takes a second process",
    ),
    ("silent_database::", "names its index itself"),
    ("settings::a_variable_wins_over_the_file_and_both_over_the_default", "needs no index"),
    ("sniffer::", "needs no index"),
    ("sweep::nothing_is_left_of_runs", "counts folders, of which a bucket has none"),
    (
        "sweep::ten_thousand_assets_follow_one_put",
        "ten thousand transactions that want one blob's row take minutes; other stories of the sweep have hundreds",
    ),
];

/// Lives of the crash story on PostgreSQL: which moments it finds depends on the service's code more than on the index's.
const KILLS: &str = "4";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_story_on_postgresql_and_in_a_bucket() {
    let server = testing::server_url().await;
    let all = stories();
    let told_once: Vec<&String> =
        all.iter().filter(|story| TOLD_ONCE.iter().any(|(name, _)| story.starts_with(name))).collect();
    for (name, _) in TOLD_ONCE {
        assert!(told_once.iter().any(|story| story.starts_with(name)), "{name} is no story any more");
    }

    let mut run = this_binary();
    run.args(TOLD_ONCE.iter().flat_map(|(name, _)| ["--skip", name]));
    run.env(index::VARIABLE, "postgres").env(testing::SERVER_VARIABLE, server.as_str()).env("MEDIAKEEP_KILLS", KILLS);
    run.env(store::VARIABLE, "s3").envs(testing::credentials());
    // Its buckets are the tests' own folders: what a disk does with files is told by the ordinary run.
    if let Some(memory) = memory() {
        run.env("TMPDIR", memory);
    }
    let told = tokio::task::spawn_blocking(move || passed(run)).await.expect("it does not panic");

    assert_eq!(told, Some(all.len() - told_once.len()), "stories that passed on PostgreSQL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_database_are_one_service() {
    let place = Place::on(Kind::Postgres, "");
    let (one, other) = (place.serve().await, place.serve_another().await);
    let sent = one.upload(noise(1_000, 1)).await;
    let path = url(&sent).trim_start_matches(&one.url("")).to_owned();

    assert_eq!(other.opens(&other.url(&path)).await, 200, "the other serves what one took");
    for command in [&["sweep"][..], &["verify"]] {
        place.must_run(command);
    }
    let loose = other.request(Method::POST, "/v1/assets").body("hello").send().await.expect("an answer");
    let loose: serde_json::Value = loose.json().await.expect("JSON");
    let path = url(&loose).trim_start_matches(&other.url("")).to_owned();
    assert_eq!(one.opens(&one.url(&path)).await, 200);
    let asset = format!("/v1/assets/{}", loose["asset"]["assetId"].as_str().expect("an id"));
    let deleted = other.request(Method::DELETE, &asset).send().await.expect("an answer");
    assert_eq!(deleted.status(), 204);
    eventually(async || one.opens(&one.url(&path)).await == 410).await;

    assert!(one.stop().await.success() && other.stop().await.success());
    assert!(!place.log().contains(index::PASSWORD), "{}", place.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_sweep_one_database_lose_nothing_and_leave_nothing() {
    let place = Place::on(
        Kind::Postgres,
        "[retention]\ngrace = \"0s\"\nunreferenced = \"1s\"\norphan_grace = \"0s\"\ntombstone_bytes = \"0s\"\n\
         tombstone_record = \"0s\"\nsweep_interval = \"1s\"",
    );
    let servers = [place.serve().await, place.serve_another().await];
    let began = Instant::now();
    // Three kinds of bytes from both processes, sent again while either of them ends, removes and drops.
    let sending = (0..6usize).map(async |sender| {
        let (server, mut kept) = (&servers[sender % 2], Vec::new());
        for round in 0.. {
            // One page of the list has them all.
            if began.elapsed() > Duration::from_secs(4) || kept.len() > 60 {
                break;
            }
            let seed = ((sender + round) % 3) as u64;
            if round % 3 == 0 {
                kept.push((server.upload(noise(2_000, seed)).await, seed));
            } else {
                let loose = server.request(Method::POST, "/v1/assets").body(noise(2_000, seed));
                assert_eq!(loose.send().await.expect("an answer").status(), 201);
            }
        }
        kept
    });
    let kept: Vec<_> = join_all(sending).await.into_iter().flatten().collect();
    assert!(kept.len() > 6, "{} uploads that are kept: too few to tell anything", kept.len());
    let asset = |sent: &serde_json::Value| sent["asset"]["assetId"].as_str().expect("an id").to_owned();
    eventually(async || {
        let page = servers[0].request(Method::GET, "/v1/assets?limit=500").send().await.expect("an answer");
        let page: serde_json::Value = page.json().await.expect("JSON");
        page["assets"].as_array().expect("a list").len() == kept.len()
    })
    .await;

    for (sent, seed) in &kept {
        for server in &servers {
            let path = format!("/v1/assets/{}/content", asset(sent));
            let answer = server.request(Method::GET, &path).send().await.expect("an answer");
            assert_eq!(answer.status(), 200, "it was acknowledged and is kept");
            assert_eq!(answer.bytes().await.expect("a body"), noise(2_000, *seed));
        }
    }
    for server in servers {
        assert!(server.stop().await.success());
    }
    place.must_run(&["sweep"]);
    let verified = place.must_run(&["verify", "--deep"]);
    assert!(verified.stdout.contains(", 0 without a row"), "{}", verified.stdout);
    assert_eq!(place.blobs().len(), 3, "one blob for each kind of bytes");
}

#[tokio::test]
async fn a_password_in_the_address_of_a_database_is_never_shown() {
    let place = Place::on(Kind::Postgres, "");
    place.must_run(&["keys", "rotate"]);
    let said = place.must_run(&["settings"]).stdout;
    assert!(said.contains("postgres://") && !said.contains(index::PASSWORD), "{said}");

    let (user, nobody) = ("postgres://me:pa55word@", "127.0.0.1:1/media");
    for (name, address, code) in [
        ("MEDIAKEEP__INDEX__URL", format!("{user}{nobody}"), 3),
        ("MEDIAKEEP__INDEX__URL", format!("postgres://{nobody}?user=me&password=pa55word"), 3),
        ("MEDIAKEEP__INDEX__URL", format!("{user}host:port/media"), 2),
        ("MEDIAKEEP__INDEX__URL", "postgres://me:pa55word/1@host/media".to_owned(), 2),
        ("MEDIAKEEP__INDEX__URL", "mysql://me:pa55word@host/media".to_owned(), 2),
        ("MEDIAKEEP__INDEX", format!("{user}{nobody}"), 2),
        ("MEDIAKEEP__INDEX__ULR", format!("{user}{nobody}"), 2),
    ] {
        for arguments in [&["serve"][..], &["verify"]] {
            let mut command = place.command(arguments);
            command.env(name, &address);
            let ran = ran(command);
            assert_eq!(ran.code, code, "{address}: {ran:?}");
            assert!(!ran.stderr.is_empty() && !format!("{ran:?}").contains("pa55word"), "{address}: {ran:?}");
        }
    }
    for line in ["url = \"postgres://me:pa55word@host/media", "url = postgres://me:pa55word@host/media"] {
        place.write("broken.toml", format!("[index]\n{line}\n"));
        let ran = place.run(&["--config", "broken.toml", "settings"]);
        assert!(ran.code == 2 && ran.stderr.contains("broken.toml"), "{ran:?}");
        assert!(!ran.stderr.contains("pa55word"), "{line}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_hears_nothing_of_its_database_serves_no_longer_than_a_revocation_may_take() {
    for (lag, known) in [(Span::hours(1), 200), (Span::seconds(0), 503)] {
        let folder = tempfile::tempdir().expect("a folder");
        let home = Home::new(Kind::Postgres, folder.path()).await;
        let (address, line) = lines::through_a_line(home.url()).await;
        let host = Host::with(|settings| {
            settings.index.url = address.into();
            settings.capabilities.revocation_lag = lag;
        })
        .await;
        let owner = host.owner("acme");
        let asset = owner.upload(noise(1_000, 1)).await;
        let (bound, delivery) = (format!("/v1/assets/{}/content", asset.id), owner.share(&asset, 900).await);
        let all = async || {
            let nobody = host.stranger();
            let told = tokio::join!(nobody.get(&asset.url), owner.get(&bound), nobody.get(&delivery));
            [told.0, told.1, told.2].map(|told| told.status().as_u16())
        };
        assert_eq!(all().await, [200, 200, 200]);

        line.abort();
        assert!(line.await.is_err_and(|ended| ended.is_cancelled()));

        assert_eq!(all().await, [known, known, 503], "{lag:?}");
    }
}

/// A folder in memory with room for buckets, where the system has one: there nothing waits for a disk.
fn memory() -> Option<&'static str> {
    const FOLDER: &str = "/dev/shm";
    let stat = rustix::fs::statvfs(FOLDER).ok()?;
    (stat.f_bavail.saturating_mul(stat.f_frsize) >= 4 << 30).then_some(FOLDER)
}

/// Every story of this binary.
fn stories() -> Vec<String> {
    let output = this_binary().args(["--list", "--format", "terse"]).output().expect("a list");
    let list = String::from_utf8(output.stdout).expect("text");
    list.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect()
}

fn this_binary() -> Command {
    Command::new(std::env::current_exe().expect("a path"))
}

/// Runs stories to their end, showing what they say; how many there were, if all of them passed.
fn passed(mut run: Command) -> Option<usize> {
    let mut child = run.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut passed = None;
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        // Past the capture of this test's own output: whoever waits sees how far it is.
        let _ = writeln!(std::io::stdout(), "on postgresql: {line}");
        if let Some(result) = line.strip_prefix("test result: ok. ") {
            passed = result.split(' ').next().and_then(|count| count.parse().ok());
        }
    }
    child.wait().expect("its end").success().then_some(passed).flatten()
}
