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
    /// A key that says everything by itself, if it is not there.
    MarkNew(u8),
    Delete(u8),
    Commit,
    RollBack,
    Take,
    Land,
    Forget,
    BeginCheckpoint,
    EndCheckpoint,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..16u8, any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        4 => (0..16u8).prop_map(Step::MarkNew),
        5 => (0..16u8).prop_map(Step::Delete),
        2 => Just(Step::Commit),
        2 => Just(Step::RollBack),
        1 => Just(Step::Take),
        1 => Just(Step::Land),
        1 => Just(Step::Forget),
        1 => Just(Step::BeginCheckpoint),
        1 => Just(Step::EndCheckpoint),
    ];
    proptest::collection::vec(step, 0..120)
}

fn durable_rows(durable: &Pending) -> BTreeMap<Vec<u8>, Vec<u8>> {
    durable.iter().filter_map(|(key, written)| Some((key.to_vec(), written.value()?.to_vec()))).collect()
}

/// What a checkpoint does to the tree.
fn pour(base: &Base, rows: &Pending) {
    for (key, written) in rows {
        let poured = match written.value() {
            Some(value) => base.tree().insert(key, value),
            None => base.tree().remove(key),
        };
        poured.expect("a temporary tree takes a row");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pending_writes_cover_the_tree_and_a_failed_transition_leaves_none(steps in steps(), after in 0..16u8) {
        let db = ::sled::Config::new().temporary(true).flush_every_ms(None).open().expect("a temporary tree");
        let base = Arc::new(Base::new(db, Pending::new()));
        let mut draft = Draft::new(base.clone(), 0);
        let (mut taken, mut old, mut durable) = (None::<Arc<Pending>>, None::<Arc<Pending>>, Pending::new());
        let mut committed: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut present = committed.clone();
        for step in steps {
            match step {
                Step::Put(number, value) => {
                    draft.put_raw(key(number), &[value]);
                    present.insert(key(number).into_bytes(), vec![value]);
                }
                Step::MarkNew(number) => {
                    if !present.contains_key(key(number).as_bytes()) {
                        draft.mark_new(key(number));
                        present.insert(key(number).into_bytes(), Vec::new());
                    }
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
                Step::Take if taken.is_none() => {
                    taken = draft.take();
                    committed = present.clone();
                }
                Step::Land => {
                    if let Some(rows) = taken.take() {
                        base.add(&rows);
                        draft.landed();
                        durable.extend(rows.iter().map(|(key, value)| (key.clone(), value.clone())));
                    }
                }
                Step::Forget => {
                    taken = None;
                    draft.forget();
                    present = durable_rows(&durable);
                    committed = present.clone();
                }
                Step::BeginCheckpoint if old.is_none() => old = Some(base.begin_checkpoint()),
                Step::EndCheckpoint => {
                    if let Some(rows) = old.take() {
                        pour(&base, &rows);
                        base.end_checkpoint();
                    }
                }
                Step::Take | Step::BeginCheckpoint => {}
            }
            prop_assert_eq!(seen(Rows::of(&base), None), durable_rows(&durable).into_iter().collect::<Vec<_>>());
            let all: Vec<_> = present.clone().into_iter().collect();
            prop_assert_eq!(seen(draft.rows(), None), all.clone());
            let behind: Vec<_> = all.into_iter().filter(|(one, _)| one.as_slice() > key(after).as_bytes()).collect();
            prop_assert_eq!(seen(draft.rows(), Some(after)), behind);
        }
    }
}
