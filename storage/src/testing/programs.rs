//! The programs of a PostgreSQL server: where they are, or how they come here.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where Debian and its kin keep them, one folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// What a system without them is told.
const MISSING: &str = "PostgreSQL's server programs are not here: install Debian's package postgresql, or put the folder of another \
                       system's initdb and pg_ctl on PATH, or name a server in TEST_POSTGRES_URL whose user may create databases";

/// Tells Debian's package to make no server of the whole system; who holds this file's lock is installing the package.
const NO_MAIN_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/none-of-mediakeep.conf";

/// The folder that they are in; installs them where this user may.
pub(super) fn folder() -> Result<PathBuf, String> {
    // A package that is being unpacked by another test process has its programs before they work.
    if let Ok(installing) = File::open(NO_MAIN_CLUSTER) {
        let _ = installing.lock_shared();
    }
    if let Some(folder) = find() {
        return Ok(folder);
    }
    if rustix::process::geteuid().is_root() && on_path("apt-get").is_some() {
        install().map_err(|error| format!("{MISSING} (apt-get: {error})"))?;
    }
    find().ok_or_else(|| MISSING.to_owned())
}

fn find() -> Option<PathBuf> {
    newest(Path::new(DEBIAN)).or_else(|| on_path("initdb"))
}

/// The programs of the newest version below this folder.
fn newest(folder: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let with_number = versions.filter_map(|path| {
        let version: u32 = path.file_name()?.to_str()?.parse().ok()?;
        path.join("bin/initdb").is_file().then(|| (version, path.join("bin")))
    });
    with_number.max().map(|(_, programs)| programs)
}

/// The first folder of PATH that has this program.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join(program).is_file())
}

/// Installs Debian's package, and nothing that would run by itself.
fn install() -> io::Result<()> {
    let settings = Path::new(NO_MAIN_CLUSTER);
    fs::create_dir_all(settings.parent().unwrap_or(settings))?;
    let mut settings = File::options().create(true).append(true).open(settings)?;
    settings.lock()?;
    if find().is_some() {
        return Ok(());
    }
    let _ = writeln!(io::stderr(), "installing the package postgresql, which the tests need");
    settings.write_all(b"create_main_cluster = false\n")?;
    apt_get(&["update"])?;
    apt_get(&["install", "--yes", "--no-install-recommends", "postgresql"])
}

fn apt_get(arguments: &[&str]) -> io::Result<()> {
    let mut command = Command::new("apt-get");
    // Somebody else may be installing something at this moment.
    command.args(["-qq", "-o", "DPkg::Lock::Timeout=300"]).args(arguments);
    let output = command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_highest_number_that_has_a_server() {
        let folder = tempfile::tempdir().expect("a folder");
        for version in ["9", "15", "17", "README"] {
            fs::create_dir_all(folder.path().join(version).join("bin")).expect("a folder");
        }
        for server in ["9", "15"] {
            fs::write(folder.path().join(server).join("bin/initdb"), "").expect("a file");
        }
        assert_eq!(newest(folder.path()), Some(folder.path().join("15/bin")));
        assert_eq!(newest(&folder.path().join("none")), None);
    }
}
