//! Room on the store's disk, promised to uploads before they take it: a disk that is quite full stops the index too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes are promised and not written yet.
#[derive(Debug, Clone, Default)]
pub struct Room(Arc<AtomicU64>);

/// Room for one upload; what it did not take is given back on drop.
#[derive(Debug)]
pub struct Promise {
    room: Room,
    left: u64,
}

impl Room {
    /// Promises room for so many bytes, if `least` of what is `free` remains beside all that was promised. Where nobody knows what is
    /// free, there is always room.
    pub fn promise(&self, bytes: u64, free: Option<u64>, least: u64) -> Option<Promise> {
        let Some(free) = free else {
            return Some(Promise { room: self.clone(), left: 0 });
        };
        // More than there is at all is not even added, so that no sum overflows.
        if least.saturating_add(bytes) > free {
            return None;
        }
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        let promise = Promise { room: self.clone(), left: bytes };
        (least.saturating_add(bytes).saturating_add(before) <= free).then_some(promise)
    }
}

impl Promise {
    /// So many bytes were taken, and are no longer free.
    pub fn take(&mut self, bytes: u64) {
        let taken = bytes.min(self.left);
        self.left -= taken;
        self.room.0.fetch_sub(taken, Ordering::Relaxed);
    }

    /// Whether more may be written. Whoever has a promise left is not stopped by those of others; whoever said no length yields to all.
    pub fn holds(&self, free: Option<u64>, least: u64) -> bool {
        let others = if self.left > 0 { 0 } else { self.room.0.load(Ordering::Relaxed) };
        free.is_none_or(|free| free >= least.saturating_add(others))
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.take(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_cannot_be_promised_again_until_it_is_given_back() {
        let room = Room::default();
        let first = room.promise(60, Some(100), 10).expect("room");

        assert!(room.promise(31, Some(100), 10).is_none());
        let second = room.promise(30, Some(100), 10).expect("just enough");
        drop(first);
        let third = room.promise(60, Some(100), 10).expect("given back");
        drop((second, third));
        assert!(room.promise(90, Some(100), 10).is_some());
        assert!(room.promise(91, Some(100), 10).is_none());
        assert!(room.promise(u64::MAX, Some(100), 10).is_none());
    }

    #[test]
    fn what_was_written_is_counted_by_the_disk_alone() {
        let room = Room::default();
        let mut first = room.promise(60, Some(100), 0).expect("room");
        first.take(50);

        assert!(room.promise(40, Some(50), 0).is_some());
        assert!(room.promise(41, Some(50), 0).is_none());
    }

    #[test]
    fn an_upload_without_a_length_yields_to_those_with_one() {
        let room = Room::default();
        let mut unknown = room.promise(0, Some(100), 10).expect("room");
        let known = room.promise(60, Some(100), 10).expect("room");
        unknown.take(20);

        assert!(unknown.holds(Some(70), 10) && !unknown.holds(Some(69), 10));
        assert!(known.holds(Some(10), 10) && !known.holds(Some(9), 10));
        drop(known);
        assert!(unknown.holds(Some(10), 10));
    }

    #[test]
    fn where_nobody_knows_what_is_free_there_is_room() {
        let room = Room::default();
        let all = room.promise(u64::MAX, None, u64::MAX).expect("room");
        assert!(all.holds(None, u64::MAX) && room.promise(u64::MAX, None, 0).is_some());
    }
}
