//! What a transition sees and does: rows as they are, under writes that are not in the tree yet.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use ::sled::IVec;

use super::fresh::{self, Base, Pending, Walk, Written};
use super::keys::Key;
use super::packed::Row;
use crate::error::StorageError;

/// What a reader has pending: nothing.
static NOTHING: Pending = BTreeMap::new();

/// The rows: those that are durable, over them what is about to be, and over that what is pending.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    base: &'a Base,
    leaving: &'a Pending,
    pending: &'a Pending,
}

impl<'a> Rows<'a> {
    /// The rows as they are.
    pub(super) fn of(base: &'a Base) -> Self {
        Self { base, leaving: &NOTHING, pending: &NOTHING }
    }

    pub(super) fn get(self, key: &Key) -> Result<Option<IVec>, StorageError> {
        let key = key.as_bytes();
        match self.pending.get(key).or_else(|| self.leaving.get(key)) {
            Some(written) => Ok(written.value().cloned()),
            None => self.base.get(key),
        }
    }

    /// Every row whose key begins so, in the order of the keys.
    pub(super) fn scan(self, prefix: &Key) -> Scan<'a> {
        self.range(prefix.clone().into_bytes(), prefix.end())
    }

    /// The same, but only those whose key is greater than `after`.
    pub(super) fn scan_after(self, prefix: &Key, after: Option<&Key>) -> Scan<'a> {
        let from = match after {
            // A zero byte behind a key makes the first key that is greater.
            Some(key) => [key.as_bytes(), &[0]].concat(),
            None => prefix.clone().into_bytes(),
        };
        self.range(from, prefix.end())
    }

    /// Every row from the beginning of the prefix up to, and without, `end`.
    pub(super) fn scan_until(self, prefix: &Key, end: &Key) -> Scan<'a> {
        self.range(prefix.clone().into_bytes(), end.clone().into_bytes())
    }

    fn range(self, from: Vec<u8>, end: Vec<u8>) -> Scan<'a> {
        // A cursor from outside may lie behind the range, and a map panics at a range that ends before it begins.
        let end = end.max(from.clone());
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(end.as_slice()));
        Scan {
            pending: self.pending.range::<[u8], _>(bounds).peekable(),
            leaving: self.leaving.range::<[u8], _>(bounds).peekable(),
            kept: self.base.range(from, end).peekable(),
        }
    }
}

type Layer<'a> = Peekable<btree_map::Range<'a, IVec, Written>>;

/// Rows in the order of their keys, with what is pending over what is about to be durable, and that over what is.
pub(super) struct Scan<'a> {
    pending: Layer<'a>,
    leaving: Layer<'a>,
    kept: Peekable<Walk<'a>>,
}

impl Iterator for Scan<'_> {
    type Item = Result<(IVec, IVec), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((key, written)) = next_of(&mut self.pending, &mut self.leaving, self.kept.peek()) else {
                return self.kept.next();
            };
            if matches!(self.kept.peek(), Some(Ok((kept, _))) if kept == key) {
                self.kept.next();
            }
            if let Some(value) = written.value() {
                return Some(Ok((key.clone(), value.clone())));
            }
        }
    }
}

/// The next row of the two layers, if it does not come behind the one that is kept.
fn next_of<'a>(
    upper: &mut Layer<'a>,
    lower: &mut Layer<'a>,
    kept: Option<&Result<(IVec, IVec), StorageError>>,
) -> Option<(&'a IVec, &'a Written)> {
    let order = match (upper.peek(), lower.peek()) {
        (Some((one, _)), Some((other, _))) => one.cmp(other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => return None,
    };
    let first = if order.is_le() { upper.peek() } else { lower.peek() };
    let first = first.map(|(key, _)| *key)?;
    match kept {
        Some(Ok((kept, _))) if kept < first => return None,
        Some(Err(_)) => return None,
        _ => {}
    }
    if order.is_eq() {
        lower.next();
    }
    if order.is_le() { upper.next() } else { lower.next() }
}

/// The writes of a group of transitions, one after the other: each sees those before it, and leaves nothing if it fails.
pub(super) struct Draft {
    base: Arc<Base>,
    /// The group before this one, until it is durable.
    leaving: Arc<Pending>,
    pending: Pending,
    /// What the present transition wrote over, newest last.
    undo: Vec<(IVec, Option<Written>)>,
    /// For rows on their way.
    buffer: Vec<u8>,
    /// The number of the next audit event that waits for its place.
    next_event: u64,
}

impl Draft {
    pub(super) fn new(base: Arc<Base>, next_event: u64) -> Self {
        Self {
            base,
            leaving: Arc::default(),
            pending: Pending::new(),
            undo: Vec::new(),
            buffer: Vec::new(),
            next_event,
        }
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        Rows { base: &self.base, leaving: &self.leaving, pending: &self.pending }
    }

    pub(super) fn put<T: Row>(&mut self, key: Key, row: &T) {
        let value = self.encode(row);
        self.write(key, Written::Put(value));
    }

    /// Writes a row that is not there: whoever writes it knows.
    pub(super) fn put_new<T: Row>(&mut self, key: Key, row: &T) {
        let value = self.encode(row);
        self.write(key, Written::New(value));
    }

    fn encode<T: Row>(&mut self, row: &T) -> IVec {
        self.buffer.clear();
        row.write(&mut self.buffer);
        IVec::from(self.buffer.as_slice())
    }

    /// The same of a key that says everything by itself.
    pub(super) fn mark_new(&mut self, key: Key) {
        self.write(key, Written::New(IVec::default()));
    }

    /// Writes a key that says everything by itself.
    pub(super) fn mark(&mut self, key: Key) {
        self.write(key, Written::Put(IVec::default()));
    }

    pub(super) fn delete(&mut self, key: Key) {
        self.write(key, Written::Gone);
    }

    pub(super) fn put_raw(&mut self, key: Key, raw: &[u8]) {
        self.write(key, Written::Put(raw.into()));
    }

    /// A number greater than those of all events that wait.
    pub(super) fn number_event(&mut self) -> u64 {
        self.next_event += 1;
        self.next_event - 1
    }

    fn write(&mut self, key: Key, written: Written) {
        let key = IVec::from(key.into_bytes());
        let before = fresh::write(&mut self.pending, key.clone(), written);
        self.undo.push((key, before));
    }

    /// Begins the next transition.
    pub(super) fn begin(&mut self) {
        self.undo.clear();
    }

    /// Whether the present transition wrote anything.
    pub(super) fn wrote(&self) -> bool {
        !self.undo.is_empty()
    }

    /// Takes back what the present transition wrote.
    pub(super) fn roll_back(&mut self) {
        while let Some((key, before)) = self.undo.pop() {
            match before {
                Some(written) => self.pending.insert(key, written),
                None => self.pending.remove(&key),
            };
        }
    }

    /// Everything the group wrote; `None` if that is nothing. The draft sees it until it is told that everybody does.
    pub(super) fn take(&mut self) -> Option<Arc<Pending>> {
        self.undo.clear();
        if self.pending.is_empty() {
            return None;
        }
        self.leaving = Arc::new(mem::take(&mut self.pending));
        Some(self.leaving.clone())
    }

    /// What was taken is durable, and everybody sees it.
    pub(super) fn landed(&mut self) {
        self.leaving = Arc::default();
    }

    /// What was taken never was, nor what was written since by those who saw it.
    pub(super) fn forget(&mut self) {
        self.leaving = Arc::default();
        self.pending.clear();
        self.undo.clear();
    }
}

#[cfg(test)]
mod tests;
