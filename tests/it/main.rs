//! Stories told through the front door: a real server on a free port, real callers, a clock to turn.

mod harness;

mod arrows;
mod command_line;
mod crash;
mod lists;
mod quickstart;
mod references;
mod retention;
mod runs;
mod service;
mod settings;
mod smoke;
mod sweep;
