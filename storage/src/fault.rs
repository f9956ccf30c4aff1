//! Named moments between two steps, at which a test ends the process as SIGKILL would, or has a step fail or wait.
//!
//! What a crash leaves behind depends on the moment. Luck finds some of them, some of the time; a name finds its one each time. Without
//! the feature `testing` a point is nothing.

/// Ends the process here, if this is the point that [`FAULT_VARIABLE`](crate::testing::FAULT_VARIABLE) names.
#[cfg(feature = "testing")]
pub fn point(name: &str) {
    if crate::testing::fault() == Some(name) {
        // As nothing else, it runs no destructor and no handler, and flushes nothing.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal is on its way: nothing more is done here.
        loop {
            std::thread::park();
        }
    }
}

/// Whether what is done here is to fail: the variable says `fails` and the name.
#[cfg(feature = "testing")]
pub fn fails(name: &str) -> bool {
    crate::testing::fault().and_then(|fault| fault.strip_prefix("fails ")) == Some(name)
}

/// Waits here while a test wants it: the variable says `holds`, the name, and a file. If that file is there, its name gets `.held` at its
/// end, and what is done here goes on once it is gone.
#[cfg(feature = "testing")]
pub async fn held(name: &str) {
    let named = crate::testing::fault().and_then(|fault| fault.strip_prefix("holds ")?.split_once(' '));
    let Some((_, file)) = named.filter(|(point, _)| *point == name) else {
        return;
    };
    let held = std::path::PathBuf::from(format!("{file}.held"));
    if std::fs::rename(file, &held).is_err() {
        return;
    }
    while held.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Nothing.
#[cfg(not(feature = "testing"))]
#[inline(always)]
pub fn held(_: &str) -> std::future::Ready<()> {
    std::future::ready(())
}

/// Never.
#[cfg(not(feature = "testing"))]
#[inline(always)]
pub fn fails(_: &str) -> bool {
    false
}

/// Nothing.
#[cfg(not(feature = "testing"))]
#[inline(always)]
pub fn point(_: &str) {}
