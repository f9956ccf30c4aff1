//! What is this index's own: its database, its plans, its replicas. The rest is the contract's to test.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection, Executor, PgConnection};
use url::Url;
use uuid::Uuid;

use super::*;
use crate::audit::AuditKind;
use crate::index::contract::{self, Subject};

mod plans;

/// A database that nobody else has, and that goes with [`drop_database`].
async fn fresh_database() -> String {
    let server = std::env::var("TEST_POSTGRES_URL").expect("TEST_POSTGRES_URL names a server for tests");
    let name = format!("mediakeep_{}", Uuid::new_v4().simple());
    administer(&server, format!("CREATE DATABASE {name}")).await;
    let mut url = Url::parse(&server).expect("the server's URL is one");
    url.set_path(&name);
    url.into()
}

async fn drop_database(url: &str) {
    let mut server = Url::parse(url).expect("the database's URL is one");
    let name = server.path().trim_start_matches('/').to_owned();
    server.set_path("postgres");
    administer(server.as_str(), format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

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
    let tables = "mk_assets, mk_runs, mk_refs, mk_looks, mk_blobs, mk_digests, mk_uploads, mk_condemned, mk_doomed, \
                  mk_claims, mk_revoked, mk_tidy, mk_audit_waiting, mk_audit_rows, mk_audit_heads";
    administer(url, format!("TRUNCATE {tables} RESTART IDENTITY")).await;
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
    let url = fresh_database().await;
    contract::run_all(|| async { Arc::new(emptied(&url).await) as Subject }).await;
    drop_database(&url).await;
}

#[test]
fn postgres_answers_as_the_model_does() {
    let here = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let url = here.block_on(fresh_database());
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
            keep(emptied(&url).await)
        },
        async |index| {
            drop(index);
            close().await;
            keep(open(&url).await)
        },
    );
    here.block_on(drop_database(&url));
}
