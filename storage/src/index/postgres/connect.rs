//! How the database is reached, and how its schema is brought up to date.

use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection, Row};
use tracing::warn;

use super::PostgresOptions;
use super::failed::{Failed, Worked, told, unavailable};
use super::sql;
use crate::error::StorageError;

/// The files of `storage/migrations`, in order: the first makes version 1 of the schema.
const MIGRATIONS: &[&str] = &[
    include_str!("../../../migrations/0001_index.sql"),
    include_str!("../../../migrations/0002_artifacts.sql"),
    include_str!("../../../migrations/0003_looks_of_tenant.sql"),
    include_str!("../../../migrations/0004_resumable.sql"),
    include_str!("../../../migrations/0005_turns.sql"),
];

/// How many statements a connection keeps prepared: more than `sql` has, so that each is parsed once in a connection's life.
const STATEMENTS: usize = 200;

/// How often those that bring a schema up to date at once may be in each other's way; each time they may have waited for a lock.
const TRIALS: u32 = 100;

/// The pool, with a schema that this program knows.
pub(super) async fn open(url: &str, options: &PostgresOptions) -> Result<PgPool, StorageError> {
    let settings = [options.statement_timeout, options.lock_timeout, options.statement_timeout * 2].map(milliseconds);
    let pool = PgPoolOptions::new()
        .max_connections(options.max_connections)
        .acquire_timeout(options.acquire_timeout)
        // A connection that the server has closed is noticed when a transition begins on it, which nothing is lost by.
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            let [statement, lock, idle] = settings.clone();
            Box::pin(async move {
                sql::SESSION.run().bind(statement).bind(lock).bind(idle).execute(connection).await?;
                Ok(())
            })
        })
        .connect_with(address(url)?)
        .await
        .map_err(|error| told(&error))?;
    let mut connection = pool.acquire().await.map_err(|error| told(&error))?;
    warn_of_lax_durability(&mut connection).await;
    drop(connection);
    migrate(url, options).await?;
    Ok(pool)
}

/// Whether there is an index.
pub(super) async fn is_there(url: &str, options: &PostgresOptions) -> Result<bool, StorageError> {
    let look = async {
        let mut connection = address(url)?.connect().await.map_err(|error| told(&error))?;
        let found = sql::SCHEMA_THERE.rows().fetch_one(&mut connection).await;
        let (tables,): (i64,) = found.map_err(|error| told(&error))?;
        // What it said is known; how the goodbye goes does not matter.
        let _ = connection.close().await;
        Ok(tables > 0)
    };
    match tokio::time::timeout(options.acquire_timeout, look).await {
        Ok(answer) => answer,
        Err(_) => Err(unavailable("no connection could be made in time".into())),
    }
}

/// Where the database is. What is wrong with a URL is not said: the words of a parser may quote it, and it may hold a password.
fn address(url: &str) -> Result<PgConnectOptions, StorageError> {
    let address = PgConnectOptions::from_str(url)
        .map_err(|_| StorageError::BadAddress("the index's URL is not one of a PostgreSQL database".into()))?;
    Ok(address.application_name("mediakeep").statement_cache_capacity(STATEMENTS).disable_statement_logging())
}

fn milliseconds(time: Duration) -> String {
    // 0 would be no limit at all.
    format!("{}ms", time.as_millis().max(1))
}

/// A server that may lose what it has answered is for its operator to know; a database that has no such settings has no such choice.
async fn warn_of_lax_durability(connection: &mut PgConnection) {
    let Ok(rows) = sql::DURABILITY.run().fetch_all(connection).await else { return };
    for row in rows {
        if let (Ok(name), Ok("off")) = (row.try_get::<&str, _>(0), row.try_get::<&str, _>(1)) {
            warn!(setting = name, "the index's database runs with {name} off: a power cut may cost what was answered");
        }
    }
}

/// Brings the schema up to date. Whoever comes second waits for the first, and finds it done.
///
/// On a connection of its own: an index on a table of millions takes its time, and what a table that is there says of that is no warning.
/// For a lock no statement waits longer than any other does, because all that come later wait behind it.
async fn migrate(url: &str, options: &PostgresOptions) -> Result<(), StorageError> {
    let mut connection = address(url)?.connect().await.map_err(|error| told(&error))?;
    let set = sql::MIGRATION_SESSION.run().bind(milliseconds(options.lock_timeout)).execute(&mut connection).await;
    set.map_err(|error| told(&error))?;
    let mut trial = 0;
    let version = loop {
        match migrated(&mut connection).await {
            Ok(version) => break version,
            Err(failed) if trial < TRIALS && failed.is_meeting() => trial += 1,
            Err(failed) => return Err(failed.told()),
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    };
    // What it said is known; how the goodbye goes does not matter.
    let _ = connection.close().await;
    if version > newest() {
        return Err(StorageError::BadAddress(format!(
            "the index has schema version {version}, and this build knows up to {}: start a newer build",
            newest()
        )));
    }
    Ok(())
}

fn newest() -> i32 {
    i32::try_from(MIGRATIONS.len()).expect("there are few migrations")
}

/// Applies what is missing under the lock of one row; says which version the schema has.
async fn migrated(connection: &mut PgConnection) -> Worked<i32> {
    sql::SCHEMA_TABLE.run().execute(&mut *connection).await?;
    sql::SCHEMA_ROW.run().execute(&mut *connection).await?;
    let mut tx = connection.begin().await?;
    let (version,): (i32,) = sql::SCHEMA_LOCK.rows().fetch_one(&mut *tx).await?;
    let applied = usize::try_from(version).unwrap_or(usize::MAX);
    let Some(missing) = MIGRATIONS.get(applied..).filter(|missing| !missing.is_empty()) else {
        return Ok(version);
    };
    for migration in missing {
        sqlx::raw_sql(*migration).execute(&mut *tx).await?;
    }
    sql::SCHEMA_VERSION.run().bind(newest()).execute(&mut *tx).await?;
    tx.commit().await.map_err(Failed::commit)?;
    Ok(newest())
}
