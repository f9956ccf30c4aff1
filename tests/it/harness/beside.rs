//! A program that runs beside a story and ends with it.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

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
        // A group of its own: it may be a launcher of what does the work, and that ends with it.
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(heard).process_group(0);
        let program = command.spawn().expect("it starts");
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
        if let Some(group) = i32::try_from(self.program.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.program.wait();
    }
}
