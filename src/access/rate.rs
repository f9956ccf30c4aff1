//! How often somebody may call: a number of requests a second by credential, and on capability routes by the client's address.
//!
//! The memory is bounded: whoever has not called for a while is forgotten, and when there are too many at once, newcomers share.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use governor::clock::Clock as _;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::Principal;
use super::client::network;
use crate::clock::Clock;
use crate::config::Settings;

/// Callers that are told apart: some megabytes.
const CALLERS: usize = 65_536;

/// Newcomers beyond them share so many places.
const SHARED: u64 = 1_024;

/// After so many requests idle callers are forgotten.
const TIDY_EVERY: usize = 16_384;

/// The rates that are set.
#[derive(Debug)]
pub struct Rates {
    credentials: Option<Limit<String>>,
    clients: Option<Limit<u128>>,
}

/// Too many requests: come back after so many seconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany {
    /// How many.
    pub retry_after: u32,
}

impl Rates {
    /// As they are set.
    pub fn new(settings: &Settings, clock: &Clock) -> Self {
        let limits = &settings.limits;
        Self {
            credentials: Limit::new(limits.requests_per_second, clock),
            clients: Limit::new(limits.client_requests_per_second, clock),
        }
    }

    /// Counts a request of a credential.
    pub fn credential(&self, caller: &Principal) -> Result<(), TooMany> {
        match &self.credentials {
            Some(limit) => limit.count(format!("{}\n{}", caller.tenant, caller.id)),
            None => Ok(()),
        }
    }

    /// Counts a request of a client on a capability route. `address` is asked for only if it matters.
    pub fn client(&self, address: impl FnOnce() -> Option<IpAddr>) -> Result<(), TooMany> {
        match &self.clients {
            Some(limit) => limit.count(address().map_or(0, network)),
            None => Ok(()),
        }
    }
}

type Store<K> = HashMapStateStore<Place<K>>;

#[derive(Debug)]
struct Limit<K: Hash + Eq + Clone> {
    limiter: RateLimiter<Place<K>, Store<K>, Steady, NoOpMiddleware<Duration>>,
    counted: AtomicUsize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place<K> {
    Own(K),
    Shared(u64),
}

impl<K: Hash + Eq + Clone> Limit<K> {
    fn new(per_second: u32, clock: &Clock) -> Option<Self> {
        let quota = Quota::per_second(NonZeroU32::new(per_second)?);
        let limiter = RateLimiter::new(quota, Store::default(), Steady { clock: clock.clone(), began: Instant::now() });
        Some(Self { limiter, counted: AtomicUsize::new(0) })
    }

    fn count(&self, who: K) -> Result<(), TooMany> {
        if self.counted.fetch_add(1, Ordering::Relaxed) % TIDY_EVERY == TIDY_EVERY - 1 {
            self.limiter.retain_recent();
        }
        let place = if self.limiter.len() < CALLERS {
            Place::Own(who)
        } else {
            let mut hasher = DefaultHasher::new();
            who.hash(&mut hasher);
            Place::Shared(hasher.finish() % SHARED)
        };
        self.limiter.check_key(&place).map_err(|until| {
            let wait = until.wait_time_from(self.limiter.clock().now());
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            TooMany { retry_after: u32::try_from(seconds).unwrap_or(u32::MAX).max(1) }
        })
    }
}

/// Time that never goes back, or the one that a test turns: a machine's clock that is set back must not lock everybody out.
#[derive(Debug, Clone)]
struct Steady {
    clock: Clock,
    began: Instant,
}

impl governor::clock::Clock for Steady {
    type Instant = Duration;

    fn now(&self) -> Duration {
        match &self.clock {
            Clock::System => self.began.elapsed(),
            manual @ Clock::Manual(_) => Duration::from_millis(manual.now().as_millisecond().unsigned_abs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use mediakeep_storage::Timestamp;

    use super::*;

    fn limit(per_second: u32) -> (Limit<usize>, Clock) {
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).expect("a time in range"));
        (Limit::new(per_second, &clock).expect("a rate"), clock)
    }

    #[test]
    fn a_rate_is_a_burst_and_then_one_at_a_time() {
        let (limit, clock) = limit(4);
        let passed = |times: usize| (0..times).filter(|_| limit.count(1).is_ok()).count();

        assert_eq!(passed(9), 4);
        assert_eq!(limit.count(1), Err(TooMany { retry_after: 1 }));
        assert_eq!(limit.count(2), Ok(()), "each has its own");
        clock.advance(Duration::from_millis(500));
        assert_eq!(passed(9), 2);
        clock.advance(Duration::from_secs(60));
        assert_eq!(passed(9), 4);
        assert!(Limit::<usize>::new(0, &clock).is_none());
    }

    #[test]
    fn strangers_do_not_fill_the_memory() {
        let (limit, clock) = limit(1);
        for stranger in 0..CALLERS + 5 * TIDY_EVERY {
            let _ = limit.count(stranger);
        }
        assert!(limit.limiter.len() <= CALLERS + usize::try_from(SHARED).expect("small"));

        clock.advance(Duration::from_secs(60));
        for _ in 0..TIDY_EVERY {
            let _ = limit.count(0);
        }
        assert!(limit.limiter.len() < 10, "{}", limit.limiter.len());
    }
}
