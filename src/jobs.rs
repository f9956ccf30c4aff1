//! What the service does when nobody asks: sweep, seal the audit log, read changed settings again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::app::App;
use crate::audit;
use crate::config::{ConfigError, Settings};
use crate::retention::sweep;

/// Audit rows wait no longer than a second for their place in the chain.
const SEAL: Duration = Duration::from_millis(500);

/// So many rows are sealed at a time.
const SEAL_STEP: usize = 1_000;

/// So often the files of settings and ring are looked at.
const LOOK_AT_FILES: Duration = Duration::from_secs(2);

/// How settings are read again, and which files tell that they have changed.
pub struct Reload {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Reads the settings.
    pub read: Box<dyn Fn() -> Result<Settings, ConfigError> + Send + Sync>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("files", &self.files).finish_non_exhaustive()
    }
}

/// The jobs of a service.
#[derive(Debug)]
pub struct Jobs {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Jobs {
    /// Starts them.
    pub fn start(app: &Arc<App>, reload: Option<Reload>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut tasks = vec![
            tokio::spawn(sweeping(app.clone(), stopped.clone())),
            tokio::spawn(sealing(app.clone(), stopped.clone())),
        ];
        if let Some(reload) = reload {
            tasks.push(tokio::spawn(reloading(app.clone(), reload, stopped)));
        }
        Self { stop, tasks }
    }

    /// Stops them, each at the end of its step.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

async fn sweeping(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let interval = app.settings.retention.sweep_interval.std();
    while pause(interval, &mut stopped).await {
        if let Err(error) = sweep::sweep(&app).await {
            error!(error = %error, "the sweep stopped; the next one goes on: {error}");
        }
    }
}

async fn sealing(app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    loop {
        let going_on = pause(SEAL, &mut stopped).await;
        if let Err(error) = audit::flush(&app).await {
            warn!(error = %error, "sampled reads are lost to the audit log: {error}");
        }
        loop {
            match app.index.seal_audit(SEAL_STEP).await {
                Ok(sealed) if sealed == SEAL_STEP => {}
                Ok(_) => break,
                Err(error) => {
                    warn!(error = %error, "audit rows wait unsealed: {error}");
                    break;
                }
            }
        }
        // The rows of the last requests are sealed too.
        if !going_on {
            return;
        }
    }
}

async fn reloading(app: Arc<App>, reload: Reload, mut stopped: watch::Receiver<bool>) {
    let mut hangups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok();
    let mut seen = stamps(&reload.files);
    loop {
        let asked = tokio::select! {
            going_on = pause(LOOK_AT_FILES, &mut stopped) => {
                if !going_on {
                    return;
                }
                false
            }
            true = hangup(hangups.as_mut()) => true,
        };
        let now = stamps(&reload.files);
        if !asked && now == seen {
            continue;
        }
        seen = now;
        match (reload.read)().and_then(|settings| app.reload(settings)) {
            Ok(()) => info!("keys, callers and tenants were read again"),
            Err(error) => error!(error = %error, "the changed settings cannot be used, the old ones stay: {error}"),
        }
    }
}

async fn hangup(signal: Option<&mut tokio::signal::unix::Signal>) -> bool {
    match signal {
        Some(signal) => signal.recv().await.is_some(),
        None => std::future::pending().await,
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<SystemTime>> {
    files.iter().map(|file| std::fs::metadata(file).and_then(|meta| meta.modified()).ok()).collect()
}

/// Waits; says whether to go on.
async fn pause(time: Duration, stopped: &mut watch::Receiver<bool>) -> bool {
    tokio::select! {
        () = tokio::time::sleep(time) => true,
        _ = stopped.wait_for(|stopped| *stopped) => false,
    }
}
