//! The calls of the trait, each handed on to the module of its matter.

mod assets;
mod ends;
mod resumable;
mod runs;
mod upkeep;
mod uploads;
mod urls;
