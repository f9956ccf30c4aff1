//! Why an inline body is refused.

use crate::base64::BadBase64;

/// Why a body is refused. Names are shortened and made printable, and no value is ever quoted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InlineError {
    /// Not JSON, or not one object.
    #[error("the body is not a JSON object: {what} at byte {offset}")]
    Syntax {
        /// The offending byte.
        offset: u64,
        /// What is there.
        what: &'static str,
    },
    /// A member that an ingest does not have.
    #[error("unknown member `{member}`")]
    UnknownMember {
        /// Its name.
        member: String,
    },
    /// One name twice.
    #[error("member `{member}` appears twice")]
    DuplicateMember {
        /// Its name.
        member: &'static str,
    },
    /// Something other than a string.
    #[error("member `{member}` is not a string")]
    NotText {
        /// Its name.
        member: &'static str,
    },
    /// A string beyond [`Limits::text_bytes`](super::Limits::text_bytes).
    #[error("member `{member}` is longer than {limit} bytes")]
    TextTooLong {
        /// Its name.
        member: &'static str,
        /// The limit.
        limit: usize,
    },
    /// More around the payload than [`Limits::frame_bytes`](super::Limits::frame_bytes).
    #[error("the body has more than {limit} bytes besides the payload")]
    FrameTooLong {
        /// The limit.
        limit: usize,
    },
    /// Two members that say where the bytes are.
    #[error("the bytes are given twice, by `{first}` and by `{second}`")]
    SeveralPayloads {
        /// The one met first.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// The payload is not base64.
    #[error(transparent)]
    InvalidBase64(#[from] BadBase64),
    /// The payload is a `data:` URL that cannot be read.
    #[error("the data URL cannot be read: {what}")]
    BadDataUrl {
        /// What is wrong.
        what: &'static str,
    },
    /// The body names another tenant than the credential.
    #[error("the body names another tenant")]
    ForeignTenant,
}
