//! A program that runs beside a story and ends with it.

use std::process::{Child, Command, Stdio};

/// Ends with this value.
#[derive(Debug)]
pub struct Beside(Child);

impl Beside {
    /// Starts it; what it says is nobody's to read.
    pub fn start(command: &mut Command) -> Self {
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(silent.spawn().expect("it starts"))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
