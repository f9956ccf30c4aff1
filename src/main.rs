//! The command line. Exit codes: 0 done, 1 found something wrong, 2 bad use, 3 a store was not reachable.

#![expect(clippy::print_stdout, reason = "a command line speaks on stdout")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mediakeep::app::StartError;
use mediakeep::config::ConfigError;
use mediakeep::retention::verify::Depth;
use mediakeep_storage::StorageError;

mod cli;

#[derive(Debug, Parser)]
#[command(
    name = "mediakeep",
    version,
    about = "Keeps a run log's media: typed, tenant-scoped, and alive exactly as long as the log that quotes it"
)]
struct Arguments {
    /// The settings file; mediakeep.toml where it exists.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try it: needs no configuration, keeps everything in ./data, serves until stopped. A settings file counts only if it is named.
    Quickstart {
        /// What to ingest; a sample of its own if nothing is named.
        files: Vec<PathBuf>,
    },
    /// Serve.
    Serve {
        /// Start although so many assets would expire at once, as `sweep --dry-run` says.
        #[arg(long, value_name = "N")]
        accept_expiry: Option<usize>,
    },
    /// Send files to a server.
    Put(cli::put::Put),
    /// End what nothing keeps, and remove bytes that nobody holds.
    Sweep {
        /// Only say how many assets would end.
        #[arg(long)]
        dry_run: bool,
    },
    /// Compare the index with the store, both ways.
    Verify {
        /// Read every byte and compare the digests too.
        #[arg(long)]
        deep: bool,
    },
    /// The index, made anew.
    #[command(subcommand)]
    Index(cli::index::Index),
    /// Copy the store's bytes and records to another store, digests compared; begun again, it goes on where it stopped.
    Copy {
        /// Where: file:///folder, s3://bucket/prefix, gs://… or az://…; empty, or a copy that was begun.
        #[arg(long, value_name = "URL")]
        to: String,
    },
    /// The key ring.
    #[command(subcommand)]
    Keys(cli::keys::Keys),
    /// The audit log.
    #[command(subcommand)]
    Audit(cli::audit::Audit),
    /// Who may call.
    #[command(subcommand)]
    Access(cli::access::Access),
    /// Print the OpenAPI document.
    Openapi,
    /// Print the settings in force.
    Settings,
}

/// Why a command did not do its work.
#[derive(Debug)]
enum Failure {
    /// It found something wrong, and has said what.
    Found,
    /// It was used wrongly, or its settings are not what they should be.
    BadUse(String),
    /// A store was not reachable.
    Unreachable(String),
}

fn main() -> ExitCode {
    // Whatever this program makes is for its own user alone: bytes, index and keys of others who trusted it.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("mediakeep: cannot start: {error}");
            return ExitCode::from(3);
        }
    };
    let config = arguments.config.as_deref();
    let done = runtime.block_on(async {
        match arguments.command {
            Command::Quickstart { files } => cli::quickstart::run(config, &files).await,
            Command::Serve { accept_expiry } => cli::serve::run(config, accept_expiry).await,
            Command::Put(put) => put.run().await,
            Command::Sweep { dry_run } => cli::upkeep::sweep(config, dry_run).await,
            Command::Verify { deep } => {
                let depth = if deep { Depth::Digests } else { Depth::Sizes };
                cli::upkeep::verify(config, depth).await
            }
            Command::Index(index) => index.run(config).await,
            Command::Copy { to } => cli::copy::run(config, &to).await,
            Command::Keys(keys) => keys.run(config).await,
            Command::Audit(audit) => audit.run(config).await,
            Command::Access(access) => access.run(),
            Command::Openapi => cli::print_json(&mediakeep::http::openapi::document()),
            Command::Settings => cli::settings(config),
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Found) => ExitCode::from(1),
        Err(Failure::BadUse(sentence)) => {
            eprintln!("mediakeep: {sentence}");
            ExitCode::from(2)
        }
        Err(Failure::Unreachable(sentence)) => {
            eprintln!("mediakeep: {sentence}");
            ExitCode::from(3)
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::BadUse(error.to_string())
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::BadAddress(sentence) => Self::BadUse(sentence),
            other => Self::Unreachable(other.to_string()),
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => error.into(),
            StartError::Storage(error) => error.into(),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Unreachable(error.to_string())
    }
}
