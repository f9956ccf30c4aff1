//! A PostgreSQL and an S3 server of the tests' own. Of the first: a database for each, on a throw-away server that nobody has to install or start beforehand.
//!
//! The server is started once in a test process, in about three seconds, when the first database is asked for. It listens on a free
//! port of 127.0.0.1, keeps its data in a temporary folder, and is gone with it when the test process ends, however it ends. Where
//! `TEST_POSTGRES_URL` names a server, no other is started, and the databases are made there.

use std::sync::OnceLock;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use url::Url;
use uuid::Uuid;

mod bucket;
mod misdeed;
mod programs;
mod server;

pub use bucket::{Buckets, credentials};
pub use misdeed::{Misdeed, What};
use server::{Disk, Server};

/// The variable that names a server whose user may create databases.
pub const SERVER_VARIABLE: &str = "TEST_POSTGRES_URL";

/// The variable that names the point (`crate::fault`) at which a process ends that a test has started.
pub const FAULT_VARIABLE: &str = "MEDIAKEEP_FAULT";

/// The point at which this process is to end.
#[cfg(feature = "testing")]
pub(crate) fn fault() -> Option<&'static str> {
    static NAMED: OnceLock<Option<String>> = OnceLock::new();
    NAMED.get_or_init(|| std::env::var(FAULT_VARIABLE).ok()).as_deref()
}

/// A new database, empty, of nobody else; dropped with this value, whoever is still connected.
pub async fn database() -> Database {
    tokio::task::spawn_blocking(Database::create).await.expect("a database is made or the test ends")
}

/// The server that the databases are made on; starts it if it does not run yet. Its data is gone when this process ends.
pub async fn server_url() -> &'static Url {
    tokio::task::spawn_blocking(server).await.expect("a server starts or the test ends")
}

/// A program of PostgreSQL's, such as `pg_dump`.
pub fn program(name: &str) -> std::path::PathBuf {
    programs::folder().expect("PostgreSQL's programs").join(name)
}

/// An empty server that waits for its disk as one in production does, for a benchmark; it ends with this value.
#[derive(Debug)]
pub struct DurableServer(Server);

impl DurableServer {
    /// Starts it; the error is a sentence.
    pub fn start() -> Result<Self, String> {
        Server::start(Disk::Durable).map(Self)
    }

    /// Its one database.
    pub fn url(&self) -> &str {
        self.0.url.as_str()
    }
}

/// One database.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: Url,
}

impl Database {
    /// The same as [`database`], for a thread that may wait.
    pub fn create() -> Self {
        let name = format!("mediakeep_test_{}", Uuid::new_v4().simple());
        tell(format!("CREATE DATABASE {name}"));
        let mut url = server().clone();
        url.set_path(&name);
        Self { name, url }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        tell(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

/// Tells the server one thing. In a thread and with a runtime of its own: a test may drop its database inside of another's.
fn tell(statement: String) {
    let url = server().as_str();
    let told = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut connection = PgConnection::connect(url).await?;
            connection.execute(AssertSqlSafe(statement)).await?;
            connection.close().await
        })
    });
    let told = told.join().expect("nothing in it panics");
    // While a test fails already, a second failure would hide what the first one said.
    assert!(told.is_ok() || std::thread::panicking(), "PostgreSQL for the tests: {told:?}");
}

fn server() -> &'static Url {
    static SERVER: OnceLock<Result<(Url, Option<Server>), String>> = OnceLock::new();
    let server = SERVER.get_or_init(|| match std::env::var(SERVER_VARIABLE) {
        Ok(url) => Ok((Url::parse(&url).map_err(|error| format!("{SERVER_VARIABLE} is no URL: {error}"))?, None)),
        Err(_) => Server::start(Disk::Idle).map(|server| (server.url.clone(), Some(server))),
    });
    let (url, _) = server.as_ref().expect("tests on PostgreSQL need a server");
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_database_is_new_and_usable_and_gone_with_its_value() {
        let (one, other) = (database().await, database().await);
        assert_ne!(one.url(), other.url());
        let mut connection = PgConnection::connect(one.url()).await.expect("a connection");
        connection.execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (1)").await.expect("it can be written");
        let url = one.url().to_owned();

        drop(one);

        assert!(connection.execute("SELECT n FROM t").await.is_err(), "whoever was connected is not any more");
        let refused = PgConnection::connect(&url).await.expect_err("it is gone");
        assert!(refused.to_string().contains("does not exist"), "{refused}");
        let mut connection = PgConnection::connect(other.url()).await.expect("the other is still there");
        assert!(connection.execute("SELECT n FROM t").await.is_err(), "and it is another's");
    }
}
