//! A program that runs beside a story and ends with it.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, Command, Stdio};

/// Ends with this value.
#[derive(Debug)]
pub struct Beside {
    program: Child,
    complaints: File,
}

impl Beside {
    /// Starts it; what it complains about is kept for [`Self::complaints`].
    pub fn start(command: &mut Command) -> Self {
        let complaints = tempfile::tempfile().expect("a file");
        let heard = complaints.try_clone().expect("the same file");
        let program = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(heard).spawn().expect("it starts");
        Self { program, complaints }
    }

    /// What it wrote where errors go, for a story that waits for it in vain.
    pub fn complaints(&self) -> String {
        let (mut file, mut said) = (&self.complaints, String::new());
        file.rewind().expect("a file that can be read");
        file.read_to_string(&mut said).expect("text");
        said
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
