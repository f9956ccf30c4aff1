//! The turn to remove bytes: a row that is locked for as long as somebody has it.
//!
//! The lock is that of a transaction that does nothing else. It ends when the transaction does, so also with the connection of a process that
//! died, and the next sweep need not wait for a time to pass. It keeps one connection of the process's while bytes are removed.

use std::ops::ControlFlow;

use super::failed::Worked;
use super::tx::Trials;
use super::{PostgresIndex, sql};
use crate::error::StorageError;
use crate::index::RemovalTurn;

/// The turn, if nobody has it.
pub(super) async fn turn(index: &PostgresIndex) -> Result<Option<RemovalTurn>, StorageError> {
    let mut trials = Trials::of(index);
    loop {
        let mut tx = trials.begin(sql::BEGIN_BY_LOCK).await?;
        let watch = tx.watch();
        let locking = async { Ok(sql::REMOVAL_TURN.rows().fetch_optional(tx.on()).await?) };
        let locked: Worked<Option<(String,)>> = watch.heard(locking).await;
        if matches!(locked, Ok(Some(_))) {
            return Ok(Some(RemovalTurn::of(tx)));
        }
        if let ControlFlow::Break(_) = trials.end(tx, locked).await? {
            return Ok(None);
        }
    }
}
