//! Looking at bytes: off the async threads, only so many at a time, and nobody waits for ever.
//!
//! Our own rules are asked first; they are bounded. Then libraries are asked for what the rules left open; a library may hang, so it has
//! a shorter deadline, places of its own, and takes nothing with it but its own opinion. A thread cannot be stopped from outside: one
//! that is given up gives its place back and is counted until it ends, and while many of them hang, no library is asked at all.

use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::warn;

use crate::media::{self, Declared, Found, Source};
use crate::telemetry::Inspections;

/// Looks at bytes.
#[derive(Debug)]
pub struct Inspector {
    patience: Patience,
    rules: Places,
    libraries: Places,
    counters: Inspections,
}

/// How long anybody waits. Work is timed from when it has its place: whoever has waited long for that is not hurried.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For a place at our own rules; whoever finds none is told to come again.
    pub place: Duration,
    /// For our own rules, from then on; what they do not say in time is stored as unknown, for good.
    pub rules: Duration,
    /// For a library's place, and as long for the library; what it has not said by then stays open.
    pub libraries: Duration,
}

/// While so many threads hang no library is asked: each may keep a processor busy for nothing.
const MOST_ABANDONED: i64 = 4;

impl Default for Patience {
    /// The rules read up to 192 MiB, perhaps from a slow disk; a library is shown one MiB.
    fn default() -> Self {
        Self { place: Duration::from_secs(20), rules: Duration::from_secs(20), libraries: Duration::from_secs(5) }
    }
}

impl Inspector {
    /// With as many places as there are processors, for the rules and for the libraries each.
    pub fn new(patience: Patience, counters: Inspections) -> Self {
        let places = std::thread::available_parallelism().map_or(2, usize::from);
        let places = || Places { free: Semaphore::new(places), abandoned: counters.abandoned.clone() };
        Self { patience, rules: places(), libraries: places(), counters }
    }

    /// What the bytes are; `open` gives them from their beginning. `None`: so many others are looked at that nobody has looked at these.
    pub async fn look<S: Source + 'static>(
        &self,
        open: impl Fn() -> S,
        size: u64,
        declared: Option<Declared>,
    ) -> Option<Found> {
        let mut source = open();
        let rules = move || media::identify(&mut source, size, declared.as_ref());
        let found = match self.rules.run((self.patience.place, self.patience.rules), i64::MAX, rules).await {
            Ran::Ended(found) => found,
            Ran::NoPlace => return None,
            Ran::GivenUp => {
                warn!(size_bytes = size, "an inspection came to no end: the bytes are stored as unknown");
                self.counters.failed.inc();
                return Some(Found::unknown());
            }
        };
        if !found.wants_second_opinion(size) {
            return Some(found);
        }
        let (mut source, asked) = (open(), found.clone());
        let libraries = move || media::second_opinion(&mut source, size, asked);
        let patience = (self.patience.libraries, self.patience.libraries);
        if let Ran::Ended(opinion) = self.libraries.run(patience, MOST_ABANDONED, libraries).await {
            return Some(opinion);
        }
        warn!(size_bytes = size, mime_type = found.mime_type, "no library was heard: what it might know stays open");
        self.counters.unheard.inc();
        Some(found)
    }
}

/// Threads for work that blocks: only so many that somebody waits for.
#[derive(Debug)]
struct Places {
    free: Semaphore,
    abandoned: Gauge,
}

/// What became of work.
enum Ran<T> {
    Ended(T),
    /// It was not begun: there was no place in time.
    NoPlace,
    /// It was not begun because so many threads hang, did not end in time, or panicked.
    GivenUp,
}

impl Places {
    /// Does the work, unless there is no place in time, or so many threads hang already. `patience` is for a place, and for the work.
    async fn run<T: Send + 'static>(
        &self,
        (for_place, for_work): (Duration, Duration),
        most_abandoned: i64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Ran<T> {
        // The place is held here and not in the thread: a thread that hangs would keep it.
        let Ok(Ok(_place)) = timeout(for_place, self.free.acquire()).await else {
            return Ran::NoPlace;
        };
        if self.abandoned.get() >= most_abandoned {
            return Ran::GivenUp;
        }
        let mut thread = tokio::task::spawn_blocking(work);
        if let Ok(ended) = timeout(for_work, &mut thread).await {
            return ended.map_or(Ran::GivenUp, Ran::Ended);
        }
        // One that has not begun yet never will.
        thread.abort();
        let abandoned = self.abandoned.clone();
        abandoned.inc();
        tokio::spawn(async move {
            let _ = thread.await;
            abandoned.dec();
        });
        Ran::GivenUp
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read, Seek, SeekFrom};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    /// A picture whose size our rules cannot tell, so that a library is asked.
    const OPEN: &[u8] = b"\x89PNG\r\n\x1A\n";

