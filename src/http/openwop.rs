//! What the protocol's hosts ask for beyond assets themselves.
//!
//! Modules in reading order:

pub mod projections;
pub mod host;
pub mod formats;
pub mod model;
pub mod seams;
