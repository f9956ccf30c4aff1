//! mediakeep keeps a run log's media: typed, tenant-scoped, and alive as long as the log that quotes it.
//!
//! A host hands in pictures, audio and files; mediakeep finds out what the bytes are, keeps them for at least as long as any run's log
//! quotes them, and hands them out by URLs that prove who may see them. Two stores stand behind it: bytes in a folder or an object
//! store, and what is known of them in an index ([`mediakeep_storage`]). Secrets and tokens are a crate of their own
//! ([`mediakeep_keys`]). The process itself keeps nothing that a crash may cost.
//!
//! # Three walks
//!
//! **Bytes in.** [`http::upload`] reads the head → [`access`] says who is calling → [`assets::ingest`] claims the idempotency key,
//! announces the upload, stages, hashes and counts the bytes, seals them → [`media`] looks at what they are → the recovery record →
//! one transition of the index makes the asset visible → 201 with its URL and envelope. An upload in parts
//! ([`assets::resumable`]) takes the same walk with its last byte.
//!
//! **Bytes out.** [`http::serve`] → [`assets::fetch`] opens the capability and looks at the row, cached while nothing changes it →
//! [`http::conditional`] → [`http::range`] → the bytes.
//!
//! **The end.** [`jobs`] wakes [`retention::sweep`], which settles what is due: floors are computed anew inside the transition that
//! ends an asset; a blob that nobody holds is condemned, taken out of reach, removed, forgotten, in this order.
//!
//! # What is deliberately absent
//!
//! - No asset is ever asked for without its tenant, and a tenant comes from a credential or an authentic token alone.
//! - No byte comes in but through [`assets::ingest`], none goes out but through [`assets::fetch`].
//! - No state in the process: no session, no counter that matters, no global. Components are built in [`app`] alone.
//! - No actix type outside of [`http`], [`server`] and [`error`]; no argument read outside of `main.rs`, no environment outside of
//!   [`config`].
//! - No answer to a failed capability but one 404; only an authentic token hears that its time is past.
//! - No rule of "older than": nothing is removed because of its age, only because nothing needs it.
//!
//! # Modules in reading order

#[cfg(all(feature = "leaky", not(debug_assertions)))]
compile_error!("the feature leaky breaks a check on purpose: it is for one test, never for a release");

pub mod access;
pub mod app;
pub mod artifacts;
pub mod assets;
pub mod audit;
pub mod base64;
pub mod bundles;
pub mod clock;
pub mod config;
pub mod content;
pub mod error;
pub mod http;
pub mod jobs;
mod json;
pub mod media;
pub mod openwop;
pub mod projection;
pub mod remote;
pub mod retention;
pub mod server;
pub mod telemetry;