    /// Bytes that never come while the other end of the channel lives.
    struct Stuck(Option<Receiver<()>>, Cursor<&'static [u8]>);

    impl Read for Stuck {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            if let Some(end) = &self.0 {
                let _ = end.recv();
            }
            self.1.read(into)
        }
    }

    impl Seek for Stuck {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.1.seek(to)
        }
    }

    fn inspector() -> Inspector {
        Inspector::new(Patience { place: SHORT * 20, rules: SHORT * 20, libraries: SHORT }, Inspections::default())
    }

    fn plain() -> Stuck {
        Stuck(None, Cursor::new(OPEN))
    }

    /// Looks at a picture over which every library hangs until its sender is dropped.
    async fn hang(inspector: &Inspector) -> (Found, Sender<()>) {
        let (sender, end) = channel();
        let (opened, end) = (AtomicUsize::new(0), std::sync::Mutex::new(Some(end)));
        let open = || match opened.fetch_add(1, Ordering::Relaxed) {
            0 => plain(),
            _ => Stuck(end.lock().expect("one thread").take(), Cursor::new(OPEN)),
        };
        (look(inspector, open).await, sender)
    }

    async fn look<S: Source + 'static>(inspector: &Inspector, open: impl Fn() -> S) -> Found {
        inspector.look(open, OPEN.len() as u64, None).await.expect("there is a place")
    }

    async fn ends(inspector: &Inspector) {
        while inspector.counters.abandoned.get() > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    #[tokio::test]
    async fn a_library_that_hangs_leaves_what_our_rules_have_found() {
        let inspector = inspector();

        let (found, thread) = hang(&inspector).await;

        assert_eq!(found.mime_type, "image/png");
        assert_eq!((inspector.counters.unheard.get(), inspector.counters.failed.get()), (1, 0));
        assert_eq!(inspector.counters.abandoned.get(), 1);
        drop(thread);
        ends(&inspector).await;
    }

    #[tokio::test]
    async fn rules_that_hang_leave_the_bytes_unknown_and_their_place_to_the_next() {
        let mut inspector = inspector();
        inspector.rules.free = Semaphore::new(1);
        inspector.patience.rules = SHORT;
        let (thread, end) = channel::<()>();
        let end = std::sync::Mutex::new(Some(end));
        let open = || Stuck(end.lock().expect("one thread").take(), Cursor::new(OPEN));

        let stuck = look(&inspector, open).await;
        inspector.patience.rules = SHORT * 20;
        let next = look(&inspector, plain).await;

        assert_eq!((stuck, next.mime_type.as_str()), (Found::unknown(), "image/png"));
        assert_eq!(inspector.counters.failed.get(), 1);
        drop(thread);
        ends(&inspector).await;
    }

    #[tokio::test]
    async fn while_many_hang_no_library_is_asked() {
        let inspector = inspector();
        let mut threads = Vec::new();
        for _ in 0..MOST_ABANDONED {
            threads.push(hang(&inspector).await.1);
        }
        assert_eq!(inspector.counters.abandoned.get(), MOST_ABANDONED);

        let (found, _thread) = hang(&inspector).await;

        assert_eq!(found.mime_type, "image/png");
        assert_eq!(inspector.counters.abandoned.get(), MOST_ABANDONED, "nobody was asked");
        drop(threads);
        ends(&inspector).await;
        assert_eq!(look(&inspector, plain).await.mime_type, "image/png");
    }

    #[tokio::test]
    async fn who_has_waited_longer_for_a_place_than_the_rules_may_take_is_looked_at_all_the_same() {
        let mut inspector = inspector();
        inspector.patience.place = Duration::from_secs(3600);
        inspector.rules.free = Semaphore::new(0);
        let freed = async {
            tokio::time::sleep(inspector.patience.rules + SHORT).await;
            inspector.rules.free.add_permits(1);
        };

        let (found, ()) = tokio::join!(look(&inspector, plain), freed);

        assert_eq!(found.mime_type, "image/png");
    }

    #[tokio::test]
    async fn of_what_nobody_has_looked_at_nothing_is_said() {
        let mut inspector = inspector();
        inspector.patience.place = SHORT;
        inspector.rules.free = Semaphore::new(0);

        assert_eq!(inspector.look(plain, OPEN.len() as u64, None).await, None);
        assert_eq!(inspector.counters.abandoned.get(), 0);
    }
}
