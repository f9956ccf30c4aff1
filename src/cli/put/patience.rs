//! How long one goes on asking: longer each time, never twice alike, and not for ever.

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

/// The first wait is half of this at the least, each further one twice as long.
const FIRST: Duration = Duration::from_millis(500);

/// No wait is longer, unless the server says so, and then not beyond [`LONGEST_TOLD`].
const LONGEST: Duration = Duration::from_secs(20);
const LONGEST_TOLD: Duration = Duration::from_secs(60);

/// So often in a row one asks without anything moving. Together that is more than the minute for which a writer that died keeps an upload.
const TRIES: u32 = 12;

/// What is left of it.
#[derive(Debug, Default)]
pub(super) struct Patience {
    tries: u32,
}

impl Patience {
    /// Something has moved.
    pub(super) fn regain(&mut self) {
        self.tries = 0;
    }

    /// How long to wait before the next try; `None` when there has been enough of it. `told` is what the server wishes for.
    pub(super) fn next(&mut self, told: Option<Duration>) -> Option<Duration> {
        self.next_with(told, chance())
    }

    fn next_with(&mut self, told: Option<Duration>, chance: u8) -> Option<Duration> {
        if self.tries == TRIES {
            return None;
        }
        let whole = FIRST.saturating_mul(1 << self.tries).min(LONGEST);
        self.tries += 1;
        let own = whole / 2 + whole.mul_f64(f64::from(chance) / 510.0);
        Some(own.max(told.unwrap_or_default().min(LONGEST_TOLD)))
    }
}

/// What keeps those who were cut off together from coming back together; without it they only come at the same time.
fn chance() -> u8 {
    let mut byte = [0];
    let _ = SystemRandom::new().fill(&mut byte);
    byte[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_vary_and_end_but_outlast_a_writer_that_died() {
        for chance in [0, 255] {
            let mut patience = Patience::default();
            let waits: Vec<Duration> = std::iter::from_fn(|| patience.next_with(None, chance)).collect();
            assert_eq!(waits.len(), TRIES as usize);
            assert!(waits.is_sorted() && waits.iter().all(|wait| *wait <= LONGEST), "{waits:?}");
            assert!(waits.iter().sum::<Duration>() > Duration::from_secs(60), "{waits:?}");
            patience.regain();
            assert_eq!(patience.next_with(None, chance), Some(waits[0]));
        }
        assert_ne!(Patience::default().next_with(None, 0), Patience::default().next_with(None, 255));
    }

    #[test]
    fn a_server_that_names_a_time_has_it_within_bounds() {
        let mut patience = Patience::default();
        assert_eq!(patience.next_with(Some(Duration::from_secs(7)), 0), Some(Duration::from_secs(7)));
        assert_eq!(patience.next_with(Some(Duration::from_secs(86_400)), 0), Some(LONGEST_TOLD));
    }
}
