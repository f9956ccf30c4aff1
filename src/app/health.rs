//! Whether both stores answer, for whoever asks: anybody may, as often as they like, and a look costs both stores a request.
//!
//! So there is one look at a time, whoever asks meanwhile waits for it, and what it has seen is told for a second.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::App;

/// So long what was seen is told.
const KEPT: Duration = Duration::from_secs(1);

/// A store that takes longer to answer does not answer: who asks wants to know now.
const SOON: Duration = Duration::from_secs(3);

/// The last look.
#[derive(Debug)]
pub struct Health {
    last: Arc<Mutex<Option<(Instant, Seen)>>>,
    kept: Duration,
}

/// What was seen: the store that does not answer, if there is one.
pub type Seen = Result<(), &'static str>;

impl App {
    /// Whether both stores answer, as of a second ago at most.
    pub async fn ready(self: &Arc<Self>) -> Seen {
        let app = self.clone();
        self.health.seen(|| async move { app.look().await }).await
    }

    async fn look(&self) -> Seen {
        if !matches!(tokio::time::timeout(SOON, self.index.ready()).await, Ok(Ok(()))) {
            return Err("index");
        }
        if !matches!(tokio::time::timeout(SOON, self.blobs.ready()).await, Ok(Ok(()))) {
            return Err("store");
        }
        Ok(())
    }
}

impl Health {
    /// Nobody has looked yet; what will be seen is told for so long.
    fn keeping(kept: Duration) -> Self {
        Self { last: Arc::default(), kept }
    }

    /// What was seen a moment ago, or what this look sees.
    async fn seen<F>(&self, look: impl FnOnce() -> F) -> Seen
    where
        F: Future<Output = Seen> + Send + 'static,
    {
        let mut last = self.last.clone().lock_owned().await;
        if let Some((at, seen)) = *last
            && at.elapsed() < self.kept
        {
            return seen;
        }
        let look = look();
        // A task of its own: whoever asked may go away, and each of the others would begin it anew.
        let looking = tokio::spawn(async move {
            let seen = look.await;
            *last = Some((Instant::now(), seen));
            seen
        });
        // It ends without an answer only where the service ends.
        looking.await.unwrap_or(Err("index"))
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::keeping(KEPT)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// Looks that are counted, and end when they may.
    struct Looks {
        begun: Arc<AtomicUsize>,
        may_end: Arc<Semaphore>,
    }

    impl Looks {
        fn new(may_end: usize) -> Self {
            Self { begun: Arc::default(), may_end: Arc::new(Semaphore::new(may_end)) }
        }

        fn one(&self, sees: Seen) -> impl Future<Output = Seen> + Send + 'static + use<> {
            let (begun, may_end) = (self.begun.clone(), self.may_end.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                may_end.acquire().await.expect("it is never closed").forget();
                sees
            }
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn hundreds_who_ask_at_once_cost_one_look_even_if_the_first_goes_away() {
        let (health, looks) = (Health::keeping(LONG), Looks::new(0));
        assert!(
            health.seen(|| looks.one(Err("store"))).now_or_never().is_none(),
            "it looks, and whoever asked does not wait"
        );

        let all = (0..300).map(async |_| health.seen(|| looks.one(Ok(()))).await);
        let (told, ()) = tokio::join!(join_all(all), async { looks.may_end.add_permits(1) });

        assert!(told.iter().all(|seen| *seen == Err("store")), "{told:?}");
        assert_eq!(looks.begun(), 1);
    }

    #[tokio::test]
    async fn what_was_seen_is_not_told_for_longer_than_it_is_kept() {
        let (health, looks) = (Health::keeping(Duration::ZERO), Looks::new(2));
        for sees in [Ok(()), Err("index")] {
            assert_eq!(health.seen(|| looks.one(sees)).await, sees);
        }
        assert_eq!(looks.begun(), 2);
    }
}
