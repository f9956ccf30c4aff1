//! What a capability token says, and for how long it is true.
//!
//! A token is a JWS in compact form (RFC 7515) with one spelling:
//!
//! ```text
//! {"alg":"HS256","typ":"openwop-media+jwt","kid":"k4fq2m7ab"}
//! {"aud":"media","sub":"ast_…","tid":"acme","op":"read","cls":"durable","iat":1796000000,"gen":0}
//! {"aud":"media","sub":"ast_…","tid":"acme","op":"read","cls":"delivery","iat":…,"gen":0,"exp":…,"jti":"…","dsp":"inline","cnt":true}
//! ```
//!
//! `dsp` (`inline`, `attachment`) and `cnt` (`true`) are left out when there is nothing to say. The MAC is HMAC-SHA-256 under
//! HKDF-SHA-256(ring key named by `kid`, no salt, info = `mediakeep/url/v1` followed by the tenant).

mod payload;
mod token;

use thiserror::Error;

pub use self::token::{MAX_TOKEN, TokenError};

/// What a token says: this tenant's asset may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The tenant: 1..64 of `[A-Za-z0-9._-]`, not beginning with a dot.
    pub tenant: String,
    /// The asset's id.
    pub asset: String,
    /// For a log, or for a while.
    pub class: Class,
    /// When it was minted, in unix seconds.
    pub issued_at: i64,
    /// The asset's generation then; revoking raises it.
    pub generation: u32,
}

/// The two kinds of URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Goes into a run's events. It has no expiry of its own: the asset's retention is its expiry.
    Durable,
    /// Goes to a browser or a third party.
    Delivery {
        /// Past from this instant on, in unix seconds.
        expires_at: i64,
        /// By what it is revoked and counted.
        url_id: String,
        /// How the browser is asked to show it, when the minter had a wish.
        disposition: Option<Disposition>,
        /// Whether its uses are counted: only then does a read cost a write.
        counted: bool,
    },
}

/// How a browser is asked to show the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// In the page.
    Inline,
    /// As a download.
    Attachment,
}

/// An authentic token outside its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LifeError {
    /// Its `exp` has come.
    #[error("past since {expires_at}")]
    Expired {
        /// The instant, in unix seconds.
        expires_at: i64,
    },
    /// It was minted further in the future than two clocks may differ.
    #[error("issued at {issued_at}, which is ahead of us")]
    NotYetValid {
        /// Its `iat`, in unix seconds.
        issued_at: i64,
    },
}

impl Claims {
    /// Whether the token is within its time: past from the instant `exp` on, and not yet valid while `iat` is more than
    /// `clock_skew` seconds ahead. The skew is for the minter's clock alone and never lengthens a life.
    pub fn check_life(&self, now: i64, clock_skew: i64) -> Result<(), LifeError> {
        if let Some(expires_at) = self.expires_at()
            && expires_at <= now
        {
            return Err(LifeError::Expired { expires_at });
        }
        if self.issued_at > now.saturating_add(clock_skew.max(0)) {
            return Err(LifeError::NotYetValid { issued_at: self.issued_at });
        }
        Ok(())
    }

    /// The instant from which on the token is past, if it has one of its own.
    #[must_use]
    pub fn expires_at(&self) -> Option<i64> {
        match self.class {
            Class::Durable => None,
            Class::Delivery { expires_at, .. } => Some(expires_at),
        }
    }

    /// The name by which one URL is revoked: a delivery URL's own, or the durable one's `<assetId>.<gen>`.
    #[must_use]
    pub fn url_id(&self) -> String {
        match &self.class {
            Class::Durable => format!("{}.{}", self.asset, self.generation),
            Class::Delivery { url_id, .. } => url_id.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUED: i64 = 1_800_000_000;
    const DAY: i64 = 86_400;

    fn claims(class: Class) -> Claims {
        Claims { tenant: "acme".into(), asset: "ast_1".into(), class, issued_at: ISSUED, generation: 3 }
    }

    fn delivery(life: i64) -> Claims {
        claims(Class::Delivery { expires_at: ISSUED + life, url_id: "url_1".into(), disposition: None, counted: false })
    }

    #[test]
    fn a_delivery_url_is_past_from_the_instant_on() {
        // The life is the token's own, to the second; no window is added at either end.
        let table = [
            (1, 0, true),
            (1, 1, false),
            (1, 3, false),
            (7 * DAY, 16 * 60, true),
            (7 * DAY, 7 * DAY - 1, true),
            (7 * DAY, 7 * DAY, false),
            (900, 905, false),
            (900, 959, false),
        ];
        for (life, age, live) in table {
            for skew in [0, 60, 86_400, i64::MAX] {
                let found = delivery(life).check_life(ISSUED + age, skew);
                assert_eq!(found.is_ok(), live, "life {life}, age {age}, skew {skew}");
            }
        }
    }

    #[test]
    fn a_clock_ahead_of_ours_is_borne_with_up_to_the_skew() {
        // The minter's clock runs 20 s ahead; a link of 10 s works, and ends when it says.
        assert_eq!(delivery(10).check_life(ISSUED - 20, 60), Ok(()));
        let early = Err(LifeError::NotYetValid { issued_at: ISSUED });
        assert_eq!(delivery(10).check_life(ISSUED - 61, 60), early);
        assert_eq!(delivery(10).check_life(ISSUED - 1, 0), early);
        assert_eq!(delivery(10).check_life(ISSUED - 1, -5), early);
        assert!(delivery(10).check_life(ISSUED + 10, 60).is_err());
        assert_eq!(claims(Class::Durable).check_life(ISSUED - 61, 60), early);
    }

    #[test]
    fn a_durable_url_has_no_end_of_its_own() {
        assert_eq!(claims(Class::Durable).check_life(ISSUED + 100 * 365 * DAY, 0), Ok(()));
        assert_eq!(claims(Class::Durable).expires_at(), None);
    }

    #[test]
    fn a_url_has_a_name() {
        assert_eq!(claims(Class::Durable).url_id(), "ast_1.3");
        assert_eq!(delivery(1).url_id(), "url_1");
    }
}
