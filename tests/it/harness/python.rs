//! Programs of the Python package registry, each installed once beside what was built. A machine without Python or without a way to that
//! registry fails the stories that need one.

use std::path::PathBuf;
use std::process::Command;

use super::once::{self, must};

/// A program of a package at a version; `asked` is what the registry is asked for, with extras if it needs them.
pub fn installed(package: &str, version: &str, asked: &str, program: &str) -> PathBuf {
    let home = once::installed(&format!("{package}-{version}"), |home| {
        let needed = "python3 with venv (Debian: python3-venv) and, the first time, the Python package registry";
        must(Command::new("python3").args(["-m", "venv"]).arg(home), needed);
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", &format!("{asked}=={version}")]);
        must(&mut pip, needed);
    });
    home.join("bin").join(program)
}
