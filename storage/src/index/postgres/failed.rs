//! What can go wrong, and what is tried again.

use crate::error::StorageError;
use crate::index::codec::corrupt;

/// What is known of a database that says nothing.
const SILENCE: &str = "the database does not answer";

/// Why a transition stopped.
#[derive(Debug)]
pub(super) enum Failed {
    /// The database said so.
    Sql(sqlx::Error),
    /// A row does not read.
    Row(StorageError),
    /// The answer to `COMMIT` did not come: what happened is not known.
    Unanswered(String),
    /// The database said nothing for longer than it works on anything.
    Silent,
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StorageError> for Failed {
    fn from(error: StorageError) -> Self {
        Self::Row(error)
    }
}

/// What a part of a transition comes to.
pub(super) type Worked<T> = Result<T, Failed>;

impl Failed {
    /// The failure of a `COMMIT`: the database may refuse it for what others did, and then nothing has happened; anything else, the
    /// loss of the connection above all, leaves open whether it happened.
    pub(super) fn commit(error: sqlx::Error) -> Self {
        if is_refusal(&error) { Self::Sql(error) } else { Self::Unanswered(said(&error)) }
    }

    /// The same of a silence.
    pub(super) fn at_commit(self) -> Self {
        match self {
            Self::Silent => Self::Unanswered(SILENCE.into()),
            other => other,
        }
    }

    /// Whether nothing has happened because of what others did at the same time, so that the same again may work.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Sql(error) if is_refusal(error))
    }

    /// Whether somebody else is making the same table, type, row or index at this moment.
    ///
    /// `IF NOT EXISTS` looks and then makes: what came in between is an object that exists (42P07, 42710) or, while the other has not
    /// committed, a row of the catalogue that does (23505).
    pub(super) fn is_meeting(&self) -> bool {
        self.is_refusal()
            || matches!(self, Self::Sql(error) if matches!(code(error).as_deref(), Some("23505" | "42710" | "42P07")))
    }

    /// The same for callers.
    pub(super) fn told(self) -> StorageError {
        match self {
            Self::Sql(error) => told(&error),
            Self::Row(error) => error,
            Self::Unanswered(why) => {
                unavailable(format!("the answer to COMMIT was lost, and whether it happened is not known: {why}"))
            }
            Self::Silent => unavailable(SILENCE.into()),
        }
    }
}

/// Not serializable, a deadlock, or a row that somebody else has locked.
fn is_refusal(error: &sqlx::Error) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01" | "55P03"))
}

/// Whether there was no connection to send anything on.
pub(super) fn is_disconnected(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        // The server closes the connection: it is being stopped, or it has crashed.
        _ => matches!(code(error).as_deref(), Some("57P01" | "57P02" | "57P03")),
    }
}

/// The error for callers.
pub(super) fn told(error: &sqlx::Error) -> StorageError {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnIndexOutOfBounds { .. } => {
            corrupt(format!("a column does not read: {error}"))
        }
        _ => match code(error).as_deref() {
            Some("53100") => StorageError::Full { store: "index" },
            Some(code) if code.starts_with("23") => corrupt(format!("a row is there that should not be ({code})")),
            _ => unavailable(said(error)),
        },
    }
}

pub(super) fn unavailable(reason: String) -> StorageError {
    StorageError::Unavailable { store: "index", reason }
}

/// What the database said, as far as it may be told: where a message may quote a value, only its code is.
fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(said) => {
            let code = said.code().unwrap_or_default();
            match code.get(..2) {
                Some("08" | "28" | "3D" | "42" | "53" | "57") => format!("{} ({code})", said.message()),
                _ => format!("the database refused a statement ({code})"),
            }
        }
        sqlx::Error::Io(error) => format!("the connection failed: {error}"),
        sqlx::Error::Tls(error) => format!("TLS: {error}"),
        sqlx::Error::PoolTimedOut => "no connection became free or could be made in time".into(),
        sqlx::Error::PoolClosed => "the index is closed".into(),
        sqlx::Error::Protocol(_) => "the connection broke off in the middle".into(),
        _ => "the driver failed".into(),
    }
}

fn code(error: &sqlx::Error) -> Option<String> {
    error.as_database_error().and_then(|error| error.code()).map(std::borrow::Cow::into_owned)
}
