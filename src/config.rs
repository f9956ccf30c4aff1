//! Settings: defaults, then a file, then the environment. The only room that reads the environment.
//!
//! A name that is not a setting stops the start with its name and where it stands, and so does a value that this version cannot
//! keep: a setting that is read and then ignored would be a lie.

use std::path::{Path, PathBuf};

use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};

pub mod address;
mod check;
mod credentials;
pub mod settings;
pub mod units;

pub use settings::Settings;

/// Why the settings cannot be used. One sentence, with what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// The file that is read when none is named.
pub const DEFAULT_FILE: &str = "mediakeep.toml";

/// What the names of our environment variables begin with.
const PREFIX: &str = "MEDIAKEEP__";

/// Reads the settings: the file named, else `mediakeep.toml` where it exists, then `MEDIAKEEP__SECTION__KEY`.
pub fn load(file: Option<&Path>) -> Result<Settings, ConfigError> {
    read(Figment::new(), file_in_use(file).as_deref())
}

/// Reads the settings of a command that has its own in place of the defaults, and that no file changes but one that is named.
pub fn load_over(own: &Settings, file: Option<&Path>) -> Result<Settings, ConfigError> {
    read(Figment::from(Serialized::defaults(own)), file)
}

/// The file that [`load`] reads, if there is one.
pub fn file_in_use(named: Option<&Path>) -> Option<PathBuf> {
    let default = Path::new(DEFAULT_FILE);
    named.map(Path::to_owned).or_else(|| default.exists().then(|| default.to_owned()))
}

fn read(mut figment: Figment, file: Option<&Path>) -> Result<Settings, ConfigError> {
    if let Some(file) = file {
        if !file.is_file() {
            return Err(ConfigError(format!("there is no settings file {}: name one that exists", file.display())));
        }
        figment = figment.merge(Toml::file_exact(file));
    }
    figment = figment.merge(Env::prefixed(PREFIX).split("__"));
    let settings: Settings = figment.extract().map_err(|error| ConfigError(sentence(&error)))?;
    match check::refusal(&settings) {
        None => Ok(settings),
        Some(refusal) => Err(ConfigError(format!("{refusal}{}", source(&figment, refusal.key)))),
    }
}

/// One line, whatever the file's own parser has to say. It quotes what it cannot read, be it a database's address with its password.
fn sentence(error: &figment::Error) -> String {
    let lines = error.to_string();
    let said = lines.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "|");
    said.map(address::without_databases).collect::<Vec<_>>().join(" ")
}

/// Where the setting was set, behind a sentence; nothing where it has its default.
fn source(figment: &Figment, key: &str) -> String {
    let Some(metadata) = figment.find_metadata(key) else {
        return String::new();
    };
    match metadata.source.as_ref().and_then(|source| source.file_path()) {
        Some(file) => format!(" (in {})", file.display()),
        None if metadata.name.contains("environment") => {
            format!(" (in {PREFIX}{})", key.to_uppercase().replace('.', "__"))
        }
        None => String::new(),
    }
}

/// What object stores' own tools read from the environment, for the store that `store.url` names: credentials, regions, endpoints.
pub fn store_environment() -> Result<Vec<(String, String)>, ConfigError> {
    let theirs = |name: &String| STORES.iter().any(|prefix| name.starts_with(prefix));
    let mut found: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, value)| theirs(name) && !value.is_empty())
        .collect();
    found.sort();
    credentials::add_from_file(&mut found)?;
    Ok(found)
}

/// What the names of those variables begin with.
const STORES: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// The variable that `put` takes its API key from.
pub fn key_from_environment() -> Option<String> {
    std::env::var("MEDIAKEEP_KEY").ok().filter(|key| !key.is_empty())
}

/// The folder in which `put` remembers what it has begun: `mediakeep` where the user's programs keep their state.
pub fn state_folder() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")))?;
    Some(state.join("mediakeep"))
}
