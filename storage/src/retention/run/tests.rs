//! When a run ends, and what it becomes.

use super::*;

fn day(n: i64) -> Timestamp {
    Timestamp::from_second(n * 86_400).expect("a time in range")
}

fn terms() -> Terms {
    Terms {
        default_run_log: SignedDuration::from_hours(30 * 24),
        unreferenced: SignedDuration::from_hours(24),
        grace: SignedDuration::ZERO,
        tombstone_bytes: SignedDuration::from_hours(24),
        tombstone_record: SignedDuration::from_hours(90 * 24),
    }
}

fn put() -> RunUpdate {
    RunUpdate {
        id: RunId::parse("run-1").expect("a run"),
        log_retain_until: None,
        log_retention_seconds: None,
        status: None,
        fork_of: None,
        workflow_id: None,
    }
}

fn until(at: Timestamp) -> RunUpdate {
    RunUpdate { log_retain_until: Some(Some(at)), ..put() }
}

fn seconds(days: i64) -> RunUpdate {
    RunUpdate { log_retention_seconds: Some(days * 86_400), ..put() }
}

fn closing(update: RunUpdate) -> RunUpdate {
    RunUpdate { status: Some(RunStatus::Closed), ..update }
}

fn opening(update: RunUpdate) -> RunUpdate {
    RunUpdate { status: Some(RunStatus::Open), ..update }
}

/// Applies each update on its day.
fn after_all(updates: &[(i64, RunUpdate)]) -> Result<RunEnd, RunConflict> {
    let mut run: Option<RunRecord> = None;
    for (on, update) in updates {
        run = Some(RunRecord::updated(run.as_ref(), update, day(*on), &terms())?);
    }
    Ok(run.expect("at least one update").end)
}

#[test]
fn a_run_ends_when_its_host_says() {
    use RunEnd::{At, Default, Forever, Open};
    let endless = || RunUpdate { log_retain_until: Some(None), ..put() };
    let kept = |current| Err(RunConflict::Floor { current });
    for (name, updates, right) in [
        ("no end given", vec![(0, put())], Ok(Open)),
        ("explicit", vec![(0, until(day(5)))], Ok(At(day(5)))),
        ("later", vec![(0, until(day(5))), (1, until(day(9)))], Ok(At(day(9)))),
        ("the same again", vec![(0, until(day(5))), (1, until(day(5)))], Ok(At(day(5)))),
        ("earlier", vec![(0, until(day(5))), (1, until(day(4)))], kept(Some(day(5)))),
        ("open, then any", vec![(0, put()), (1, until(day(2)))], Ok(At(day(2)))),
        ("closed without", vec![(0, closing(put()))], Ok(Default(day(30)))),
        ("default, then earlier", vec![(0, closing(put())), (1, until(day(3)))], Ok(At(day(3)))),
        ("seconds wait for the closing", vec![(0, seconds(2))], Ok(Open)),
        ("seconds, then closed", vec![(0, seconds(2)), (5, closing(put()))], Ok(At(day(7)))),
        ("seconds with the closing", vec![(3, closing(seconds(2)))], Ok(At(day(5)))),
        ("seconds after it", vec![(0, closing(put())), (4, seconds(2))], Ok(At(day(6)))),
        ("seconds below the end", vec![(0, closing(until(day(9)))), (1, seconds(2))], kept(Some(day(9)))),
        ("closing with seconds below", vec![(0, until(day(9))), (1, closing(seconds(2)))], kept(Some(day(9)))),
        ("an instant beats earlier seconds", vec![(0, seconds(20)), (1, closing(until(day(9))))], Ok(At(day(9)))),
        ("closing never shortens", vec![(0, until(day(9))), (1, seconds(2)), (2, closing(put()))], Ok(At(day(9)))),
        ("closing keeps an end", vec![(0, until(day(9))), (1, closing(put()))], Ok(At(day(9)))),
        ("forever", vec![(0, endless())], Ok(Forever)),
        ("forever is not lowered", vec![(0, endless()), (1, until(day(9)))], kept(None)),
        ("raised to forever", vec![(0, until(day(9))), (1, endless())], Ok(Forever)),
        ("forever, closed", vec![(0, endless()), (1, closing(put()))], Ok(Forever)),
        ("forever, then seconds", vec![(0, endless()), (1, closing(put())), (2, seconds(1))], kept(None)),
    ] {
        assert_eq!(after_all(&updates), right, "{name}");
    }
}

