use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use super::*;

/// No wait in here takes so long, unless somebody waits for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// A disk whose syncs end when, and as, they are told to; a draft is a count of writes, those before and those since the last was taken.
struct Scripted {
    kept: Mutex<u32>,
    /// How much is durable after each sync, said when it begins.
    began: Sender<u32>,
    ends: Mutex<Receiver<End>>,
}

/// How a sync ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Kept,
    Full,
    Broken,
}

impl Disk for Scripted {
    type Draft = u32;
    type Group = u32;

    fn take(&self, draft: &mut u32) -> Option<u32> {
        let wrote = mem::take(draft);
        (wrote > 0).then_some(wrote)
    }

    fn keep(&self, group: u32) -> Result<(), Trouble> {
        let mut kept = self.kept.lock().expect("no panic");
        self.began.send(*kept + group).expect("somebody looks");
        let full = StorageError::Full { store: "index" };
        match self.ends.lock().expect("no panic").recv_timeout(PATIENCE).expect("an end for each sync") {
            End::Kept => *kept += group,
            End::Full => return Err(Trouble::Refused(full)),
            End::Broken => return Err(Trouble::Broken(full)),
        }
        Ok(())
    }

    fn landed(&self, _: &mut u32) {}

    fn forget(&self, draft: &mut u32) {
        *draft = 0;
    }
}

/// When syncs begin and with how much, and the way to end one.
struct Stage {
    syncs: Syncs<Scripted>,
    began: Receiver<u32>,
    end: Sender<End>,
}

struct Caller(u32, Sender<(u32, bool)>);

impl Waiting for Caller {
    fn answer(self: Box<Self>, durable: Result<(), StorageError>) {
        self.1.send((self.0, durable.is_ok())).expect("somebody listens");
    }
}

fn stage() -> Stage {
    let ((began, looked), (end, ends)) = (mpsc::channel(), mpsc::channel());
    let disk = Scripted { kept: Mutex::default(), began, ends: Mutex::new(ends) };
    Stage { syncs: Syncs::start(disk, 0).expect("a thread"), began: looked, end }
}

impl Stage {
    /// Adds one caller, as one of many; what it hears goes to `heard`.
    fn add(&self, caller: u32, writes: u32, heard: &Sender<(u32, bool)>) {
        add(&self.syncs, caller, writes, true, heard);
    }

    fn began(&self) -> u32 {
        self.began.recv_timeout(PATIENCE).expect("a sync begins")
    }
}

fn add<D: Disk<Draft = u32>>(syncs: &Syncs<D>, caller: u32, writes: u32, more: bool, heard: &Sender<(u32, bool)>) {
    let act = |draft: &mut u32| {
        *draft += writes;
        vec![Box::new(Caller(caller, heard.clone())) as Box<dyn Waiting>]
    };
    syncs.add(act, || more);
}

fn hear(heard: &Receiver<(u32, bool)>) -> (u32, bool) {
    heard.recv_timeout(PATIENCE).expect("an answer")
}

#[test]
fn what_comes_during_a_sync_shares_the_next_one() {
    let (stage, (says, heard)) = (stage(), mpsc::channel());
    stage.add(1, 1, &says);
    assert_eq!(stage.began(), 1);
    stage.add(2, 1, &says);
    stage.add(3, 1, &says);

    stage.end.send(End::Kept).expect("it waits");

    assert_eq!(hear(&heard), (1, true));
    assert_eq!(stage.began(), 3, "one sync has both");
    assert!(heard.try_recv().is_err(), "nobody is answered before it ends");
    stage.end.send(End::Kept).expect("it waits");
    assert_eq!((hear(&heard), hear(&heard)), ((2, true), (3, true)));
}

#[test]
fn a_failed_sync_fails_everybody_after_it() {
    let (stage, (says, heard)) = (stage(), mpsc::channel());
    stage.add(1, 1, &says);
    assert_eq!(stage.began(), 1);
    stage.add(2, 1, &says);

    stage.end.send(End::Broken).expect("it waits");

    assert_eq!((hear(&heard), hear(&heard)), ((1, false), (2, false)));
    stage.add(3, 1, &says);
    assert_eq!(hear(&heard), (3, false));
    stage.add(4, 0, &says);
    assert_eq!(hear(&heard), (4, false), "it may have seen what is not durable");
    assert!(stage.began.try_recv().is_err(), "nothing is synced any more");
}

