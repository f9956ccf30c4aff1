//! Which index a story runs on: every story runs on each of them, and hardly any knows on which.

use std::path::Path;
use std::sync::Arc;

use mediakeep_storage::AssetIndex;
use mediakeep_storage::index::postgres::{PostgresIndex, PostgresOptions};
use mediakeep_storage::index::sled::{SledIndex, SledOptions};
use mediakeep_storage::testing::{self, Database};
use url::Url;

/// The variable that says which: `sled` or `postgres`; sled where it is absent.
pub const VARIABLE: &str = "MEDIAKEEP_TEST_INDEX";

/// The password in the address of every database here, which the tests' own server does not ask for. Nothing may ever show it.
pub const PASSWORD: &str = "pa55word-of-the-index";

/// A kind of index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sled,
    Postgres,
}

impl Kind {
    /// The one that this process tells its stories on.
    pub fn of_this_process() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("sled") => Self::Sled,
            Ok("postgres") => Self::Postgres,
            Ok(other) => unreachable!("{VARIABLE} is sled or postgres, not {other:?}"),
        }
    }
}

/// Where the index of one story is: below its folder, or in a database that is dropped with this value.
#[derive(Debug)]
pub struct Home {
    url: String,
    database: Option<Database>,
}

impl Home {
    /// For a story whose things lie in this folder.
    pub async fn new(kind: Kind, folder: &Path) -> Self {
        match kind {
            Kind::Sled => Self::in_folder(folder),
            Kind::Postgres => Self::on(testing::database().await),
        }
    }

    /// The same, for a thread that may wait.
    pub fn create(kind: Kind, folder: &Path) -> Self {
        match kind {
            Kind::Sled => Self::in_folder(folder),
            Kind::Postgres => Self::on(Database::create()),
        }
    }

    fn in_folder(folder: &Path) -> Self {
        Self { url: format!("sled://{}/index", folder.display()), database: None }
    }

    fn on(database: Database) -> Self {
        let mut url = Url::parse(database.url()).expect("a URL");
        if url.password().is_none() {
            url.set_password(Some(PASSWORD)).expect("it has a host");
        }
        Self { url: url.into(), database: Some(database) }
    }

    /// What `index.url` is set to.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn kind(&self) -> Kind {
        if self.database.is_some() { Kind::Postgres } else { Kind::Sled }
    }

    /// Whether there is an index.
    pub async fn is_made(&self) -> bool {
        match self.database {
            None => self.folder().exists(),
            Some(_) => PostgresIndex::is_there(&self.url, &PostgresOptions::default()).await.expect("a database"),
        }
    }

    /// Opens it beside the service, or, where only one may have it, after the service.
    pub async fn open(&self) -> Arc<dyn AssetIndex> {
        match self.database {
            None => Arc::new(SledIndex::open(self.folder(), SledOptions::default()).expect("an index")),
            Some(_) => Arc::new(PostgresIndex::open(&self.url, PostgresOptions::default()).await.expect("an index")),
        }
    }

    fn folder(&self) -> &Path {
        Path::new(self.url.trim_start_matches("sled://"))
    }
}
