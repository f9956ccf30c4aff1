//! A connection while a call has it: how it is waited for, and how it comes back to the pool whatever became of the call.
//!
//! Whoever no longer waits leaves the queue at once, so that what others gave up takes nobody's time. And a connection comes back in
//! time or not at all: the pool by itself would wait for a word of the server for as long as the kernel takes a line for alive, which is a
//! quarter of an hour, and have one connection fewer meanwhile.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::super::failed::{Failed, Worked, unavailable};
use super::super::sql::Sql;
use crate::error::StorageError;

/// How long a connection may take to come back to the pool: to roll back, and to say that it is there.
const BACK: Duration = Duration::from_secs(5);

/// A connection of the pool; dropped, it goes back, without what was not committed.
#[derive(Debug)]
pub(in crate::index::postgres) struct Lease {
    connection: Option<PoolConnection<Postgres>>,
    /// Where it was made: it is waited on there, also when its caller's own runtime ends.
    home: Handle,
    /// A transaction was begun, perhaps, and has not ended for sure.
    in_transaction: bool,
}

impl Lease {
    /// Waits for a connection, or for a new one to be made.
    pub(in crate::index::postgres) async fn take(
        pool: &PgPool,
        home: &Handle,
    ) -> Result<Result<Self, sqlx::Error>, StorageError> {
        if let Some(connection) = pool.try_acquire() {
            return Ok(Ok(Self::of(connection, home.clone())));
        }
        // A set of tasks stops them when it is dropped: of this one nothing is left when the caller does not wait.
        let mut waiting = JoinSet::new();
        let (pool, at) = (pool.clone(), home.clone());
        waiting.spawn_on(async move { Ok(Self::of(pool.acquire().await?, at)) }, home);
        let acquired = waiting.join_next().await.expect("a task was spawned into it");
        acquired.map_err(|error| unavailable(format!("no connection was made: {error}")))
    }

    fn of(connection: PoolConnection<Postgres>, home: Handle) -> Self {
        Self { connection: Some(connection), home, in_transaction: false }
    }

    /// Begins a transaction.
    pub(in crate::index::postgres) async fn begin(&mut self, sql: Sql) -> Worked<()> {
        self.in_transaction = true;
        sqlx::raw_sql(sql.begins()).execute(&mut **self).await?;
        Ok(())
    }

    /// Ends it; what the database says of that ends it too.
    pub(in crate::index::postgres) async fn commit(&mut self) -> Worked<()> {
        let committed = sqlx::raw_sql("COMMIT").execute(&mut **self).await;
        self.in_transaction = committed.as_ref().is_err_and(|error| error.as_database_error().is_none());
        committed?;
        Ok(())
    }

    /// Undoes it; a connection that does not obey is thrown away, and the server undoes it by itself.
    pub(in crate::index::postgres) async fn roll_back(mut self, watch: &Watch) {
        watch.sent();
        let undone = watch.heard(async {
            sqlx::raw_sql("ROLLBACK").execute(&mut *self).await?;
            Ok(())
        });
        match undone.await {
            Ok(()) => self.in_transaction = false,
            Err(_) => self.throw_away(),
        }
    }

    /// The same after a failure: of a database that says nothing no more is asked.
    pub(in crate::index::postgres) async fn end_badly(self, failed: &Failed, watch: &Watch) {
        match failed {
            Failed::Silent => self.throw_away(),
            _ => self.roll_back(watch).await,
        }
    }

    /// Closes the connection at once, without a word; the pool may make another in its place.
    pub(in crate::index::postgres) fn throw_away(mut self) {
        drop(self.connection.take().map(PoolConnection::detach));
    }
}

impl Deref for Lease {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("only its end takes it")
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("only its end takes it")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.home.spawn(give_back(connection, self.in_transaction));
        }
    }
}

/// A statement that was cut off may still be answered; what comes after it waits for that.
async fn give_back(mut connection: PoolConnection<Postgres>, in_transaction: bool) {
    let undo = async {
        match in_transaction {
            true => sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await.is_ok(),
            false => true,
        }
    };
    if timeout(BACK, undo).await.unwrap_or(false) {
        // Dropped before its end it closes the connection.
        let _ = timeout(BACK, connection.return_to_pool()).await;
    } else {
        drop(connection.detach());
    }
}

/// When something was last sent to a database, and how long it may say nothing to that.
#[derive(Debug, Clone)]
pub(in crate::index::postgres) struct Watch {
    sent: Arc<Mutex<Instant>>,
    patience: Duration,
}

impl Watch {
    pub(in crate::index::postgres) fn new(patience: Duration) -> Self {
        Self { sent: Arc::new(Mutex::new(Instant::now())), patience }
    }

    /// Something is sent now, so whatever was sent before has been answered.
    pub(in crate::index::postgres) fn sent(&self) {
        *self.sent.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Does the work, unless the database says nothing for too long: [`Failed::Silent`].
    pub(in crate::index::postgres) async fn heard<T>(&self, work: impl Future<Output = Worked<T>>) -> Worked<T> {
        let mut work = std::pin::pin!(work);
        loop {
            let until = *self.sent.lock().unwrap_or_else(PoisonError::into_inner) + self.patience;
            if let Ok(worked) = timeout_at(until, &mut work).await {
                return worked;
            }
            if Instant::now() >= *self.sent.lock().unwrap_or_else(PoisonError::into_inner) + self.patience {
                return Err(Failed::Silent);
            }
        }
    }
}
