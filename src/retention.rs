//! The registry of runs, and the end of what nothing needs any more.
//!
//! How long a thing is kept is computed by [`mediakeep_storage::retention`], the same for every index; here are the use cases.

pub mod artifacts;
pub mod copy;
pub mod erase;
pub mod floors;
pub mod holds;
pub mod late;
pub mod leftovers;
pub mod owed;
pub mod rebuild;
pub mod runs;
pub mod strays;
pub mod sweep;
pub mod verify;
