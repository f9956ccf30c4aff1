//! `sweep` and `verify`: looking after the stores while no server runs.

use std::path::Path;

use mediakeep::retention::verify::{self as verifier, Depth};
use mediakeep::retention::{late, sweep as sweeper};
use mediakeep_storage::quota::Counted;

use super::{open, print_json};
use crate::Failure;

pub(crate) async fn sweep(config: Option<&Path>, dry_run: bool) -> Result<(), Failure> {
    let app = open(config).await?;
    if dry_run {
        let due = late::count(&app).await?;
        println!("{due} assets would expire");
        return Ok(());
    }
    print_json(&sweeper::sweep(&app).await?)
}

pub(crate) async fn verify(config: Option<&Path>, depth: Depth) -> Result<(), Failure> {
    let app = open(config).await?;
    let findings = verifier::verify(&app, depth).await?;
    for (what, blobs) in [
        ("the bytes are missing", &findings.missing),
        ("the bytes have another size", &findings.wrong_size),
        ("the bytes have another digest", &findings.wrong_digest),
        ("a live asset's blob has no row", &findings.unheld),
        ("bytes without a row (pending)", &findings.pending),
    ] {
        for (tenant, blob) in blobs {
            println!("{tenant} {blob}: {what}");
        }
    }
    for (tenant, blob) in &findings.recorded {
        println!("{tenant} {blob}: a recovery record names it, `index rebuild` would bring it back");
    }
    for (tenant, Counted { kept, counted }) in &findings.miscounted {
        println!(
            "{tenant}: its use is kept as {} bytes of {} assets, and its rows come to {} bytes of {}",
            kept.bytes, kept.assets, counted.bytes, counted.assets
        );
    }
    println!(
        "{} blobs compared, {} without a row (pending), {} of which recovery records name",
        findings.blobs,
        findings.pending.len(),
        findings.recorded.len()
    );
    if findings.is_clean() { Ok(()) } else { Err(Failure::Found) }
}
