//! Settings: defaults, then a file, then the environment. The only room that reads the environment.
//!
//! A name that is not a setting stops the start with its name and where it stands, and so does a value that this version cannot
//! keep: a setting that is read and then ignored would be a lie.

use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format, Toml};

mod check;
pub mod settings;
pub mod units;

pub use settings::Settings;

/// Why the settings cannot be used. One sentence, with what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "mediakeep.toml";

/// Reads the settings: the file named, else `mediakeep.toml` where it exists, then `MEDIAKEEP__SECTION__KEY`.
pub fn load(file: Option<&Path>) -> Result<Settings, ConfigError> {
    let settings = read(file)?;
    check::check(&settings)?;
    Ok(settings)
}

/// The file that [`load`] reads, if there is one.
pub fn file_in_use(named: Option<&Path>) -> Option<PathBuf> {
    let default = Path::new(DEFAULT_FILE);
    named.map(Path::to_owned).or_else(|| default.exists().then(|| default.to_owned()))
}

fn read(file: Option<&Path>) -> Result<Settings, ConfigError> {
    let mut figment = Figment::new();
    if let Some(file) = file_in_use(file) {
        if !file.is_file() {
            return Err(ConfigError(format!("there is no settings file {}: name one that exists", file.display())));
        }
        figment = figment.merge(Toml::file_exact(file));
    }
    figment.merge(Env::prefixed("MEDIAKEEP__").split("__")).extract().map_err(|error| ConfigError(error.to_string()))
}

/// The variable that `put` takes its API key from.
pub fn key_from_environment() -> Option<String> {
    std::env::var("MEDIAKEEP_KEY").ok().filter(|key| !key.is_empty())
}
