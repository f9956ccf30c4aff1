//! Files that only their owner may read: opened with a look at who else could, replaced in one step or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::KeyError;
use crate::secret::new_kid;

/// No key file comes near this: a JWK Set of a hundred RSA keys has 60 KB.
const MAX_KEY_FILE: u64 = 1024 * 1024;

/// Group and others, in any way: who can write a secret can choose it.
const OTHERS: u32 = 0o077;

/// The bytes of a key file that its owner alone can read, without one final line feed, which editors add.
pub fn read_key_file(path: impl AsRef<Path>) -> Result<Vec<u8>, KeyError> {
    let bytes = read(path.as_ref())?;
    Ok(bytes.strip_suffix(b"\n").unwrap_or(&bytes).to_vec())
}

/// The bytes of a private file. Its permissions are looked at on the open file, so that it cannot change in between.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let failed = |source| io_error("reading", path, source);
    let file = File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => KeyError::Missing { path: path.to_owned() },
        _ => failed(source),
    })?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(io::Error::other("not a regular file")));
    }
    if metadata.mode() & OTHERS != 0 {
        return Err(KeyError::OpenToOthers { path: path.to_owned(), mode: metadata.mode() & 0o7777 });
    }
    if metadata.len() > MAX_KEY_FILE {
        return Err(KeyError::TooLarge { path: path.to_owned(), limit: MAX_KEY_FILE });
    }
    // Room for all of it at once: a vector that grows leaves unwiped copies behind.
    let size = usize::try_from(metadata.len()).unwrap_or(0);
    let mut bytes = Zeroizing::new(Vec::with_capacity(size + 1));
    file.take(MAX_KEY_FILE).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Writes a file that was not there. Its folder is made (0700) when it is missing.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    let folder = folder_of(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| io_error("making the folder", folder, source))?;
    let staged = Staged::write(folder, path, bytes)?;
    // A link, unlike a rename, never takes the place of a file that another process has just made.
    fs::hard_link(&staged.path, path).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.to_owned() },
        _ => io_error("writing", path, source),
    })?;
    drop(staged);
    sync_folder(folder)
}

/// Puts `bytes` in the place of the file, in one step: a reader, or a crash, finds the old file or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    // Where the path is a link, the file that it points to is replaced, not the link.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = folder_of(&target);
    let mut staged = Staged::write(folder, &target, bytes)?;
    keep_owner(&target, &staged)?;
    fs::rename(&staged.path, &target).map_err(|source| io_error("writing", &target, source))?;
    staged.moved = true;
    sync_folder(folder)
}

/// A finished, durable file beside the one that it is to become. It is removed unless it was moved into its place.
struct Staged {
    path: PathBuf,
    file: File,
    moved: bool,
}

impl Staged {
    fn write(folder: &Path, target: &Path, bytes: &[u8]) -> Result<Self, KeyError> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = folder.join(format!(".{name}.{}", new_kid('t')?));
        let failed = |source| io_error("writing", &path, source);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(failed)?;
        let mut staged = Self { path: path.clone(), file, moved: false };
        staged.file.write_all(bytes).map_err(failed)?;
        staged.file.sync_all().map_err(failed)?;
        Ok(staged)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.moved {
            // Best effort: what stays is a private file with a name that says what it was.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A ring that the administrator rotates as root must still be the service's to read.
fn keep_owner(target: &Path, staged: &Staged) -> Result<(), KeyError> {
    let failed = |source| io_error("keeping the owner of", target, source);
    let old = match fs::metadata(target) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let new = staged.file.metadata().map_err(failed)?;
    if (old.uid(), old.gid()) == (new.uid(), new.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(&staged.file, Some(old.uid()), Some(old.gid())).map_err(failed)
}

/// A rename or a link is durable once its folder is.
fn sync_folder(folder: &Path) -> Result<(), KeyError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| io_error("making durable", folder, source))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> KeyError {
    KeyError::Io { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder for the test")
    }

    fn names(folder: &Path) -> Vec<String> {
        let entry = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let entries = fs::read_dir(folder).expect("the folder is there").map(entry);
        entries.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    fn write(path: &Path, bytes: &[u8], mode: u32) {
        fs::write(path, bytes).expect("the test can write");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the test can chmod");
    }

    #[test]
    fn a_file_that_others_can_touch_is_refused_with_what_to_do() {
        let folder = folder();
        let path = folder.path().join("host.key");
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601, 0o660, 0o666, 0o777] {
            write(&path, b"secret", mode);
            let error = read_key_file(&path).expect_err("it is open to others");
            assert!(matches!(error, KeyError::OpenToOthers { mode: found, .. } if found == mode));
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        for mode in [0o600, 0o400, 0o700] {
            write(&path, b"secret", mode);
            assert_eq!(read_key_file(&path).expect("it is private"), b"secret");
            fs::remove_file(&path).expect("the test can remove it");
        }
    }

    #[test]
    fn one_final_line_feed_is_dropped_and_no_more() {
        let folder = folder();
        let path = folder.path().join("host.key");
        let table: [(&[u8], &[u8]); 5] = [(b"k\n", b"k"), (b"k\n\n", b"k\n"), (b"k ", b"k "), (b"\n", b""), (b"", b"")];
        for (written, expected) in table {
            write(&path, written, 0o600);
            assert_eq!(read_key_file(&path).expect("it is private"), expected);
        }
    }

    #[test]
    fn a_missing_file_is_told_from_an_unreadable_one() {
        let folder = folder();
        let missing = folder.path().join("none");
        assert!(matches!(read(&missing), Err(KeyError::Missing { .. })));
        assert!(matches!(read(folder.path()), Err(KeyError::Io { .. })));
    }

    #[test]
    fn a_file_beyond_the_bound_is_refused() {
        let folder = folder();
        let path = folder.path().join("host.key");
        write(&path, &vec![0; 1024 * 1024 + 1], 0o600);
        assert!(matches!(read(&path), Err(KeyError::TooLarge { .. })));
    }

    #[test]
    fn what_is_written_is_private_and_leaves_nothing_beside_it() {
        let folder = folder();
        let path = folder.path().join("keys/ring.json");
        create(&path, b"one").expect("it was not there");
        replace(&path, b"two").expect("it is there");

        assert_eq!(*read(&path).expect("it is private"), b"two");
        assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o7777, 0o600);
        assert_eq!(names(path.parent().expect("it has one")), ["ring.json"]);
    }

    #[test]
    fn creating_never_overwrites_and_leaves_nothing_beside_it() {
        let folder = folder();
        let path = folder.path().join("ring.json");
        create(&path, b"one").expect("it was not there");

        assert!(matches!(create(&path, b"two"), Err(KeyError::Exists { .. })));
        assert_eq!(*read(&path).expect("it is private"), b"one");
        assert_eq!(names(folder.path()), ["ring.json"]);
    }

    #[test]
    fn a_replacement_that_fails_leaves_the_folder_as_it_was() {
        let folder = folder();
        let path = folder.path().join("ring.json");
        fs::create_dir(&path).expect("the test can make a folder");

        assert!(replace(&path, b"two").is_err());
        assert_eq!(names(folder.path()), ["ring.json"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = folder();
        let (file, link) = (folder.path().join("ring-1.json"), folder.path().join("ring.json"));
        create(&file, b"one").expect("it was not there");
        std::os::unix::fs::symlink(&file, &link).expect("the test can link");
        replace(&link, b"two").expect("it is there");

        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(*read(&file).expect("it is private"), b"two");
    }
}
