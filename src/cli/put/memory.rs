//! Which upload a file was begun in, for whoever puts it again after this program was killed.
//!
//! One small file for each upload that is not done, named by a digest of the server, the run, the file's name and its bytes: the same file
//! finds it wherever it lies now, and a changed one does not. It holds the upload's name, which opens nothing without a key.

use std::path::{Path, PathBuf};
use std::{fs, io};

use data_encoding::HEXLOWER;
use mediakeep::config::state_folder;
use mediakeep_storage::{Digest, UploadId};
use ring::digest;
use serde_json::json;

use super::Sender;

/// Where it is noted, if there is a place for notes.
#[derive(Debug)]
pub(super) struct Memory(Option<PathBuf>);

impl Memory {
    pub(super) fn of(sender: &Sender, name: Option<&str>, sha256: Digest) -> Self {
        Self::in_folder(state_folder().as_deref(), sender, name, sha256)
    }

    fn in_folder(folder: Option<&Path>, sender: &Sender, name: Option<&str>, sha256: Digest) -> Self {
        let what = json!([sender.base.as_str(), sender.run, name, sha256.to_string()]).to_string();
        let what = digest::digest(&digest::SHA256, what.as_bytes());
        Self(folder.map(|folder| folder.join("uploads").join(HEXLOWER.encode(what.as_ref()))))
    }

    /// The upload that was begun and is not done, as far as is known.
    pub(super) fn recall(&self) -> Option<UploadId> {
        let noted = fs::read_to_string(self.0.as_ref()?).ok()?;
        UploadId::parse(noted.trim()).ok()
    }

    /// Whoever cannot note it can send it all the same.
    pub(super) fn keep(&self, upload: UploadId) -> io::Result<()> {
        let Some(file) = &self.0 else {
            return Err(io::Error::other("neither XDG_STATE_HOME nor HOME names a folder"));
        };
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, format!("{upload}\n"))
    }

    /// It is done, or over.
    pub(super) fn forget(&self) {
        if let Some(file) = &self.0 {
            // What stays is asked for once more, and found to be over.
            let _ = fs::remove_file(file);
        }
    }
}
