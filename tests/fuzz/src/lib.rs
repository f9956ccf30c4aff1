//! Fuzzers of the sniffer: one target for each group of its parsers. They build the media module alone, without the server
//! around it: `media.rs` and `media/` here are links to it.
//!
//! `README.md` beside this crate says how to run them; `src/media/fuzz.rs` is what they ask, and asks it of every finding in the ordinary
//! tests too.

#![allow(dead_code, unused_imports, reason = "the server is what uses the rest of the module")]

pub mod media;

pub use libfuzzer_sys;

/// A fuzzer that asks one group.
#[macro_export]
macro_rules! target {
    ($name:literal) => {
        $crate::libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            $crate::media::fuzz::Group::of($name).expect("a group of that name").ask(data);
        });
    };
}
