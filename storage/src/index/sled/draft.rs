//! What a transition sees and does: rows as they are, under writes that are not in the tree yet.

use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;

use ::sled::{Batch, IVec, Tree};
use serde::Serialize;

use super::disk;
use super::keys::Key;
use crate::error::StorageError;
use crate::index::codec;

/// Writes that are not in the tree yet; `None` removes the key.
type Pending = BTreeMap<Vec<u8>, Option<IVec>>;

/// What a reader has pending: nothing.
static NOTHING: Pending = BTreeMap::new();

/// The rows: those of the tree, and over them what is pending.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    tree: &'a Tree,
    pending: &'a Pending,
}

impl<'a> Rows<'a> {
    /// The rows as they are in the tree.
    pub(super) fn of(tree: &'a Tree) -> Self {
        Self { tree, pending: &NOTHING }
    }

    pub(super) fn get(self, key: &Key) -> Result<Option<IVec>, StorageError> {
        match self.pending.get(key.as_bytes()) {
            Some(written) => Ok(written.clone()),
            None => self.tree.get(key.as_bytes()).map_err(|error| disk::failed("reading the index", error)),
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
        Scan {
            pending: self.pending.range(from.clone()..end.clone()).peekable(),
            kept: self.tree.range(from..end).peekable(),
        }
    }
}

/// Rows in the order of their keys, with what is pending over what is in the tree.
pub(super) struct Scan<'a> {
    pending: Peekable<btree_map::Range<'a, Vec<u8>, Option<IVec>>>,
    kept: Peekable<::sled::Iter>,
}

impl Iterator for Scan<'_> {
    type Item = Result<(IVec, IVec), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let written_first = match (self.pending.peek(), self.kept.peek()) {
                (Some((written, _)), Some(Ok((kept, _)))) => {
                    if written.as_slice() == kept.as_ref() {
                        self.kept.next();
                        continue;
                    }
                    written.as_slice() < kept.as_ref()
                }
                (Some(_), None) => true,
                (_, Some(_)) => false,
                (None, None) => return None,
            };
            if !written_first {
                let kept = self.kept.next()?;
                return Some(kept.map_err(|error| disk::failed("reading the index", error)));
            }
            if let Some((key, Some(value))) = self.pending.next() {
                return Some(Ok((IVec::from(key.as_slice()), value.clone())));
            }
        }
    }
}

/// The writes of a group of transitions, one after the other: each sees those before it, and leaves nothing if it fails.
pub(super) struct Draft {
    tree: Tree,
    pending: Pending,
    /// What the present transition wrote over, newest last.
    undo: Vec<(Vec<u8>, Option<Option<IVec>>)>,
    /// The number of the next audit event that waits for its place.
    next_event: u64,
}

impl Draft {
    pub(super) fn new(tree: Tree, next_event: u64) -> Self {
        Self { tree, pending: Pending::new(), undo: Vec::new(), next_event }
    }

    pub(super) fn rows(&self) -> Rows<'_> {
        Rows { tree: &self.tree, pending: &self.pending }
    }

    pub(super) fn put<T: Serialize>(&mut self, key: Key, row: &T) {
        self.write(key, Some(codec::encode(row).into()));
    }

    /// Writes a key that says everything by itself.
    pub(super) fn mark(&mut self, key: Key) {
        self.write(key, Some(IVec::default()));
    }

    pub(super) fn delete(&mut self, key: Key) {
        self.write(key, None);
    }

    pub(super) fn put_raw(&mut self, key: Key, raw: &[u8]) {
        self.write(key, Some(raw.into()));
    }

    /// A number greater than those of all events that wait.
    pub(super) fn number_event(&mut self) -> u64 {
        self.next_event += 1;
        self.next_event - 1
    }

    fn write(&mut self, key: Key, value: Option<IVec>) {
        let key = key.into_bytes();
        let before = self.pending.insert(key.clone(), value);
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
                Some(value) => self.pending.insert(key, value),
                None => self.pending.remove(&key),
            };
        }
    }

    /// Everything the group wrote, as one batch; `None` if that is nothing.
    pub(super) fn take_batch(&mut self) -> Option<Batch> {
        self.undo.clear();
        if self.pending.is_empty() {
            return None;
        }
        let mut batch = Batch::default();
        for (key, value) in std::mem::take(&mut self.pending) {
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::keys::Space;
    use super::*;

    fn key(number: u8) -> Key {
        Key::waiting(u64::from(number))
    }

    fn seen(rows: Rows<'_>, after: Option<u8>) -> Vec<(Vec<u8>, Vec<u8>)> {
        rows.scan_after(&Key::space(Space::Waiting), after.map(key).as_ref())
            .map(|row| row.expect("a temporary tree reads"))
            .map(|(key, value)| (key.to_vec(), value.to_vec()))
            .collect()
    }

    #[derive(Debug, Clone)]
    enum Step {
        Put(u8, u8),
        Delete(u8),
        Commit,
        RollBack,
        Apply,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..16u8, any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
            3 => (0..16u8).prop_map(Step::Delete),
            2 => Just(Step::Commit),
            2 => Just(Step::RollBack),
            1 => Just(Step::Apply),
        ];
        proptest::collection::vec(step, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pending_writes_cover_the_tree_and_a_failed_transition_leaves_none(steps in steps(), after in 0..16u8) {
            let db = ::sled::Config::new().temporary(true).flush_every_ms(None).open().expect("a temporary tree");
            let mut draft = Draft::new((*db).clone(), 0);
            let mut committed: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            let mut present = committed.clone();
            for step in steps {
                match step {
                    Step::Put(number, value) => {
                        draft.put_raw(key(number), &[value]);
                        present.insert(key(number).into_bytes(), vec![value]);
                    }
                    Step::Delete(number) => {
                        draft.delete(key(number));
                        present.remove(key(number).as_bytes());
                    }
                    Step::Commit => {
                        draft.begin();
                        committed = present.clone();
                    }
                    Step::RollBack => {
                        draft.roll_back();
                        present = committed.clone();
                    }
                    Step::Apply => {
                        if let Some(batch) = draft.take_batch() {
                            db.apply_batch(batch).expect("a temporary tree takes a batch");
                        }
                        committed = present.clone();
                    }
                }
                let all: Vec<_> = present.clone().into_iter().collect();
                prop_assert_eq!(seen(draft.rows(), None), all.clone());
                let behind: Vec<_> = all.into_iter().filter(|(one, _)| one.as_slice() > key(after).as_bytes()).collect();
                prop_assert_eq!(seen(draft.rows(), Some(after)), behind);
            }
        }
    }
}
