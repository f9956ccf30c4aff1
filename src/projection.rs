//! Pure views of stored things: what a host, an exporter or a log is shown of them. No input and no output here touches a store.

pub mod artifact;
pub mod asset;
pub mod envelope;
pub mod manifest;
pub mod part;
pub mod run;
pub mod speech;
