//! `audit`: what an auditor checks without asking the service.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use mediakeep::app::App;
use mediakeep::audit::chain::{self, Place, Walked};
use mediakeep::audit::log::Checkpoint;
use mediakeep::audit::{signed, tenants};
use mediakeep::config;
use mediakeep_keys::{AuditPublicKey, Ring};
use mediakeep_storage::TenantId;
use serde::Deserialize;
use serde_json::Value;

use crate::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Follow every tenant's chain from its first row to its last.
    Verify {
        /// A checkpoint that was kept elsewhere: it tells whether rows were cut off since.
        #[arg(long, value_name = "FILE")]
        checkpoint: Option<PathBuf>,
    },
    /// Check the signature of a manifest, a checkpoint or an isolation report.
    VerifyReport {
        /// The document.
        file: PathBuf,
        /// The published keys (/.well-known/mediakeep-audit-keys) in place of the ring.
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
    },
}

/// The longest document that is read.
const MOST: u64 = 64 << 20;

impl Audit {
    pub(crate) async fn run(self, config: Option<&Path>) -> Result<(), Failure> {
        match self {
            Self::Verify { checkpoint } => verify(&super::open(config).await?, checkpoint.as_deref()).await,
            Self::VerifyReport { file, keys } => {
                let keys = match keys {
                    Some(file) => signed::keys_of(&document(&file)?),
                    None => Ring::load(&config::load(config)?.keys.ring)?.audit_public_keys().cloned().collect(),
                };
                verify_report(&file, &keys)
            }
        }
    }
}

/// A line for each chain that is broken: whose, at which row, and how.
async fn verify(app: &App, kept: Option<&Path>) -> Result<(), Failure> {
    let kept = kept.map(|file| kept_place(app, file)).transpose()?;
    let mut tenants = tenants(app).await?;
    tenants.extend(kept.iter().map(|(tenant, _)| tenant.clone()));
    let (mut rows, mut broken) = (0, false);
    for tenant in &tenants {
        let of_tenant = kept.as_ref().filter(|(of, _)| of == tenant).map(|(_, place)| *place);
        match chain::walk(app, tenant, of_tenant).await? {
            Walked::Whole(place) => rows += place.seq,
            Walked::Broken(at) => {
                println!("{at}");
                broken = true;
            }
        }
    }
    if broken {
        return Err(Failure::Found);
    }
    println!("{rows} rows of {} tenants are as they were sealed", tenants.len());
    Ok(())
}

/// What a checkpoint says. One that is not ours proves nothing, so it is no reason to call the log whole.
fn kept_place(app: &App, file: &Path) -> Result<(TenantId, Place), Failure> {
    let mut document = document(file)?;
    let keys: Vec<_> = app.live().ring.audit_public_keys().cloned().collect();
    if let Err(why) = signed::proven(&mut document, &keys) {
        println!("{}: {why}", file.display());
        return Err(Failure::Found);
    }
    let checkpoint = Checkpoint::deserialize(document).ok();
    let found = checkpoint.and_then(|it| Some((TenantId::parse(&it.tenant).ok()?, it.place)));
    found.ok_or_else(|| Failure::BadUse(format!("{} is no checkpoint", file.display())))
}

fn verify_report(file: &Path, keys: &[AuditPublicKey]) -> Result<(), Failure> {
    let mut document = document(file)?;
    match signed::proven(&mut document, keys) {
        Ok(kid) => {
            println!("{}: the signature of {kid} holds", file.display());
            Ok(())
        }
        Err(why) => {
            println!("{}: {why}", file.display());
            Err(Failure::Found)
        }
    }
}

fn document(file: &Path) -> Result<Value, Failure> {
    let unread = |why: String| Failure::BadUse(format!("cannot read {}: {why}", file.display()));
    let length = std::fs::metadata(file).map_err(|error| unread(error.to_string()))?.len();
    if length > MOST {
        return Err(unread(format!("it has more than {MOST} bytes")));
    }
    let bytes = std::fs::read(file).map_err(|error| unread(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| unread(format!("it is not JSON: {error}")))
}
