//! Quotas: how much a tenant may have, and what counts.
//!
//! A live asset counts with its own bytes, whether it shares them with another or not: a shared blob that counted once would tell
//! whoever watches the sum that the bytes had been there before. It counts from the transition that makes it visible to the one that
//! ends it. An upload in progress counts with its reservation, as one asset.
//!
//! A quota is decided where a reservation is made or grows, and nowhere else. Whoever uploads reserves before the bytes come, and a
//! publication turns the reservation into the asset that it was made for: the sum of the two never grows by that, so a publication has
//! nothing to refuse. A quota that is lowered below what is used refuses what is new, and takes nothing away.

/// How much a tenant may have; `None` is any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// So many bytes.
    pub bytes: Option<u64>,
    /// So many assets.
    pub assets: Option<u64>,
}

/// What a tenant uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of its live assets.
    pub bytes: u64,
    /// How many these are.
    pub assets: u64,
    /// Bytes that are reserved for its uploads in progress.
    pub reserved_bytes: u64,
    /// How many uploads have a reservation.
    pub reserved_assets: u64,
}

/// What became of a wish for a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// It stands.
    Done,
    /// The quota leaves less than that: nothing happened.
    OverQuota,
    /// There is no such upload any more: nothing happened.
    UploadLost,
}

/// What is kept of a tenant's use, and what a count of its rows comes to, of one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// As it is kept.
    pub kept: Usage,
    /// As it is counted.
    pub counted: Usage,
}

impl Quota {
    /// No bound.
    pub const NONE: Self = Self { bytes: None, assets: None };

    /// Whether there is a bound to look at.
    pub fn is_bounded(&self) -> bool {
        *self != Self::NONE
    }

    /// Whether an upload may have so many bytes reserved, in all, when that is the use; `before` is its reservation in it. One that it
    /// has already is not looked at again.
    pub fn allows(&self, usage: &Usage, before: Option<u64>, bytes: u64) -> bool {
        let more = bytes.saturating_sub(before.unwrap_or(0));
        let all_bytes = usage.bytes.saturating_add(usage.reserved_bytes).saturating_add(more);
        let all_assets = usage.assets.saturating_add(usage.reserved_assets).saturating_add(1);
        let bytes_fit = self.bytes.is_none_or(|most| all_bytes <= most);
        let assets_fit = self.assets.is_none_or(|most| all_assets <= most);
        match before {
            None => bytes_fit && assets_fit,
            Some(_) => more == 0 || bytes_fit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USED: Usage = Usage { bytes: 60, assets: 3, reserved_bytes: 10, reserved_assets: 1 };

    #[test]
    fn a_reservation_fits_up_to_the_last_byte_and_asset() {
        let quota = Quota { bytes: Some(100), assets: Some(5) };
        assert!(quota.allows(&USED, None, 30));
        assert!(!quota.allows(&USED, None, 31));
        assert!(!quota.allows(&Usage { assets: 4, ..USED }, None, 0));
        assert!(!quota.allows(&USED, None, u64::MAX), "no sum overflows");
    }

    #[test]
    fn one_that_grows_is_measured_by_what_is_new() {
        let quota = Quota { bytes: Some(100), assets: Some(1) };
        assert!(quota.allows(&USED, Some(10), 40));
        assert!(!quota.allows(&USED, Some(10), 41));
        assert!(Quota { bytes: Some(1), assets: Some(1) }.allows(&USED, Some(10), 10), "what it has stays");
    }

    #[test]
    fn a_quota_below_the_use_refuses_all_that_is_new() {
        assert!(!Quota { bytes: Some(69), assets: None }.allows(&USED, None, 0));
        assert!(Quota { bytes: Some(70), assets: None }.allows(&USED, None, 0));
        assert!(Quota::NONE.allows(&USED, None, u64::MAX));
    }
}
