//! The commands, one file each.

use std::path::Path;

use mediakeep::app::App;
use mediakeep::clock::Clock;
use mediakeep::config;
use serde::Serialize;

use crate::Failure;

pub(crate) mod access;
pub(crate) mod audit;
pub(crate) mod copy;
pub(crate) mod index;
pub(crate) mod keys;
pub(crate) mod put;
pub(crate) mod quickstart;
pub(crate) mod sample;
pub(crate) mod serve;
pub(crate) mod upkeep;

/// Opens the parts for a command that works on the stores by itself. It makes none that is missing.
async fn open(config: Option<&Path>) -> Result<App, Failure> {
    let settings = config::load(config)?;
    let base_url = settings.server.public_base_url.clone();
    Ok(App::open_existing(settings, Clock::System, &base_url).await?)
}

/// Prints the settings in force, as a file that would set them.
pub(crate) fn settings(config: Option<&Path>) -> Result<(), Failure> {
    let settings = config::load(config)?;
    let text =
        toml::to_string(&settings).map_err(|error| Failure::BadUse(format!("cannot print the settings: {error}")))?;
    print!("{text}");
    Ok(())
}

/// Prints a document.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document).map_err(|error| Failure::BadUse(error.to_string()))?;
    println!("{text}");
    Ok(())
}