#[test]
fn a_full_disk_refuses_everybody_who_has_seen_what_it_did_not_take_and_nobody_after_them() {
    let (stage, (says, heard)) = (stage(), mpsc::channel());
    stage.add(1, 1, &says);
    assert_eq!(stage.began(), 1);
    stage.add(2, 1, &says);
    stage.add(3, 0, &says);

    stage.end.send(End::Full).expect("it waits");

    assert_eq!((hear(&heard), hear(&heard), hear(&heard)), ((1, false), (2, false), (3, false)));
    stage.add(4, 1, &says);
    assert_eq!(stage.began(), 1, "nothing of what was refused comes later");
    stage.end.send(End::Kept).expect("it waits");
    assert_eq!(hear(&heard), (4, true));
}

#[test]
fn who_wrote_nothing_is_answered_after_what_it_has_seen() {
    let (stage, (says, heard)) = (stage(), mpsc::channel());
    stage.add(1, 1, &says);
    assert_eq!(stage.began(), 1);
    stage.add(2, 0, &says);
    assert!(heard.try_recv().is_err());

    stage.end.send(End::Kept).expect("it waits");

    assert_eq!((hear(&heard), hear(&heard)), ((1, true), (2, true)));
    assert!(stage.began.try_recv().is_err(), "it needs no sync of its own");
}

#[test]
fn one_that_is_alone_is_answered_by_the_writer_itself() {
    let (stage, (says, heard)) = (stage(), mpsc::channel());
    stage.end.send(End::Kept).expect("it will wait");

    add(&stage.syncs, 1, 1, false, &says);

    assert_eq!(heard.try_recv().ok(), Some((1, true)));
}

#[test]
fn half_of_a_transition_is_never_applied() {
    let (stage, (says, heard)) = (stage(), mpsc::channel());
    stage.add(1, 1, &says);
    assert_eq!(stage.began(), 1);
    let half = |draft: &mut u32| {
        *draft += 1;
        std::panic::resume_unwind(Box::new("in the middle of it"))
    };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stage.syncs.add(half, || true)));
    assert!(panicked.is_err());
    stage.add(2, 1, &says);

    stage.end.send(End::Kept).expect("it waits");

    assert_eq!((hear(&heard), hear(&heard)), ((1, true), (2, false)));
    assert!(stage.began.try_recv().is_err());
}

#[test]
fn a_crowd_that_comes_back_is_waited_for_and_another_one_rarely() {
    let last_sync = Duration::from_millis(3);
    let mut crowd = Crowd { expected: 16, last_sync, ..Crowd::default() };
    for _ in 0..3 {
        assert_eq!(crowd.patience(), Some(last_sync / PART));
        crowd.waited(true);
    }
    for rests in [1, 2, 4, 8, 16, 32, 64, 64] {
        assert!(crowd.patience().is_some());
        crowd.waited(false);
        assert_eq!((0..rests).filter(|_| crowd.patience().is_none()).count(), rests);
    }
    assert!(crowd.patience().is_some());
    crowd.waited(true);
    assert!(crowd.patience().is_some(), "they are back");
    let stalled = Crowd { expected: 16, last_sync: Duration::from_secs(60), ..Crowd::default() }.patience();
    assert_eq!(stalled, Some(LONGEST));
    assert_eq!(Crowd { expected: 1, last_sync, ..Crowd::default() }.patience(), None, "nobody else is there");
}

#[test]
fn closing_waits_until_everybody_was_answered() {
    let (Stage { syncs, began, end }, (says, heard)) = (stage(), mpsc::channel());
    for caller in 0..3 {
        end.send(End::Kept).expect("it will wait");
        add(&syncs, caller, 1, true, &says);
    }

    drop(syncs);

    assert_eq!(heard.try_iter().count(), 3);
    drop(began);
}

#[test]
fn nobody_waits_for_a_thread_that_panicked() {
    struct Panics;
    impl Disk for Panics {
        type Draft = u32;
        type Group = ();
        fn take(&self, _: &mut u32) -> Option<()> {
            std::panic::resume_unwind(Box::new("a disk that panics"));
        }
        fn keep(&self, (): ()) -> Result<(), Trouble> {
            Ok(())
        }
        fn landed(&self, _: &mut u32) {}
        fn forget(&self, _: &mut u32) {}
    }
    let (syncs, (says, heard)) = (Syncs::start(Panics, 0).expect("a thread"), mpsc::channel());
    for caller in 0..3 {
        add(&syncs, caller, 1, true, &says);
    }
    drop(says);
    let gone = heard.recv_timeout(PATIENCE);
    assert_eq!(gone, Err(mpsc::RecvTimeoutError::Disconnected), "each is let go, and none is told that it is durable");
}
