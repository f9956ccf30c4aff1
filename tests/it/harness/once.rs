//! What is installed once beside what was built, whichever story asks first and in whichever process: each pass over the stories is one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of that name, which `install` has filled to its end, now or before; half of it is made anew.
pub fn installed(name: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let home = parent.join(name);
    let turn = File::create(parent.join(format!("{name}.lock"))).expect("a file beside what was built");
    turn.lock().expect("a lock");
    let done = home.join("installed");
    if !done.exists() {
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).expect("a folder");
        install(&home);
        fs::write(&done, "").expect("a file");
    }
    home
}

/// Runs it to its end; a story that needs what it brings fails without it.
pub(super) fn must(command: &mut Command, needed: &str) {
    let outcome = match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    unreachable!("this story needs {needed}: {command:?}: {outcome}");
}
