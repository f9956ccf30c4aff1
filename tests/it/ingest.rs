//! Everything on the way in: the kinds of body, what is refused and how, what is left behind when it is.

mod bodies;
mod corpus;
mod cut_off;
mod digests;
mod envelope;
mod idempotency;
mod inline;
mod limits;
mod logs;
mod lost;
mod members;
mod metadata;
mod multipart;
mod refusals;
mod sharing;
mod tenants;
mod types;
