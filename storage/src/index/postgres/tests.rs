//! What is this index's own: its database, its plans, its replicas. The rest is the contract's to test.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::{Connection, Executor, PgConnection};
use url::Url;

use super::*;
use crate::audit::{AuditEvent, AuditKind};
use crate::ids::{AssetId, RunId, TenantId};
use crate::index::contract::{self, Subject};
use crate::index::{AssetQuery, Assets, Ends, Look, LookAt, RunErasure, Upkeep, Urls};
use crate::record::AssetState;
use crate::testing;

mod again;
mod extended;
mod plans;
mod silence;

async fn administer(url: &str, sql: String) {
    let mut connection = PgConnection::connect(url).await.expect("the server for tests answers");
    connection.execute(sqlx::AssertSqlSafe(sql)).await.expect("the server for tests obeys");
    connection.close().await.expect("a goodbye");
}

async fn open(url: &str) -> PostgresIndex {
    let options = PostgresOptions { max_connections: 8, ..PostgresOptions::default() };
    PostgresIndex::open(url, options).await.expect("the database opens")
}

/// An index as if it had just been made, in a database that had one before: quicker than a new database.
async fn emptied(url: &str) -> PostgresIndex {
    let index = open(url).await;
    let tables = [
        "assets",
        "runs",
        "refs",
        "artifacts",
        "artifact_assets",
        "holds",
        "same",
        "looks",
        "blobs",
        "digests",
        "uploads",
        "condemned",
        "doomed",
        "claims",
        "revoked",
        "urls",
        "epochs",
        "usage",
        "used",
        "reserved",
        "owed",
        "resumable",
        "resumable_parts",
        "resumable_looks",
        "hold_numbers",
        "tidy",
        "audit_waiting",
        "audit_rows",
        "audit_heads",
    ];
    administer(url, tables.map(|table| format!("DELETE FROM mk_{table};")).concat()).await;
    index
}

fn tenant() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

