//! The protocol's own small parts: what the service says of itself and what a host may say of it, the schemas of the envelopes that it makes,
//! and pure functions that hosts ask for.
//!
//! Modules in reading order:

pub mod discovery;
pub mod schemas;
pub mod formats;
pub mod modality;
pub mod model_capability;
pub mod schema_lint;
pub mod seams;
