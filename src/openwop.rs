//! The protocol's own small parts: what the service says of itself, and the schemas of the envelopes that it makes.

pub mod discovery;
pub mod schemas;
