//! Random sequences of transitions, applied to an index and to the model, which answer alike at each step.
//!
//! Two things the contract leaves open, and so does the comparison: which looks there are, and in which order a sweep ends things. So
//! the index leads each sweep and the model follows, asset by asset: it refuses to end what is not past, and once nothing is due for
//! the index nothing may be due for the model. After each step everything that can be read is compared, and also what *would* be due
//! at times to come: a look that went missing is found when it is lost, not when it would have been needed.
//!
//! The index is closed and opened again wherever the sequence says so.

use jiff::{SignedDuration, Timestamp};
use proptest::test_runner::{Config, TestRunner};

use self::step::{Act, Sequence, Step, sequences};
use self::world::World;
use super::Subject;

mod step;
mod world;

/// Runs so many sequences on indexes that `make` makes, each new and empty; `reopen` closes one and opens it again.
///
/// To be called where no runtime runs: it brings its own.
///
/// # Panics
///
/// When the index and the model disagree, with the shortest sequence that was found to show it.
pub fn run(cases: u32, make: impl AsyncFn() -> Subject, reopen: impl AsyncFn(Subject) -> Subject) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&sequences(), |sequence| {
        runtime.block_on(tell(sequence, &make, &reopen));
        Ok(())
    });
    if let Err(disagreement) = outcome {
        unreachable!("the index and the model disagree: {disagreement}");
    }
}

async fn tell(sequence: Sequence, make: &impl AsyncFn() -> Subject, reopen: &impl AsyncFn(Subject) -> Subject) {
    let mut world = World::new(make().await, sequence.terms);
    for Step { after_hours, act } in sequence.steps {
        world.pass(SignedDuration::from_hours(after_hours));
        match act {
            Act::Reopen => {
                let index = world.take_index();
                world.put_index(reopen(index).await);
            }
            act => world.act(act).await,
        }
        world.compare().await;
    }
    world.finish().await;
}

/// Where the sequences begin.
fn beginning() -> Timestamp {
    super::stage::day(0)
}
