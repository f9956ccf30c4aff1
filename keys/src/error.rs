//! What can go wrong with keys and the files they live in. Each message is a sentence for the operator who must act on it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A key, or the file that holds it, is not as it must be. No variant holds key material.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no file at that path: a first start, or a ring that went missing. The caller knows which.
    #[error("there is no key file at {}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },

    /// `save_new` found a file already there and left it alone.
    #[error("{} exists already and is not overwritten", path.display())]
    Exists {
        /// The file that is there.
        path: PathBuf,
    },

    /// The file can be read or written by its group or by everyone, so its secret may be known already.
    #[error(
        "{} is open to others (mode {mode:04o}); run `chmod 600` on it, and replace the key if others may have read it",
        path.display()
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },

    /// The file is larger than any key file is.
    #[error("{} is larger than the {limit} bytes that a key file may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },

    /// The operating system refused.
    #[error("while {doing} {}", path.display())]
    Io {
        /// What was being done, as in "reading".
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Its own words.
        source: io::Error,
    },

    /// The file is a ring of a version that this program does not know.
    #[error("{} is a key ring of version {found}; this program reads version {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it says.
        found: u64,
        /// The version this program writes.
        known: u64,
    },

    /// The file is not a ring: not JSON of its form, or a value in it is not what it must be.
    #[error("{} is not a key ring: {fault}", path.display())]
    NotARing {
        /// The file.
        path: PathBuf,
        /// What is wrong, without the value.
        fault: String,
    },

    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    NoRandomness,

    /// The ring has no such key.
    #[error("the ring has no key {kid}")]
    UnknownKid {
        /// The name that was asked for.
        kid: String,
    },

    /// The key signs now, so it cannot be retired.
    #[error("key {kid} signs new URLs; rotate first, and retire it once the new key has taken over")]
    StillSigning {
        /// The key.
        kid: String,
    },

    /// A claim holds characters, or a length, that no token carries.
    #[error("claim {member} is not something that a token can carry")]
    BadClaim {
        /// The member's name in the token.
        member: &'static str,
    },

    /// An HS256 secret is too short to be one.
    #[error("an HS256 secret of {found} bytes; it must have at least {least}, as many as its hash")]
    ShortSecret {
        /// Its length.
        found: usize,
        /// The least length.
        least: usize,
    },

    /// The key file holds another kind of thing than the algorithm needs.
    #[error("{algorithm} needs {wanted}, and this is {found}")]
    WrongKind {
        /// The algorithm that was configured.
        algorithm: &'static str,
        /// What it needs.
        wanted: &'static str,
        /// What was found.
        found: &'static str,
    },

    /// The JWK Set is not one, or holds no key that the algorithm can use.
    #[error("the JWK Set cannot be used for {algorithm}: {fault}")]
    BadJwks {
        /// The algorithm that was configured.
        algorithm: &'static str,
        /// What is wrong, and at which position.
        fault: String,
    },
}

/// Where a JSON text goes wrong. The parser's own words may quote a value, and the value may be a secret in a wrong place.
pub(crate) fn place_of(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        serde_json::error::Category::Data => "a member is unknown, missing or not of its type",
        _ => "it is not JSON",
    };
    format!("{kind} (line {}, column {})", error.line(), error.column())
}
