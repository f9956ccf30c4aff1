//! `keys`: the ring that signs capability URLs.

use std::path::Path;

use clap::Subcommand;
use mediakeep::app::{self, App, StartError};
use mediakeep::clock::Clock;
use mediakeep::config::{self, Settings};
use mediakeep_keys::{KeyError, KeyInfo, Ring, Role};
use mediakeep_storage::audit::{AuditEvent, AuditKind};
use mediakeep_storage::index::NewDurable;
use mediakeep_storage::{AssetRecord, StorageError, Timestamp};
use serde_json::json;

use crate::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a new key, or the first ring. The key verifies at once and signs after keys.activate_after.
    Rotate {
        /// A new audit key in place of a new URL key. It signs at once; what the old one signed can still be verified.
        #[arg(long)]
        audit: bool,
    },
    /// Take a key out of the ring: its URLs open nothing any more, and what an earlier audit key signed proves nothing.
    Retire {
        /// Which.
        kid: String,
        /// Also if live URLs hang on it; their assets get a new durable URL.
        #[arg(long)]
        force: bool,
    },
    /// List the keys.
    List {
        /// Those of manifests, checkpoints and reports in place of those of URLs.
        #[arg(long)]
        audit: bool,
    },
}

/// Assets are read in pages of this size.
const PAGE: usize = 1_000;

impl Keys {
    pub(crate) async fn run(self, config: Option<&Path>) -> Result<(), Failure> {
        let settings = config::load(config)?;
        match self {
            Self::Rotate { audit } => rotate(&settings, audit).await,
            Self::List { audit } => list(&settings, audit),
            Self::Retire { kid, force } => retire(&super::open(config).await?, &kid, force).await,
        }
    }
}

/// Beside data no first ring is made: what was given out under the lost one would be dead, and nobody would know why.
async fn rotate(settings: &Settings, audit: bool) -> Result<(), Failure> {
    let (path, now) = (&settings.keys.ring, Timestamp::now().as_second());
    let ring = if app::first_ring(settings).await? {
        Ring::load(path)?
    } else {
        let before = Ring::load(path)?;
        let rotated = match audit {
            true => before.rotate_audit(now)?,
            false => before.rotate(now, settings.keys.activate_after.as_secs())?,
        };
        // Before it is so: a row too many does less harm than one too few.
        tell_of(settings, &before, &rotated).await;
        rotated.save(path)?;
        rotated
    };
    print_keys(&ring, audit, now);
    Ok(())
}

/// Writes into the audit logs which keys come and go. A service that has the index open does it itself, as soon as it sees the new ring. A
/// key may have to be replaced in a hurry: that the logs cannot be written is said, and does not stand in the way.
async fn tell_of(settings: &Settings, before: &Ring, after: &Ring) {
    let base_url = settings.server.public_base_url.clone();
    let told = match App::open_existing(settings.clone(), Clock::System, &base_url).await {
        Ok(app) => mediakeep::audit::ring_changed(&app, before, after).await.map_err(StartError::from),
        Err(StartError::Storage(StorageError::Locked { .. })) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = told {
        eprintln!("mediakeep: the audit logs do not tell of the new key: {error}");
    }
}

fn list(settings: &Settings, audit: bool) -> Result<(), Failure> {
    let ring = Ring::load(&settings.keys.ring)?;
    print_keys(&ring, audit, Timestamp::now().as_second());
    Ok(())
}

/// Durable URLs are counted in the index; delivery URLs leave no row, so the key stays until the last that it signed is past.
async fn retire(app: &App, kid: &str, force: bool) -> Result<(), Failure> {
    let now = app.now();
    let live = app.live();
    let ring = &live.ring;
    let retired = ring.retire(kid, now.as_second())?;
    let assets = assets_on(app, kid).await?;
    let delivery_until =
        last_delivery(&ring.keys(now.as_second()), kid, &app.settings).filter(|until| *until > now.as_second());
    if !force && (!assets.is_empty() || delivery_until.is_some()) {
        println!("{} live durable URLs hang on {kid}", assets.len());
        if let Some(until) = delivery_until.and_then(|until| Timestamp::from_second(until).ok()) {
            println!("delivery URLs that it signed may live until {until}");
        }
        println!("nothing was changed; --force ends them and gives the assets new durable URLs");
        return Err(Failure::Found);
    }
    let signing = ring.signing_kid(now.as_second());
    for record in &assets {
        let durable = NewDurable { kid: signing.to_owned(), issued_at: now.as_second() };
        let audit = AuditEvent::new(AuditKind::Key, "keys", now).asset(record.id).details(json!({"retired": kid}));
        if let Some(record) = app.index.resign(&record.tenant, record.id, durable, audit).await? {
            mediakeep::assets::library::write_record(app, &record)
                .await
                .map_err(|error| Failure::Unreachable(error.to_string()))?;
        }
    }
    // Before it is so: a row too many does less harm than one too few.
    mediakeep::audit::ring_changed(app, ring, &retired).await?;
    retired.save(&app.settings.keys.ring)?;
    println!("{kid} is retired; {} assets have a new durable URL", assets.len());
    Ok(())
}

async fn assets_on(app: &App, kid: &str) -> Result<Vec<AssetRecord>, Failure> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = app.index.assets(after.clone(), PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(found);
        };
        after = Some((last.tenant.clone(), last.id));
        found.extend(page.into_iter().filter(|record| record.is_live() && record.durable.kid == kid));
    }
}

/// When the last delivery URL ends that the key may have signed: it signed until a later key did. One that was overtaken before its own
/// time came signed none; one that was overtaken within its first second may have.
fn last_delivery(keys: &[KeyInfo], kid: &str, settings: &Settings) -> Option<i64> {
    let place = keys.iter().position(|key| key.kid == kid)?;
    let successor = keys[place + 1..].iter().map(|key| key.activates_at).min()?;
    if successor < keys[place].activates_at {
        return None;
    }
    Some(successor.saturating_add(settings.capabilities.max_delivery.as_secs()))
}

fn print_keys(ring: &Ring, audit: bool, now: i64) {
    if audit {
        for key in ring.audit_public_keys() {
            println!("{}  {}", key.kid(), if key.kid() == ring.audit_kid() { "signs" } else { "verifies" });
        }
        return;
    }
    for key in ring.keys(now) {
        let role = match key.role {
            Role::Signing => "signs",
            Role::Pending => "will sign",
            Role::VerifyOnly => "verifies",
        };
        let time = |second: i64| Timestamp::from_second(second).map_or_else(|_| "?".to_owned(), |at| at.to_string());
        println!("{}  {role}  made {}  active from {}", key.kid, time(key.created_at), time(key.activates_at));
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::BadUse(error.to_string())
    }
}
