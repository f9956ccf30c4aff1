use std::fs::File;
use std::os::unix::fs::FileExt;

use ::sled::IVec;
use tempfile::TempDir;

use super::segment::{HEAD, SECTOR};
use super::*;
use crate::index::sled::fresh::Written;

/// A group of rows that says its number; some are longer than a sector.
fn group(number: u64) -> Pending {
    let value = format!("{number} ").repeat(1 + 170 * (number as usize % 4));
    let mut rows = Pending::new();
    rows.insert(format!("key {}", number % 3).as_str().into(), Written::Put(value.as_str().into()));
    rows.insert(format!("own {number}").as_str().into(), Written::Put(IVec::default()));
    rows.insert(format!("own {}", number.wrapping_sub(2)).as_str().into(), Written::Gone);
    rows
}

/// What the groups up to this one leave, removals included.
fn after(last: u64) -> Pending {
    (1..=last).flat_map(group).collect()
}

fn open(folder: &TempDir, noted: Option<u64>) -> Result<(Journal, Pending), StorageError> {
    Journal::open(folder.path(), noted)
}

fn append(journal: &mut Journal, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        journal.append(&group(number)).expect("a disk with room");
    }
}

/// A folder with one segment of so many records.
fn written(records: u64) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let (mut journal, rows) = open(&folder, None).expect("an empty folder");
    assert!(rows.is_empty());
    append(&mut journal, 1..=records);
    folder
}

fn file(folder: &TempDir, number: u64) -> File {
    let path = folder.path().join(format!("journal-{number}"));
    File::options().read(true).write(true).open(path).expect("the segment is there")
}

/// Where each record begins, and where the last one ends with its end mark.
fn places(records: u64) -> (Vec<u64>, u64) {
    let (mut places, mut at, mut end, mut record) = (Vec::new(), SECTOR as u64, 0, Vec::new());
    for number in 1..=records {
        segment::encode(&mut record, number, &group(number)).expect("a small group");
        places.push(at);
        end = at + record.iter().rposition(|byte| *byte == segment::END).expect("an end mark") as u64 + 1;
        at += record.len() as u64;
    }
    (places, end)
}

fn assert_refused(opened: Result<(Journal, Pending), StorageError>, what: &str) {
    match opened {
        Err(StorageError::Corrupt { reason, .. }) => assert!(reason.starts_with("the journal is damaged"), "{reason}"),
        other => unreachable!("{what}: {other:?}"),
    }
}

#[test]
fn records_come_back_in_their_order_through_openings_and_segments() {
    let folder = TempDir::new().expect("a folder");
    for opening in 0..4 {
        let (mut journal, rows) = open(&folder, None).expect("our own journal");
        assert_eq!(rows, after(opening * 10));
        append(&mut journal, opening * 10 + 1..=opening * 10 + 5);
        if opening % 2 == 1 {
            journal.begin_segment().expect("a disk with room");
        }
        append(&mut journal, opening * 10 + 6..=opening * 10 + 10);
    }
    for _ in 0..2 {
        assert_eq!(open(&folder, None).expect("our own journal").1, after(40), "twice is once");
    }
}

#[test]
fn what_the_tree_has_is_not_read_again() {
    let folder = written(10);
    let (_, rows) = open(&folder, Some(8)).expect("our own journal");
    assert_eq!(rows, group(9).into_iter().chain(group(10)).collect());
}

#[test]
fn a_record_longer_than_the_room_that_is_made_at_a_time_comes_back() {
    let folder = TempDir::new().expect("a folder");
    let large: Pending = [("large".into(), Written::Put(vec![7; 5 << 20].into()))].into();
    let (mut journal, _) = open(&folder, None).expect("an empty folder");
    append(&mut journal, [1]);
    journal.append(&large).expect("a disk with room");
    append(&mut journal, [3]);
    assert!(journal.bytes() > 5 << 20);

    let (_, rows) = open(&folder, None).expect("our own journal");
    assert_eq!(rows, group(1).into_iter().chain(large).chain(group(3)).collect());
}