fn event(n: i64) -> AuditEvent {
    AuditEvent::new(AuditKind::Read, "host", Timestamp::from_second(n).expect("a time in range"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_keeps_the_contract() {
    let database = testing::database().await;
    let url = database.url();
    contract::run_all(|| async { Arc::new(emptied(url).await) as Subject }).await;
}

#[test]
fn postgres_answers_as_the_model_does() {
    let here = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = here.block_on(testing::database());
    let url = database.url();
    let last: RefCell<Option<Arc<PostgresIndex>>> = RefCell::default();
    let keep = |index: PostgresIndex| {
        let index = Arc::new(index);
        last.replace(Some(index.clone()));
        index as Subject
    };
    let close = async || {
        let index = last.take();
        if let Some(index) = index {
            index.close().await;
        }
    };
    contract::random::run(
        16,
        async || {
            close().await;
            keep(emptied(url).await)
        },
        async |index| {
            drop(index);
            close().await;
            keep(open(url).await)
        },
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_that_open_an_empty_database_at_once_both_have_an_index() {
    for _ in 0..5 {
        let database = testing::database().await;
        let url = database.url();
        let options = PostgresOptions::default();
        assert!(!PostgresIndex::is_there(url, &options).await.expect("an answer"));

        let both = [(); 4].map(|()| {
            tokio::spawn({
                let url = url.to_owned();
                async move { open(&url).await.record(&tenant(), vec![event(0)]).await }
            })
        });

        for one in both {
            one.await.expect("it opens").expect("it writes");
        }
        assert!(PostgresIndex::is_there(url, &options).await.expect("an answer"));
        let index = open(url).await;
        assert_eq!(index.seal_audit(9).await.expect("a sealed log"), 4);
        index.close().await;
    }
}

#[tokio::test]
async fn whoever_meets_half_of_a_table_that_is_being_made_waits_for_it() {
    let database = testing::database().await;
    let url = database.url();
    // A table comes with a type of its name, and between the two whoever makes the same table finds just that.
    administer(url, "CREATE TYPE mk_schema AS ENUM ('half')".into()).await;

    let opening = tokio::spawn({
        let url = url.to_owned();
        async move { open(&url).await.close().await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!opening.is_finished(), "it waits");
    administer(url, "DROP TYPE mk_schema".into()).await;

    opening.await.expect("it opens");
}

#[tokio::test]
async fn a_schema_from_the_future_is_refused_with_what_to_do() {
    let database = testing::database().await;
    let url = database.url();
    open(url).await.close().await;
    administer(url, "UPDATE mk_schema SET version = 1000".into()).await;

    let refused = PostgresIndex::open(url, PostgresOptions::default()).await.expect_err("a newer schema");

    assert!(matches!(refused, StorageError::BadAddress(_)), "{refused:?}");
    assert!(refused.to_string().contains("schema version 1000"), "{refused}");
}

#[tokio::test]
async fn a_schema_of_an_earlier_version_is_brought_up_to_date_by_however_many_start() {
    let database = testing::database().await;
    let url = database.url();
    open(url).await.close().await;
    administer(
        url,
        "DROP TABLE mk_resumable, mk_resumable_parts, mk_resumable_looks, mk_turns; UPDATE mk_schema SET version = 3"
            .into(),
    )
    .await;

    let opening = [(); 4].map(|()| {
        let url = url.to_owned();
        tokio::spawn(async move { open(&url).await.close().await })
    });

    for one in opening {
        one.await.expect("it opens");
    }
    // Both would fail if the migration had not been made.
    administer(
        url,
        "DROP TABLE mk_resumable, mk_resumable_parts, mk_resumable_looks, mk_turns; ALTER TABLE mk_schema ADD CHECK (version = 5)".into(),
    )
    .await;
}

#[tokio::test]
async fn no_error_holds_the_password() {
    let database = testing::database().await;
    let server = Url::parse(database.url()).expect("the database's URL is one");
    let options = PostgresOptions { acquire_timeout: Duration::from_millis(500), ..PostgresOptions::default() };
    let mut wrong = server.clone();
    wrong.set_path("no_such_database");
    let mut nowhere = server.clone();
    nowhere.set_port(Some(1)).expect("a URL with a port");
    let addresses = ["postgres://host:hunter2@:badport/x", "hunter2", "postgres://u:hunter2@127.0.0.1:70000/x"];
    let mut addresses: Vec<String> = addresses.map(str::to_owned).into();
    for mut url in [wrong, nowhere] {
        url.set_password(Some("hunter2")).expect("a URL with a password");
        addresses.push(url.into());
    }

    for address in addresses {
        let opened = PostgresIndex::open(&address, options.clone()).await.expect_err("there is nothing");
        let there = PostgresIndex::is_there(&address, &options).await.expect_err("there is nothing");
        for error in [opened, there] {
            let told = format!("{error} {error:?}");
            assert!(!told.contains("hunter2") && !told.contains("postgres://"), "{told}");
        }
    }
    let index = open(server.as_str()).await;
    assert!(!format!("{index:?}").contains("127.0.0.1"));
    index.close().await;
}

#[tokio::test]
async fn words_that_text_does_not_hold_are_kept_and_looked_for() {
    let database = testing::database().await;
    let url = database.url();
    let index = open(url).await;
    let word = "a\0b\u{1f600}";

    index.revoke_url(&tenant(), word, Timestamp::MAX, event(0).url(word)).await.expect("a revocation");
    assert!(index.is_revoked(&tenant(), word).await.expect("an answer"));
    let query = AssetQuery { kind: Some(word.into()), state: Some(word.into()), limit: 9, ..AssetQuery::default() };
    let terms = contract::terms();
    assert_eq!(index.page(&tenant(), &query, &terms).await.expect("a page"), vec![]);
    index.seal_audit(9).await.expect("a sealed log");
    let log = index.audit_rows(&tenant(), 0, 9).await.expect("the log");
    assert_eq!(log[0].event.url_id.as_deref(), Some(word));
    index.close().await;
}

#[tokio::test]
async fn a_server_that_closes_connections_costs_no_call() {
    let database = testing::database().await;
    let url = database.url();
    let index = open(url).await;
    index.record(&tenant(), vec![event(0)]).await.expect("a record");

    let closing = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
    administer(url, closing.into()).await;

    index.record(&tenant(), vec![event(1)]).await.expect("a record");
    administer(url, closing.into()).await;
    assert_eq!(index.find(&tenant(), AssetId::from_bytes([0; 16])).await.expect("an answer"), None);
    index.close().await;
}

#[tokio::test]
async fn a_run_that_was_erased_between_two_microseconds_is_settled_at_once() {
    let database = testing::database().await;
    let index = Arc::new(open(database.url()).await);
    let [one, two] = contract::two_assets_of_equal_bytes(index.clone()).await;
    let (now, terms) = (Timestamp::from_nanosecond(86_400_000_000_001).expect("a time in range"), contract::terms());
    let run = RunId::parse("run-1").expect("a run");
    let audit = AuditEvent::new(AuditKind::Erase, "host", now);

    let erased = index.erase_run(&tenant(), &run, audit, now).await.expect("an erasure");
    assert!(matches!(erased, RunErasure::Done(_)), "{erased:?}");
    let look = Look { tenant: tenant(), at: LookAt::Run(run), due: now };
    let settlement = index.settle(&look, 9, &terms, "host", now).await.expect("a settlement");

    let mut right = [one, two];
    right.sort();
    assert_eq!(settlement.erased.iter().map(|record| record.id).collect::<Vec<_>>(), right);
    let states = settlement.erased.iter().map(|record| match &record.state {
        AssetState::Erased { same_bytes, bytes_removed, .. } => (same_bytes.clone(), *bytes_removed),
        other => unreachable!("{other:?}"),
    });
    let first_has_the_other = [(vec![right[1]], false), (vec![], true)];
    assert_eq!(states.collect::<Vec<_>>(), first_has_the_other, "one after the other");
    index.close().await;
}

#[tokio::test]
async fn a_dropped_asset_leaves_no_rows_of_its_own() {
    let database = testing::database().await;
    let url = database.url();
    let index = Arc::new(open(url).await);
    contract::an_asset_comes_and_goes(index.clone()).await;

    let mut connection = PgConnection::connect(url).await.expect("the database answers");
    for table in [
        "mk_assets",
        "mk_refs",
        "mk_same",
        "mk_looks",
        "mk_blobs",
        "mk_digests",
        "mk_uploads",
        "mk_reserved",
        "mk_condemned",
        "mk_doomed",
    ] {
        let count = format!("SELECT count(*) FROM {table}");
        let rows: (i64,) =
            sqlx::query_as(sqlx::AssertSqlSafe(count)).fetch_one(&mut connection).await.expect("a count");
        assert_eq!(rows, (0,), "{table}");
    }
    connection.close().await.expect("a goodbye");
    index.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_replicas_have_the_races_of_one() {
    let database = testing::database().await;
    let url = database.url();
    contract::run_races(|| async {
        let one = Arc::new(emptied(url).await);
        [one as Subject, Arc::new(open(url).await) as Subject]
    })
    .await;
}
