//! Stories told through the front door: a real server on a free port, real callers, a clock to turn.

mod harness;

mod arrows;
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
