//! Named moments between two steps, at which a test ends the process as SIGKILL would, or has a step fail.
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
