//! Buffers that are read into again and again.
//!
//! A fresh buffer would be fetched from the kernel, cleared, filled, and given back, for every chunk anew: that cost a third of the
//! time of sending a large file. So a chunk hands its buffer back when whoever sends it is done with it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// How long a buffer is, and so how much is read at a time.
pub(super) const CHUNK: usize = 96 * 1024;

/// So many wait to be used again, which is 3 MiB; what comes back beyond them is dropped.
const WAITING: usize = 32;

/// Those that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffers(Arc<Mutex<Vec<Box<[u8]>>>>);

impl Buffers {
    /// `length` bytes of which nobody knows what they are. What is longer than [`CHUNK`] is made for this once.
    pub(super) fn take(&self, length: usize) -> Buffer {
        let waiting = if length <= CHUNK { self.waiting().pop() } else { None };
        let bytes = waiting.unwrap_or_else(|| vec![0; length.max(CHUNK)].into());
        Buffer { bytes, length, home: self.clone() }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<Box<[u8]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer in use.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    length: usize,
    home: Buffers,
}

impl Buffer {
    /// What is to be read into it; all of it, before anybody sees it.
    pub(super) fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }

    /// What was read. The buffer comes back when the last of its holders lets go.
    pub(super) fn filled(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let mut waiting = self.home.waiting();
        if bytes.len() == CHUNK && waiting.len() < WAITING {
            waiting.push(bytes);
        }
    }
}
