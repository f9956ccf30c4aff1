//! What writes of small files have left that were cut off.
//!
//! [`object_store`] writes a local file under its name, a `#` and a number, and renames it when it is whole. Its lists show no such file, and
//! nothing of it takes one away that a crash has left.

use std::path::Path;
use std::{fs, io};

use super::local::remove_for_good;

/// Between the name of a file and the number.
const HALF: char = '#';

/// Removes those of this file. Their numbers have no gap: each write takes the first that is free.
pub(super) fn remove_of(file: &Path) -> io::Result<()> {
    for number in 1.. {
        let mut half = file.as_os_str().to_owned();
        half.push(format!("{HALF}{number}"));
        match fs::remove_file(half) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            removed => removed?,
        }
    }
    Ok(())
}

/// Removes those of every file of the folder whose name is before this one.
pub(super) fn remove_before(folder: &Path, name: &str) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|half| half.contains(HALF) && half < name) {
            remove_for_good(&entry.path())?;
        }
    }
    Ok(())
}
