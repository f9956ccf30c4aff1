//! The edge: routes, and what of HTTP stands behind them. The contract is the OpenAPI document, made from these handlers.
//!
//! A handler's signature says who may call it ([`extract::Caller`]); the checks come in the order 401, 403, 404, so that a 403 never
//! depends on what exists. Every refusal is one closed JSON object ([`crate::error`]), also for routes and methods that there are not.
//!
//! Modules in reading order:

pub mod accept;
pub mod artifacts;
pub mod assets;
pub mod audit;
pub mod begun;
pub mod body;
pub mod bundles;
pub mod conditional;
pub mod content;
pub mod disposition;
pub mod extract;
pub mod guard;
pub mod isolation;
pub mod manifest;
pub mod meta;
pub mod openapi;
pub mod openwop;
pub mod paging;
pub mod range;
mod redirect;
pub mod routes;
pub mod retention;
pub mod revocation;
pub mod runs;
pub mod serve;
pub mod upload;
pub mod uploads;
pub mod urls;
pub mod usage;
