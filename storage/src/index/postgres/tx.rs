//! One transition, one transaction: how it begins, is tried again, and ends.
//!
//! A transition that PostgreSQL refuses because of what others did beside it is undone as a whole and done again from its first
//! statement, after a pause that chance picks so that two that met do not meet again. Once that has gone on for [`PATIENCE`] its
//! caller hears [`StorageError::Unavailable`]. Those that many at once may be in each other's way about take [turns](super::turns).
//!
//! A caller that no longer waits drops the transaction wherever it is. Before its `COMMIT` is sent that undoes it: the connection
//! rolls back when it returns to the pool. After that the server finishes it. Nobody sees half of it either way.
//!
//! A database that says nothing at all (its host is gone, a line swallows what is sent) is told from one that works: every statement ends by
//! the server's own limit, and a while after that the connection is thrown away and the caller hears [`StorageError::Unavailable`].

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sqlx::PgConnection;
use uuid::Uuid;

use self::lease::{Lease, Watch};
use super::PostgresIndex;
use super::failed::{Failed, Worked, is_disconnected, told, unavailable};
use super::owed;
use super::sql::{self, Sql};
use super::turns::{Thing, Turn};
use crate::audit::AuditEvent;
use crate::error::StorageError;
use crate::ids::TenantId;
use crate::index::codec::encode;
use crate::record::Owed;

mod lease;

/// How long a transition is tried again before it is given up: less than callers wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a transition waits for its turn, which is before its patience is counted.
const QUEUE: Duration = Duration::from_secs(30);

/// The longest first pause; it doubles with each trial, up to [`MOST`].
const FIRST: Duration = Duration::from_millis(2);

/// The longest pause.
const MOST: Duration = Duration::from_millis(200);

/// A transition under way.
#[derive(Debug)]
pub(super) struct Tx {
    lease: Lease,
    /// When it last said anything.
    watch: Watch,
    /// Written with everything else at the end.
    events: Vec<(TenantId, AuditEvent)>,
    /// The same.
    owed: Vec<(TenantId, Owed)>,
    undone: bool,
}

impl Tx {
    /// Where statements are sent.
    pub(super) fn on(&mut self) -> &mut PgConnection {
        self.watch.sent();
        &mut self.lease
    }

    /// What says whether the database still answers.
    pub(super) fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Writes the event, to be given its place in the tenant's chain later.
    pub(super) fn audit(&mut self, tenant: &TenantId, event: AuditEvent) {
        self.events.push((tenant.clone(), event));
    }

    /// A recovery record is to follow the transition.
    pub(super) fn owe(&mut self, tenant: &TenantId, owed: Owed) {
        self.owed.push((tenant.clone(), owed));
    }

    /// Nothing of the transition is to have happened, though its caller gets an answer.
    pub(super) fn undo(&mut self) {
        self.undone = true;
    }

    async fn commit(mut self) -> Worked<()> {
        let watch = self.watch();
        if let Err(failed) = watch.heard(self.last_words()).await {
            self.lease.end_badly(&failed, &watch).await;
            return Err(failed);
        }
        watch.sent();
        match watch.heard(self.lease.commit()).await {
            Ok(()) => Ok(()),
            Err(Failed::Sql(error)) => Err(Failed::commit(error)),
            Err(silent) => {
                self.lease.throw_away();
                Err(silent.at_commit())
            }
        }
    }

    /// What is written with everything else at the end.
    async fn last_words(&mut self) -> Worked<()> {
        if !self.events.is_empty() {
            let (tenants, events): (Vec<String>, Vec<Vec<u8>>) =
                self.events.iter().map(|(tenant, event)| (tenant.to_string(), encode(event))).unzip();
            sql::AUDIT_NEW.run().bind(tenants).bind(events).execute(self.on()).await?;
        }
        let owed = std::mem::take(&mut self.owed);
        if !owed.is_empty() {
            owed::write(self, owed).await?;
        }
        Ok(())
    }
}

/// The trials of one call.
#[derive(Debug)]
pub(super) struct Trials<'a> {
    index: &'a PostgresIndex,
    began: Instant,
    failed: u32,
    /// What others may be in the way about, and the turn at it.
    about: Vec<Thing>,
    turn: Vec<Turn<'a>>,
}

impl<'a> Trials<'a> {
    pub(super) fn of(index: &'a PostgresIndex) -> Self {
        Self { index, began: Instant::now(), failed: 0, about: Vec::new(), turn: Vec::new() }
    }

    /// The same, in turns with others about these things once that is called for.
    pub(super) fn about(index: &'a PostgresIndex, about: Vec<Thing>) -> Self {
        Self { about, ..Self::of(index) }
    }

