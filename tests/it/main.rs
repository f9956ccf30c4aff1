//! Stories told through the front door: a real server on a free port, real callers, a clock to turn.

#![expect(unreachable_pub, reason = "a test binary has no outside to be reached from")]

mod harness;

mod arrows;
mod ingest;
mod callers;
mod capabilities;
mod conditionals;
mod delivery;
mod issuers;
mod manifest;
mod openapi;
mod ranges;
mod silence;
mod smoke;
mod streams;
mod surfaces;
mod tenancy;
mod urls;
