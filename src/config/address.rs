//! Where the index is. The address of a database may hold a password: it is shown nowhere.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};
use url::Url;

/// The address of an index. However it is printed (in a sentence, for debugging, as a settings file), it has no password.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct IndexUrl(String);

/// What an address says.
#[derive(Clone, PartialEq, Eq)]
pub enum IndexPlace<'a> {
    /// A folder.
    Sled(PathBuf),
    /// A PostgreSQL database: its whole URL, with the password.
    Postgres(&'a str),
}

impl IndexUrl {
    /// Where it leads; the error is what a sentence says of `index.url`.
    pub fn place(&self) -> Result<IndexPlace<'_>, String> {
        let Ok(url) = Url::parse(&self.0) else {
            return Err(format!(
                "{self} is not an address; what is special in a user or a password has to be percent-encoded"
            ));
        };
        match url.scheme() {
            "sled" => {
                let path = percent_encoding::percent_decode_str(url.path()).decode_utf8_lossy();
                Ok(IndexPlace::Sled(path.into_owned().into()))
            }
            "postgres" | "postgresql" if may_be_torn(&url) => {
                Err("a user or password with any of # / ? @ in it has to be percent-encoded".to_owned())
            }
            "postgres" | "postgresql" => Ok(IndexPlace::Postgres(&self.0)),
            _ => Err(format!("{self} is neither sled: with a folder nor postgres: with a database")),
        }
    }
}

impl From<String> for IndexUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl From<&str> for IndexUrl {
    fn from(url: &str) -> Self {
        Self(url.to_owned())
    }
}

impl fmt::Display for IndexUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl fmt::Debug for IndexUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexUrl({self})")
    }
}

impl fmt::Debug for IndexPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sled(folder) => f.debug_tuple("Sled").field(folder).finish(),
            Self::Postgres(url) => f.debug_tuple("Postgres").field(&without_password(url)).finish(),
        }
    }
}

impl Serialize for IndexUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&without_password(&self.0))
    }
}

/// The address without what opens it. One that cannot be taken apart for certain is not shown at all.
fn without_password(raw: &str) -> Cow<'_, str> {
    let Ok(mut url) = Url::parse(raw) else {
        return "what is set here".into();
    };
    if url.scheme() == "sled" {
        return raw.into();
    }
    if may_be_torn(&url) || (url.password().is_some() && url.set_password(None).is_err()) {
        return format!("{}:…", url.scheme()).into();
    }
    let shown: Vec<(String, String)> = url
        .query_pairs()
        .filter(|(name, _)| !is_secret(name))
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    if shown.len() < url.query_pairs().count() {
        url.set_query(None);
        if !shown.is_empty() {
            url.query_pairs_mut().extend_pairs(shown);
        }
    }
    String::from(url).into()
}

/// A line that may quote the address of a database, without it.
pub(super) fn without_databases(line: &str) -> String {
    let (mut shown, mut rest) = (String::new(), line);
    while let Some(at) = find_database(rest) {
        shown.push_str(&rest[..at]);
        shown.push_str("postgres:…");
        rest = &rest[at..];
        rest = &rest[end_of_quote(rest)..];
    }
    shown + rest
}

fn find_database(line: &str) -> Option<usize> {
    let line = line.to_ascii_lowercase();
    ["postgres:", "postgresql:"].into_iter().filter_map(|scheme| line.find(scheme)).min()
}

/// Where the quote ends that this is the inside of, or the line.
fn end_of_quote(inside: &str) -> usize {
    let mut escaped = false;
    let end = inside.find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.unwrap_or(inside.len())
}

/// A parameter by which a client opens the database: `password`, `sslpassword`, `sslkey`.
fn is_secret(parameter: &str) -> bool {
    let name = parameter.to_ascii_lowercase();
    name.contains("password") || name == "sslkey"
}

/// Whether the parts may not be what they look like: a raw `#`, `/` or `?` in a password ends the host, and its rest lies behind it.
fn may_be_torn(url: &Url) -> bool {
    url.cannot_be_a_base() || url.fragment().is_some() || url[url::Position::BeforePath..].contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (address, shown) in [
            ("sled:///var/lib/index", "sled:///var/lib/index"),
            ("sled:/a b", "sled:/a b"),
            ("postgres://user@host:5433/media?sslmode=require", "postgres://user@host:5433/media?sslmode=require"),
            ("postgres://user:pa55word@host/media", "postgres://user@host/media"),
            ("postgresql://user:pa55word@host/media", "postgresql://user@host/media"),
            ("postgres://user:%70a55word%2f@host/media", "postgres://user@host/media"),
            ("postgres://host/media?user=user&password=pa55word", "postgres://host/media?user=user"),
            ("postgres://host/media?password=pa55word", "postgres://host/media"),
            ("postgres://host/media?PassWord=pa55word&sslmode=require", "postgres://host/media?sslmode=require"),
            ("postgres://host/media?p%61ssword=%70a55word", "postgres://host/media"),
            ("postgres://host/media?sslkey=pa55word&sslpassword=pa55word", "postgres://host/media"),
            ("postgres://user:pa55#word@host/media", "what is set here"),
            ("postgres://user:55#pa55word@host/media", "postgres:…"),
            ("postgres://user:55/pa55word@host/media", "postgres:…"),
            ("postgres://user:55?pa55word@host/media", "postgres:…"),
            ("postgres:user:pa55word@host", "postgres:…"),
            ("mysql://user:pa55word@host/media", "mysql://user@host/media"),
            ("user:pa55word@host/media", "user:…"),
            ("//user:pa55word@host/media", "what is set here"),
        ] {
            let url = IndexUrl::from(address);
            assert_eq!(url.to_string(), shown, "{address}");
            let all = [
                format!("{url:?}"),
                format!("{:?}", url.place()),
                toml::Value::try_from(&url).expect("a string").to_string(),
            ];
            assert!(!all.iter().any(|text| text.contains("a55")), "{address}: {all:?}");
        }
    }

    #[test]
    fn a_line_that_quotes_an_address_of_a_database_is_shown_without_it() {
        for (line, shown) in [
            (
                "found string \"postgres://u:pa55\", expected a section",
                "found string \"postgres:…\", expected a section",
            ),
            (r#"found "PostgreSQL://u:pa\"55" and "postgres:x""#, r#"found "postgres:…" and "postgres:…""#),
            ("3 | url = postgres://u:pa55@host/media # mine", "3 | url = postgres:…"),
            ("expected sled: or a postgres", "expected sled: or a postgres"),
        ] {
            assert_eq!(without_databases(line), shown);
        }
    }

    #[test]
    fn an_address_leads_to_a_folder_or_a_database_or_nowhere() {
        for (address, place) in [
            ("sled:///var/lib/index%20two", Some(IndexPlace::Sled("/var/lib/index two".into()))),
            ("postgres://u:p@host/media", Some(IndexPlace::Postgres("postgres://u:p@host/media"))),
            (
                "postgresql:///media?host=/run/postgresql",
                Some(IndexPlace::Postgres("postgresql:///media?host=/run/postgresql")),
            ),
            ("postgres://u:1#2@host/media", None),
            ("postgres://u:1/2@host/media", None),
            ("mysql://host/media", None),
            ("/var/lib/index", None),
            ("", None),
        ] {
            assert_eq!(IndexUrl::from(address).place().ok(), place, "{address}");
        }
    }
}
