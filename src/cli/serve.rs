//! `serve`: the service, until it is told to stop.

use std::path::Path;

use mediakeep::app::{self, App};
use mediakeep::clock::Clock;
use mediakeep::config::{self, Settings};
use mediakeep::jobs::Reload;
use mediakeep::retention::late;
use mediakeep::server::{self, Running};
use mediakeep::telemetry;
use tracing::info;

use crate::Failure;

/// A start may end so many assets without being asked.
const UNASKED_EXPIRY: usize = 1_000;

pub(crate) async fn run(config: Option<&Path>, accept_expiry: Option<usize>) -> Result<(), Failure> {
    let settings = config::load(config)?;
    telemetry::start_log(&settings.telemetry.log);
    check_expiry(&settings, accept_expiry).await?;
    let named = config.map(Path::to_owned);
    let file = config::file_in_use(config);
    let reload = Reload { file, read: Box::new(move || config::load(named.as_deref())) };
    let running = server::start(settings, Clock::System, Some(reload)).await?;
    info!(address = %running.address, base_url = running.app.base_url, "listening on {}", running.address);
    until_told(running).await
}

/// Serves until SIGTERM or SIGINT; then finishes what is under way.
pub(crate) async fn until_told(running: Running) -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    info!("stopping: requests under way are finished");
    running.stop().await;
    Ok(())
}

/// A slip in the settings must not end a thousand assets before anybody has looked; what is due without one needs nobody's leave. Who
/// accepts so many accepts fewer.
async fn check_expiry(settings: &Settings, accepted: Option<usize>) -> Result<(), Failure> {
    app::callers(settings)?;
    if !settings.keys.ring.exists() {
        return Ok(());
    }
    let app = App::open(settings.clone(), Clock::System, "").await?;
    let due = late::count_unforeseen(&app).await?;
    app.close().await;
    if due > accepted.unwrap_or(0).max(UNASKED_EXPIRY) {
        return Err(Failure::BadUse(format!(
            "{due} assets would expire at once that would go on under the settings of before: look at `mediakeep sweep --dry-run`, then start with --accept-expiry {due}"
        )));
    }
    Ok(())
}
