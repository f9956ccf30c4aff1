//! Rows that are in the journal, and in the tree only after the next checkpoint; under them, the tree.
//!
//! There are two layers over the tree: one takes what becomes durable, the other one is on its way into the tree. What is in none of them
//! is in the tree already, so whoever looks into the layers first and into the tree then misses nothing that is there all the while.

use std::collections::{BTreeMap, vec_deque::VecDeque};
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ::sled::{Db, IVec, Tree};

use super::disk;
use crate::error::StorageError;

/// Rows that were written; `None` removes the key.
pub(super) type Pending = BTreeMap<Vec<u8>, Option<IVec>>;

/// About what a row in a layer takes beside its bytes.
const BESIDE: u64 = 96;

/// A walk reads so many rows of the layers at a time: first as for somebody who wants one, and more each time.
const LEAST_AHEAD: usize = 8;
const MOST_AHEAD: usize = 256;

/// All rows that are durable.
#[derive(Debug)]
pub(super) struct Base {
    db: Db,
    layers: RwLock<Layers>,
}

#[derive(Debug, Default)]
struct Layers {
    young: Pending,
    /// About how much memory they take.
    young_bytes: u64,
    /// What a checkpoint writes to the tree.
    old: Arc<Pending>,
}

impl Base {
    /// `journal` is what the tree has not yet.
    pub(super) fn new(db: Db, journal: Pending) -> Self {
        let young_bytes = journal.iter().map(bytes_of).sum();
        Self { db, layers: RwLock::new(Layers { young: journal, young_bytes, old: Arc::default() }) }
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.db
    }

    /// Adds what has become durable.
    pub(super) fn add(&self, rows: &Pending) {
        let mut layers = self.change();
        for (key, value) in rows {
            layers.young_bytes += bytes_of((key, value));
            layers.young.insert(key.clone(), value.clone());
        }
    }

    /// About how much memory the rows take that no checkpoint has begun to write. A row that was written twice counts twice.
    pub(super) fn young_bytes(&self) -> u64 {
        self.look().young_bytes
    }

    /// Takes the rows for a checkpoint, which is the only one.
    pub(super) fn begin_checkpoint(&self) -> Arc<Pending> {
        let mut layers = self.change();
        layers.old = Arc::new(std::mem::take(&mut layers.young));
        layers.young_bytes = 0;
        layers.old.clone()
    }

    /// The tree has them now.
    pub(super) fn end_checkpoint(&self) {
        // What it frees is freed when nobody waits for the lock.
        let _freed = std::mem::take(&mut self.change().old);
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<IVec>, StorageError> {
        let layers = self.look();
        if let Some(written) = layers.young.get(key).or_else(|| layers.old.get(key)) {
            return Ok(written.clone());
        }
        drop(layers);
        self.db.get(key).map_err(|error| disk::failed("reading the index", error))
    }

    /// Every row from one key up to, and without, another one, in the order of the keys.
    pub(super) fn range(&self, from: Vec<u8>, end: Vec<u8>) -> Walk<'_> {
        let tree = self.db.range::<&[u8], _>(..).peekable();
        let mut walk = Walk { base: self, tree, ahead: VecDeque::new(), more: LEAST_AHEAD, from, end };
        walk.read_ahead();
        walk
    }

    /// The greatest key from one up to, and without, another one, whether its row is there or was removed.
    pub(super) fn last(&self, from: &[u8], end: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let layers = self.look();
        let bounds = (Bound::Included(from), Bound::Excluded(end));
        let last = |rows: &Pending| rows.range::<[u8], _>(bounds).next_back().map(|(key, _)| key.clone());
        let fresh = last(&layers.young).max(last(&layers.old));
        drop(layers);
        let kept = self.db.range(from..end).next_back().transpose();
        let kept = kept.map_err(|error| disk::failed("reading the index", error))?;
        Ok(fresh.max(kept.map(|(key, _)| key.to_vec())))
    }

    fn look(&self) -> RwLockReadGuard<'_, Layers> {
        self.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Layers> {
        self.layers.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes_of((key, value): (&Vec<u8>, &Option<IVec>)) -> u64 {
    BESIDE + key.len() as u64 + value.as_ref().map_or(0, |value| value.len() as u64)
}

/// Rows in the order of their keys, each as it is when the walk comes near it.
pub(super) struct Walk<'a> {
    base: &'a Base,
    /// Made anew each time that the layers are read, and only then: what left them since is in the tree, and might not be in what an
    /// older walk of the tree has read ahead.
    tree: Peekable<::sled::Iter>,
    /// The next rows of the layers.
    ahead: VecDeque<(Vec<u8>, Option<IVec>)>,
    /// How many rows are read next; 0 if the layers have no more.
    more: usize,
    from: Vec<u8>,
    end: Vec<u8>,
}

impl Walk<'_> {
    fn read_ahead(&mut self) {
        let layers = self.base.look();
        let bounds = (Bound::Included(self.from.as_slice()), Bound::Excluded(self.end.as_slice()));
        let mut young = layers.young.range::<[u8], _>(bounds).peekable();
        let mut old = layers.old.range::<[u8], _>(bounds).peekable();
        while self.ahead.len() < self.more {
            let row = match (young.peek(), old.peek()) {
                (Some((one, _)), Some((other, _))) if one > other => old.next(),
                (Some((one, _)), Some((other, _))) => {
                    if one == other {
                        old.next();
                    }
                    young.next()
                }
                (Some(_), None) => young.next(),
                (None, _) => old.next(),
            };
            let Some((key, value)) = row else {
                break;
            };
            self.ahead.push_back((key.clone(), value.clone()));
        }
        drop(layers);
        self.more = if self.ahead.len() < self.more { 0 } else { (self.more * 2).min(MOST_AHEAD) };
        self.tree = self.base.db.range(self.from.as_slice()..self.end.as_slice()).peekable();
    }

    /// Goes on behind the last row of the layers that was read.
    fn go_on_behind(&mut self, key: Vec<u8>) {
        if self.ahead.is_empty() && self.more > 0 {
            self.from = key;
            self.from.push(0);
            self.read_ahead();
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<(IVec, IVec), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let fresh_first = match (self.ahead.front(), self.tree.peek()) {
                (Some((fresh, _)), Some(Ok((kept, _)))) => {
                    if fresh.as_slice() == kept.as_ref() {
                        self.tree.next();
                        continue;
                    }
                    fresh.as_slice() < kept.as_ref()
                }
                (Some(_), None) => true,
                (_, Some(_)) => false,
                (None, None) => return None,
            };
            if !fresh_first {
                let kept = self.tree.next()?;
                return Some(kept.map_err(|error| disk::failed("reading the index", error)));
            }
            let (key, value) = self.ahead.pop_front()?;
            let row = value.map(|value| (IVec::from(key.as_slice()), value));
            self.go_on_behind(key);
            if let Some(row) = row {
                return Some(Ok(row));
            }
        }
    }
}