#[test]
fn a_run_that_is_opened_again_has_no_end_but_one_that_was_given() {
    use RunEnd::{At, Default, Forever, Open};
    let closed = |update| (0, closing(update));
    let endless = RunUpdate { log_retain_until: Some(None), ..put() };
    for (name, updates, right) in [
        ("resumed", vec![closed(put()), (1, opening(put()))], Ok(Open)),
        ("and closed", vec![closed(put()), (1, opening(put())), (90, closing(put()))], Ok(Default(day(120)))),
        ("given an end", vec![closed(put()), (1, opening(put())), (2, until(day(3)))], Ok(At(day(3)))),
        ("given one with the opening", vec![closed(put()), (1, opening(until(day(3))))], Ok(At(day(3)))),
        ("seconds with the opening", vec![closed(put()), (1, opening(seconds(2)))], Ok(Open)),
        (
            "seconds with the opening, and closed",
            vec![closed(put()), (1, opening(seconds(2))), (50, closing(put()))],
            Ok(At(day(52))),
        ),
        ("seconds before", vec![closed(seconds(20)), (1, opening(put()))], Ok(At(day(20)))),
        (
            "seconds before, and closed",
            vec![closed(seconds(20)), (1, opening(put())), (9, closing(put()))],
            Ok(At(day(29))),
        ),
        ("an instant before", vec![closed(until(day(9))), (1, opening(put()))], Ok(At(day(9)))),
        (
            "an instant before, and closed",
            vec![closed(until(day(9))), (1, opening(put())), (5, closing(put()))],
            Ok(At(day(9))),
        ),
        ("forever", vec![closed(endless), (1, opening(put()))], Ok(Forever)),
    ] {
        assert_eq!(after_all(&updates), right, "{name}");
    }
}

#[test]
fn an_open_run_that_has_the_default_of_an_earlier_closing_gets_it_anew() {
    let closed = RunRecord::updated(None, &closing(put()), day(0), &terms()).expect("a new run");
    let resumed = RunRecord { status: RunStatus::Open, ..closed };

    let again = RunRecord::updated(Some(&resumed), &closing(put()), day(90), &terms());
    assert_eq!(again.map(|run| run.end), Ok(RunEnd::Default(day(120))));
}

#[test]
fn a_run_that_nobody_registered_is_kept_from_its_last_reference() {
    let id = RunId::parse("run-1").expect("a run");
    let run = RunRecord::referenced(id, day(0), &terms());
    let touched = run.touched(day(10), &terms()).expect("a later end");

    assert_eq!(touched.end, RunEnd::Default(day(40)));
    assert_eq!(touched.touched(day(9), &terms()), None);
    let registered = RunRecord::updated(Some(&touched), &until(day(12)), day(11), &terms());
    assert_eq!(registered.map(|run| run.end), Ok(RunEnd::At(day(12))));
}

#[test]
fn a_run_becomes_a_fork_once_and_of_one_run() {
    let run = |name: &str| RunRecord::referenced(RunId::parse(name).expect("a run"), day(0), &terms());
    let fork = |of: &str| RunUpdate { fork_of: Some(RunId::parse(of).expect("a run")), ..put() };
    let of = |name: &str| RunRecord { fork_of: Some(run(name).id), ..run("run-1") };
    let gone = |run: RunRecord| run.erased(day(1)).expect("it was not erased before");
    let parent = run("parent");
    let other = Err(RunConflict::ForkOf { current: run("other").id });
    for (name, before, update, known, ancestors, right) in [
        ("names none", Some(run("run-1")), put(), None, vec![], Ok(false)),
        ("new", None, fork("parent"), Some(&parent), vec![], Ok(true)),
        ("known before", Some(run("run-1")), fork("parent"), Some(&parent), vec![], Ok(true)),
        ("the same again", Some(of("parent")), fork("parent"), Some(&parent), vec![], Ok(false)),
        ("the same, erased since", Some(of("parent")), fork("parent"), Some(&gone(parent.clone())), vec![], Ok(false)),
        ("another", Some(of("other")), fork("parent"), Some(&parent), vec![], other),
        ("unknown", None, fork("parent"), None, vec![], Err(RunConflict::UnknownParent)),
        ("itself", None, fork("run-1"), None, vec![], Err(RunConflict::Cycle)),
        ("a cycle", Some(run("run-1")), fork("parent"), Some(&parent), vec![run("run-1").id], Err(RunConflict::Cycle)),
        ("of an erased one", None, fork("parent"), Some(&gone(parent.clone())), vec![], Err(RunConflict::Erased)),
        ("erased", Some(gone(run("run-1"))), fork("parent"), Some(&parent), vec![], Err(RunConflict::Erased)),
        ("erased, names none", Some(gone(run("run-1"))), put(), None, vec![], Err(RunConflict::Erased)),
    ] {
        assert_eq!(RunRecord::becomes_fork(before.as_ref(), &update, known, &ancestors), right, "{name}");
    }
}

#[test]
fn a_run_is_erased_once() {
    let run = RunRecord::updated(None, &until(day(9)), day(0), &terms()).expect("a new run");
    let erased = run.erased(day(3)).expect("it was not erased before");

    assert_eq!((erased.end, erased.status), (RunEnd::At(day(3)), RunStatus::Closed));
    assert_eq!((erased.erased_at, erased.revision), (Some(day(3)), 2));
    assert_eq!(erased.erased(day(4)), None);
}
