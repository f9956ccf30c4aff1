//! Rows that are in the journal, and in the tree only after the next checkpoint; under them, the tree.
//!
//! There are two layers over the tree: one takes what becomes durable, the other one is on its way into the tree. What is in none of them
//! is in the tree already, so whoever looks into the layers first and into the tree then misses nothing that is there all the while.

use std::collections::{BTreeMap, btree_map::Entry, vec_deque::VecDeque};
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ::sled::{Db, IVec, Tree};

use super::disk;
use crate::error::StorageError;

/// Rows that were written.
pub(super) type Pending = BTreeMap<IVec, Written>;

/// What was written of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    /// It is no more.
    Gone,
    /// It is this.
    Put(IVec),
    /// It is this, and was not there before: where it goes before the tree has it, nothing is left to be written.
    New(IVec),
}

impl Written {
    pub(super) fn value(&self) -> Option<&IVec> {
        match self {
            Self::Gone => None,
            Self::Put(value) | Self::New(value) => Some(value),
        }
    }

    /// What the two come to, this one being the earlier; `None` if that is nothing.
    fn then(&self, later: Self) -> Option<Self> {
        match (self, later) {
            (Self::New(_), Self::Gone) => None,
            (Self::New(_), Self::Put(value)) => Some(Self::New(value)),
            (Self::Gone | Self::Put(_), Self::New(value)) => Some(Self::Put(value)),
            (_, later) => Some(later),
        }
    }
}

/// Writes to rows that may have been written before; says what was there.
pub(super) fn write(rows: &mut Pending, key: IVec, written: Written) -> Option<Written> {
    match rows.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(written);
            None
        }
        Entry::Occupied(mut entry) => Some(match entry.get().then(written) {
            Some(both) => entry.insert(both),
            None => entry.remove(),
        }),
    }
}

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
        let layers = &mut *layers;
        for (key, written) in rows {
            let before = write(&mut layers.young, key.clone(), written.clone());
            let freed = before.map_or(0, |before| bytes_of((key, &before)));
            let taken = layers.young.get(key).map_or(0, |now| bytes_of((key, now)));
            layers.young_bytes = (layers.young_bytes + taken).saturating_sub(freed);
        }
    }

    /// About how much memory the rows take that no checkpoint has begun to write.
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
            return Ok(written.value().cloned());
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
        let last = |rows: &Pending| rows.range::<[u8], _>(bounds).next_back().map(|(key, _)| key.to_vec());
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

fn bytes_of((key, written): (&IVec, &Written)) -> u64 {
    BESIDE + key.len() as u64 + written.value().map_or(0, |value| value.len() as u64)
}

/// Rows in the order of their keys, each as it is when the walk comes near it.
pub(super) struct Walk<'a> {
    base: &'a Base,
    /// Made anew each time that the layers are read, and only then: what left them since is in the tree, and might not be in what an
    /// older walk of the tree has read ahead.
    tree: Peekable<::sled::Iter>,
    /// The next rows of the layers.
    ahead: VecDeque<(IVec, Option<IVec>)>,
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
            let Some((key, written)) = row else {
                break;
            };
            self.ahead.push_back((key.clone(), written.value().cloned()));
        }
        drop(layers);
        self.more = if self.ahead.len() < self.more { 0 } else { (self.more * 2).min(MOST_AHEAD) };
        self.tree = self.base.db.range(self.from.as_slice()..self.end.as_slice()).peekable();
    }

    /// Goes on behind the last row of the layers that was read.
    fn go_on_behind(&mut self, key: &[u8]) {
        if self.ahead.is_empty() && self.more > 0 {
            self.from = [key, &[0]].concat();
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
                    if fresh == kept {
                        self.tree.next();
                        continue;
                    }
                    fresh < kept
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
            self.go_on_behind(&key);
            if let Some(value) = value {
                return Some(Ok((key, value)));
            }
        }
    }
}
