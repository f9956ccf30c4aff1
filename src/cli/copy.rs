//! `copy`: the store's bytes and records in another store.

use std::path::Path;

use indicatif::{HumanBytes, ProgressBar};
use mediakeep::app::App;
use mediakeep::config;
use mediakeep::retention::copy;

use crate::Failure;

pub(crate) async fn run(config: Option<&Path>, to: &str) -> Result<(), Failure> {
    let settings = config::load(config)?;
    let (from, to) = App::open_to_copy(&settings, to).await?;
    let bar = ProgressBar::new_spinner();
    let report = copy::copy(&from, &to, |report| {
        bar.set_message(format!("{} blobs, {}", report.blobs + report.already, HumanBytes(report.bytes)));
        bar.tick();
    })
    .await;
    bar.finish_and_clear();
    let report = report?;
    for (tenant, blob) in &report.wrong {
        println!("{tenant} {blob}: the bytes have another digest than their record; not copied");
    }
    println!(
        "{} blobs copied ({} bytes), {} were there already; {} records copied; {} objects removed that the store has no more",
        report.blobs, report.bytes, report.already, report.records, report.removed
    );
    if report.wrong.is_empty() { Ok(()) } else { Err(Failure::Found) }
}
