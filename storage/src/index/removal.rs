//! Whose turn it is to remove bytes.

use std::fmt;

/// The turn to remove the bytes of what is [doomed](super::Ends::doom): whoever has it removes what nobody else does at that moment. It ends
/// when this is dropped, at the latest a moment later, and with its process.
pub struct RemovalTurn {
    _held: Box<dyn Send>,
}

impl RemovalTurn {
    /// The turn is had as long as that is.
    pub(super) fn of(held: impl Send + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for RemovalTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemovalTurn").finish_non_exhaustive()
    }
}
