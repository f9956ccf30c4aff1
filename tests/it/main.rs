//! Stories told through the front door: a real server on a free port, real callers, a clock to turn.

#![expect(unreachable_pub, reason = "a test binary has no outside to be reached from")]

mod harness;

mod arrows;
mod audit;
mod auditors;
mod backends;
mod bundles;
mod callers;
mod capabilities;
mod command_line;
mod conditionals;
mod content;
mod crash;
mod delivery;
mod denied;
mod documents;
mod erase;
mod faults;
mod forks;
mod full_disk;
mod holds;
mod ingest;
mod isolation;
mod issuers;
mod lists;
mod manifest;
mod middle;
mod openapi;
mod power;
mod preview;
mod quickstart;
mod ranges;
mod rates;
mod rebuild;
mod recovery;
mod references;
mod remote;
mod retention;
mod revocation;
mod runs;
mod service;
mod settings;
mod silence;
mod slow;
mod smoke;
mod sniffer;
mod streams;
mod stress;
mod surfaces;
mod sweep;
mod tenancy;
mod urls;
