//! Programs of the Python package registry, each installed once beside what was built. A machine without Python or without a way to that
//! registry fails the stories that need one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// A program of a package at a version; `asked` is what the registry is asked for, with extras if it needs them.
pub fn installed(package: &str, version: &str, asked: &str, program: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{package}-{version}"));
    let done = home.join("installed");
    if !done.exists() {
        let _ = fs::remove_dir_all(&home);
        let needed = "python3 with venv (Debian: python3-venv) and, the first time, the Python package registry";
        must(Command::new("python3").args(["-m", "venv"]).arg(&home), needed);
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", &format!("{asked}=={version}")]);
        must(&mut pip, needed);
        fs::write(&done, "").expect("a file");
    }
    home.join("bin").join(program)
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
