//! Stories told through the front door: a real server on a free port, real callers, a clock to turn.

mod harness;

mod arrows;
mod callers;
mod conditionals;
mod delivery;
mod issuers;
mod openapi;
mod ranges;
mod smoke;
mod surfaces;
mod tenancy;
mod urls;