#[test]
fn a_last_record_that_was_written_in_part_is_dropped_wherever_it_was_torn() {
    for records in 1..=4 {
        let (places, end) = places(records);
        let last = *places.last().expect("there is one");
        for torn in last..end {
            // As a killed process leaves it: zeros from there on, or nothing.
            let folder = written(records);
            let file = file(&folder, 1);
            let length = file.metadata().expect("a file").len();
            file.set_len(torn).expect("a file");
            for whole in [torn, length] {
                file.set_len(whole).expect("a file");
                let (mut journal, rows) = open(&folder, None).expect("a torn record is no damage");
                assert_eq!(rows, after(records - 1), "{records} records, torn at {torn}, {whole} long");
                if torn % 97 == 0 {
                    append(&mut journal, [records]);
                    assert_eq!(open(&folder, None).expect("our own journal").1, after(records));
                    fs::remove_file(folder.path().join("journal-2"))
                        .or_else(|_| fs::remove_file(folder.path().join("journal-3")))
                        .expect("a file");
                }
            }
        }
    }
}

#[test]
fn a_last_record_of_which_any_sector_is_missing_is_dropped() {
    let (places, end) = places(3);
    for sector in (places[2]..end).step_by(SECTOR) {
        let folder = written(3);
        file(&folder, 1).write_all_at(&[0; SECTOR], sector).expect("a file");
        assert_eq!(open(&folder, None).expect("a torn record is no damage").1, after(2), "{sector}");
    }
}

#[test]
fn a_byte_that_changed_in_any_record_is_refused() {
    let (places, end) = places(3);
    let folder = written(3);
    let file = file(&folder, 1);
    let mut before = vec![0; end as usize];
    file.read_exact_at(&mut before, 0).expect("a file");
    let ends = |place: usize| before[..place].iter().rposition(|byte| *byte == segment::END).expect("an end mark");
    let of_records = places.iter().enumerate().flat_map(|(record, begins)| {
        let next = places.get(record + 1).map_or(end as usize, |next| *next as usize);
        *begins as usize..=ends(next)
    });
    for at in of_records.chain(0..36) {
        file.write_all_at(&[before[at] ^ 0x10], at as u64).expect("a file");
        assert_refused(open(&folder, None), &format!("byte {at} of {}", before.len()));
        file.write_all_at(&[before[at]], at as u64).expect("a file");
    }
    assert_eq!(open(&folder, None).expect("our own journal").1, after(3), "nothing else was done to it");
}

#[test]
fn a_record_that_is_missing_before_others_is_refused() {
    let (places, _) = places(3);
    let folder = written(3);
    file(&folder, 1).write_all_at(&vec![0; (places[2] - places[1]) as usize], places[1]).expect("a file");
    assert_refused(open(&folder, None), "a record of zeros");

    let folder = written(3);
    let (mut journal, _) = open(&folder, None).expect("our own journal");
    append(&mut journal, [4]);
    file(&folder, 1).set_len(places[2] + HEAD as u64).expect("a file");
    assert_refused(open(&folder, None), "a record that another segment follows");
}

#[test]
fn a_segment_that_is_missing_is_refused() {
    let folder = written(3);
    for number in [4, 5] {
        let (mut journal, _) = open(&folder, None).expect("our own journal");
        append(&mut journal, [number]);
    }
    let remove = |number: u64| fs::remove_file(folder.path().join(format!("journal-{number}"))).expect("a file");
    assert_eq!(open(&folder, Some(3)).expect("our own journal").1, group(4).into_iter().chain(group(5)).collect());
    remove(2);
    assert_refused(open(&folder, None), "one in the middle");
    remove(1);
    assert_refused(open(&folder, Some(3)), "the first one");
    assert_eq!(open(&folder, Some(4)).expect("the tree has what they had").1, group(5));
    remove(3);
    assert_refused(open(&folder, Some(4)), "all of them");
}

#[test]
fn a_checkpoint_that_was_cut_leaves_a_journal_that_opens() {
    let folder = written(3);
    let (mut journal, _) = open(&folder, None).expect("our own journal");
    append(&mut journal, [4, 5]);
    let ended = journal.begin_segment().expect("a disk with room");
    append(&mut journal, [6]);
    assert_eq!(ended.last, 5);
    // The tree has part of it or all of it, and has not noted it, or has.
    assert_eq!(open(&folder, None).expect("both are there").1, after(6));
    assert_eq!(open(&folder, Some(5)).expect("both are there").1, group(6));
    fs::write(folder.path().join("journal-9.new"), "half").expect("a file");
    fs::remove_file(&ended.segments[0]).expect("the first of them");
    assert_eq!(open(&folder, Some(5)).expect("one of them is gone").1, group(6));
    assert!(!folder.path().join("journal-9.new").exists());
    fs::remove_file(&ended.segments[1]).expect("the second of them");
    assert_eq!(open(&folder, Some(5)).expect("both are gone").1, group(6));
}
