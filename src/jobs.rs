//! What the service does when nobody asks: sweep, seal the audit log, read changed settings again.

use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::app::App;
use crate::audit::{self, Due};
use crate::config::{ConfigError, Settings};
use crate::retention::{late, owed, sweep};

/// So often sampled reads are written and audit rows sealed: none waits longer than a second for its place in the chain.
const SEAL: Duration = Duration::from_millis(500);

/// So many rows are sealed at a time.
const SEAL_STEP: usize = 1_000;

/// The files of settings and ring are looked at no more often than that, which costs a few calls of the system.
const LOOK_MOST: Duration = Duration::from_millis(200);

/// And no less often.
const LOOK_LEAST: Duration = Duration::from_secs(2);

/// The first sweep does not wait for a long interval to pass: what came due while the service was down is due now.
const FIRST_SWEEP: Duration = Duration::from_secs(60);

/// How settings are read again. That they have changed is told by their file, and by the files of keys that they name.
pub struct Reload {
    /// The settings file, if there is one.
    pub file: Option<PathBuf>,
    /// Reads the settings.
    pub read: Box<dyn Fn() -> Result<Settings, ConfigError> + Send + Sync>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The jobs of a service.
#[derive(Debug)]
pub struct Jobs {
    app: Arc<App>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Jobs {
    /// Starts them.
    pub fn start(app: &Arc<App>, reload: Option<Reload>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = vec![
            tokio::spawn(sweeping(app.clone(), stopped.clone())),
            tokio::spawn(flushing(app.clone(), stopped.clone())),
            tokio::spawn(sealing(app.clone(), stopped.clone())),
        ];
        if let Some(reload) = reload {
            tasks.push(tokio::spawn(reloading(app.clone(), reload, stopped)));
        }
        Self { app: app.clone(), stop, tasks }
    }

    /// Stops them, each at the end of its step. The rows of the last requests are sealed too.
    pub async fn stop(self) {
        self.app.stop();
        let _ = self.stop.send(true);
        for task in self.tasks {
            let _ = task.await;
        }
        seal(&self.app).await;
    }
}

async fn sweeping(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let interval = app.settings.retention.sweep_interval.std();
    let mut wait = interval.min(FIRST_SWEEP);
    if let Some(Err(error)) = survived("note of the terms", late::note_longer(&app)).await {
        warn!(error = %error, "the store does not know yet how long things are kept now: {error}");
    }
    // What the last process owed the store when it ended.
    if let Some(Err(error)) = survived("writing of recovery records", owed::drain(&app)).await {
        warn!(error = %error, "recovery records wait for the next sweep: {error}");
    }
    while pause(wait, &mut stopped).await {
        wait = interval;
        if let Some(Err(error)) = survived("sweep", sweep::sweep(&app)).await {
            error!(error = %error, "the sweep did not do all; the next one goes on: {error}");
        }
    }
}

/// By itself, lest what it takes to find whom a refusal concerns keep rows from their place.
async fn flushing(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    loop {
        let going_on = pause(SEAL, &mut stopped).await;
        let due = if going_on { Due::Now } else { Due::All };
        if let Some(Err(error)) = survived("flush of reads and refusals", audit::flush(&app, due)).await {
            warn!(error = %error, "reads and refusals wait to be written to the audit log: {error}");
        }
        if !going_on {
            return;
        }
    }
}

async fn sealing(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    while pause(SEAL, &mut stopped).await {
        seal(&app).await;
    }
}

async fn seal(app: &App) {
    if let Some(Err(error)) = survived("note of recovery records", owed::note_paid(app)).await {
        warn!(error = %error, "recovery records will be written once more: {error}");
    }
    loop {
        match survived("sealing of the audit log", app.index.seal_audit(SEAL_STEP)).await {
            Some(Ok(sealed)) if sealed == SEAL_STEP => {}
            Some(Err(error)) => {
                warn!(error = %error, "audit rows wait unsealed: {error}");
                return;
            }
            Some(Ok(_)) | None => return,
        }
    }
}

async fn reloading(app: Arc<App>, reload: Reload, mut stopped: watch::Receiver<bool>) {
    let every = look_every(app.settings.capabilities.revocation_lag.std());
    let mut hangups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok();
    // Nothing was seen yet: a change that came while the service started is found at the first look.
    let mut seen = None;
    loop {
        let asked = tokio::select! {
            going_on = pause(every, &mut stopped) => {
                if !going_on {
                    return;
                }
                false
            }
            true = hangup(hangups.as_mut()) => true,
        };
        let now = stamps(&watched(&reload, &app));
        if !asked && seen.as_ref() == Some(&now) {
            continue;
        }
        let first = seen.replace(now).is_none();
        let before = app.live();
        match (reload.read)().and_then(|settings| app.reload(settings)) {
            Ok(idle) => {
                if asked || !first {
                    info!("keys, callers and tenants were read again");
                }
                if !idle.is_empty() {
                    warn!(sections = ?idle, "changes of {} take a restart", idle.join(", "));
                }
                let after = app.live();
                let telling = audit::ring_changed(&app, &before.ring, &after.ring);
                if let Some(Err(error)) = survived("telling of the ring's keys", telling).await {
                    warn!(error = %error, "not every tenant's audit log tells of the ring's other keys: {error}");
                }
                // The settings may name other files now; those were read a moment ago.
                seen = Some(stamps(&watched(&reload, &app)));
            }
            Err(error) => error!(error = %error, "the changed settings cannot be used, the old ones stay: {error}"),
        }
    }
}

/// How often the files are looked at, so that a key that was taken out of the ring opens nothing after the time that a revocation may take:
/// half of it is left for the reading.
fn look_every(lag: Duration) -> Duration {
    (lag / 2).clamp(LOOK_MOST, LOOK_LEAST)
}

/// The settings file, and the files of keys that the settings name.
fn watched(reload: &Reload, app: &App) -> Vec<PathBuf> {
    let live = app.live();
    let issuers = live.settings.access.issuers.iter();
    let keys = issuers.flat_map(|issuer| issuer.key_file.iter().chain(&issuer.jwks_file)).cloned();
    reload.file.iter().cloned().chain([live.settings.keys.ring.clone()]).chain(keys).collect()
}

/// Runs one round of a job to its end. A round that panics is logged and costs no more than itself.
async fn survived<T>(what: &str, round: impl Future<Output = T>) -> Option<T> {
    let ended = AssertUnwindSafe(round).catch_unwind().await;
    if ended.is_err() {
        error!("a {what} panicked; the next one starts afresh");
    }
    ended.ok()
}

async fn hangup(signal: Option<&mut tokio::signal::unix::Signal>) -> bool {
    match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => std::future::pending().await,
    }
}

/// By what a changed file is told: one that was replaced has another inode, whatever time it brings along.
type Stamp = Option<(u64, u64, Option<SystemTime>)>;

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |file: &Path| std::fs::metadata(file).ok().map(|meta| (meta.ino(), meta.len(), meta.modified().ok()));
    files.iter().map(|file| stamp(file)).collect()
}

/// Waits; says whether to go on.
async fn pause(time: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        _ = stopped.wait_for(|stopped| *stopped) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_looked_at_within_half_the_lag_but_neither_all_the_time_nor_hardly_ever() {
        for (lag, every) in [(1, 200), (400, 200), (1_000, 500), (3_000, 1_500), (4_000, 2_000), (3_600_000, 2_000)] {
            assert_eq!(look_every(Duration::from_millis(lag)), Duration::from_millis(every), "{lag} ms");
        }
    }
}