    /// Begins a transaction. A connection that the server has closed since it was last used has done nothing, so another is tried; on one
    /// that says nothing no `BEGIN` is waited for longer than for a connection.
    pub(super) async fn begin(&mut self, sql: Sql) -> Result<Tx, StorageError> {
        // Once, and only if there is anything to queue for: each time the patience begins anew.
        let may_queue = self.turn.is_empty() && !self.about.is_empty();
        if may_queue && (self.failed > 0 || self.index.turns.are_sought(&self.about)) {
            let turn = tokio::time::timeout(QUEUE, self.index.turns.take(&self.about)).await;
            self.turn = turn.map_err(|_| unavailable("too many calls about the same run or bytes wait".into()))?;
            self.began = Instant::now();
        }
        loop {
            let mut lease = self.connection().await?;
            let quick = Watch::new(self.index.options.acquire_timeout);
            match quick.heard(lease.begin(sql)).await {
                Ok(()) => {
                    let (events, owed) = (Vec::new(), Vec::new());
                    return Ok(Tx { lease, watch: self.watch(), events, owed, undone: false });
                }
                Err(Failed::Sql(error)) => self.reconnect(error).await?,
                Err(failed) => {
                    lease.throw_away();
                    return Err(failed.told());
                }
            }
        }
    }

    /// A connection, for one statement that only reads or for a transaction.
    pub(super) async fn connection(&mut self) -> Result<Lease, StorageError> {
        loop {
            match Lease::take(&self.index.pool, &self.index.home).await? {
                Ok(lease) => return Ok(lease),
                Err(error) => self.reconnect(error).await?,
            }
        }
    }

    /// How long the database may say nothing: longer than it works on a statement by its own limit, so that it is heard if it is there.
    pub(super) fn watch(&self) -> Watch {
        Watch::new(self.index.options.statement_timeout + self.index.options.acquire_timeout)
    }

    /// Ends the transaction as its work came out: `Continue` says that it is to be done again.
    pub(super) async fn end<T>(&mut self, tx: Tx, worked: Worked<T>) -> Result<ControlFlow<T>, StorageError> {
        let committed = match worked {
            Ok(answer) if tx.undone => {
                // If this fails, so does the connection, and the server rolls back by itself.
                tx.lease.roll_back(&tx.watch).await;
                Ok(answer)
            }
            Ok(answer) => tx.commit().await.map(|()| answer),
            Err(failed) => {
                tx.lease.end_badly(&failed, &tx.watch).await;
                Err(failed)
            }
        };
        match committed {
            Ok(answer) => Ok(ControlFlow::Break(answer)),
            Err(failed) => self.again(failed).await.map(|()| ControlFlow::Continue(())),
        }
    }

    /// Says what a statement read; `None` says that it is to be sent again.
    pub(super) async fn read<T>(&mut self, lease: Lease, worked: Worked<T>) -> Result<Option<T>, StorageError> {
        if let Err(Failed::Silent) = worked {
            lease.throw_away();
        } else {
            drop(lease);
        }
        match worked {
            Ok(answer) => Ok(Some(answer)),
            Err(Failed::Sql(error)) if is_disconnected(&error) => self.reconnect(error).await.map(|()| None),
            Err(failed) => self.again(failed).await.map(|()| None),
        }
    }

    async fn again(&mut self, failed: Failed) -> Result<(), StorageError> {
        if !failed.is_refusal() || self.began.elapsed() >= PATIENCE {
            return Err(failed.told());
        }
        self.index.retries.fetch_add(1, Ordering::Relaxed);
        self.pause().await;
        Ok(())
    }

    /// The pool may hold as many dead connections as it may have at all.
    async fn reconnect(&mut self, error: sqlx::Error) -> Result<(), StorageError> {
        if !is_disconnected(&error) || self.failed > self.index.options.max_connections {
            return Err(told(&error));
        }
        self.failed += 1;
        Ok(())
    }

    async fn pause(&mut self) {
        let most = FIRST.saturating_mul(1 << self.failed.min(10)).min(MOST);
        self.failed += 1;
        let chance = u32::from_be_bytes(*Uuid::new_v4().as_bytes().first_chunk().expect("an id has sixteen bytes"));
        tokio::time::sleep(most.mul_f64(f64::from(chance) / f64::from(u32::MAX))).await;
    }
}

/// Does the transition in a transaction of its own, as often as it takes.
macro_rules! transact {
    ($index:expr, $tx:ident => $work:expr) => {
        transact!($index, crate::index::postgres::sql::BEGIN, $tx => $work)
    };
    ($index:expr, $begin:expr, $tx:ident => $work:expr) => {
        transact!($index, $begin, about Vec::new(), $tx => $work)
    };
    ($index:expr, $begin:expr, about $about:expr, $tx:ident => $work:expr) => {{
        let mut trials = crate::index::postgres::tx::Trials::about($index, $about);
        loop {
            let mut $tx = trials.begin($begin).await?;
            let watch = $tx.watch();
            let worked = watch.heard($work).await;
            if let std::ops::ControlFlow::Break(answer) = trials.end($tx, worked).await? {
                break Ok(answer);
            }
        }
    }};
}

/// Sends statements that only read, each of which sees one moment.
macro_rules! read {
    ($index:expr, $on:ident => $work:expr) => {{
        let mut trials = crate::index::postgres::tx::Trials::of($index);
        loop {
            let mut lease = trials.connection().await?;
            let watch = trials.watch();
            let worked = {
                let $on = &mut *lease;
                watch.heard($work).await
            };
            if let Some(answer) = trials.read(lease, worked).await? {
                break Ok(answer);
            }
        }
    }};
}

pub(super) use {read, transact};
