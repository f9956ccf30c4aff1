//! `index`: making the index anew from the store.

use std::path::Path;

use clap::Subcommand;
use mediakeep::app::App;
use mediakeep::clock::Clock;
use mediakeep::config;
use mediakeep::retention::rebuild::{self, UNKNOWN};

use crate::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Index {
    /// Make a new index from the store alone, also one of another kind. Stop the service first, and start it on the new index.
    Rebuild {
        /// Where: sled:///folder or postgres://…; absent or empty.
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

impl Index {
    pub(crate) async fn run(self, config: Option<&Path>) -> Result<(), Failure> {
        let Self::Rebuild { to } = self;
        rebuild(config, to).await
    }
}

async fn rebuild(config: Option<&Path>, to: String) -> Result<(), Failure> {
    let mut settings = config::load(config)?;
    settings.index.url = to.into();
    let base_url = settings.server.public_base_url.clone();
    let app = App::open_for_rebuild(settings, Clock::System, &base_url).await?;
    let done = rebuild::rebuild(&app).await;
    app.close().await;
    let report = done?;
    for bad in &report.unreadable {
        println!("{}: does not read: {}", bad.place, bad.reason);
    }
    for (tenant, asset) in &report.without_bytes {
        println!("{tenant} {asset}: its bytes are not in the store");
    }
    println!(
        "{} tenants, {} runs, {} assets, {} references, {} artifacts, {} holds; {} blobs that no asset holds",
        report.tenants, report.runs, report.assets, report.references, report.artifacts, report.holds, report.orphans
    );
    if report.doubtful > 0 {
        println!("{} blobs may belong to what could not be read: they stay", report.doubtful);
    }
    UNKNOWN.iter().for_each(|what| println!("not in a store: {what}"));
    if report.is_whole() { Ok(()) } else { Err(Failure::Found) }
}
