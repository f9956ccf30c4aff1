//! What the documents give to hosts' engineers, run: the examples as programs, the pages' code in their languages.

mod examples;
mod flaky;
mod pages;
