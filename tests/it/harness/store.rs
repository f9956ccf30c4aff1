//! Which store a story's bytes lie in: files in the story's folder, or a bucket whose objects are those same files.

use std::path::Path;
use std::process::Command;

use mediakeep::config::settings;
use mediakeep_storage::testing::{self, Buckets};

/// The variable that says which: `files` or `s3`; files where it is absent. Whoever sets it to `s3` puts the credentials of
/// [`mediakeep_storage::testing::credentials`] into the environment too.
pub const VARIABLE: &str = "MEDIAKEEP_TEST_STORE";

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Files,
    Bucket,
}

impl Kind {
    /// The one that this process tells its stories on.
    pub fn of_this_process() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Err(_) | Ok("files") => Self::Files,
            Ok("s3") => Self::Bucket,
            Ok(other) => unreachable!("{VARIABLE} is files or s3, not {other:?}"),
        }
    }
}

/// Whether this process tells its stories on buckets. If not, this one is told in a process that does, to its end: credentials are the
/// environment's, which no process changes for itself.
pub fn is_a_bucket_for(story: &str) -> bool {
    if Kind::of_this_process() == Kind::Bucket {
        return true;
    }
    let mut told = Command::new(std::env::current_exe().expect("a path"));
    told.args(["--exact", story, "--nocapture"]).env(VARIABLE, "s3").envs(testing::credentials());
    let told = told.output().expect("the tests run");
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.success() && said.contains("test result: ok. 1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&told.stderr)
    );
    false
}

/// Where a story's bytes lie. A server of the story's own ends with this value.
#[derive(Debug)]
pub struct Store {
    url: String,
    endpoint: Option<String>,
    server: Option<Buckets>,
}

impl Store {
    /// The folder `blobs` of a story's folder, as files or as a bucket.
    pub fn new(kind: Kind, folder: &Path) -> Self {
        match kind {
            Kind::Files => Self { url: format!("file://{}/blobs", folder.display()), endpoint: None, server: None },
            Kind::Bucket => {
                std::fs::create_dir_all(folder.join("blobs")).expect("a bucket");
                let server = Buckets::serve(folder);
                Self { url: "s3://blobs".to_owned(), endpoint: Some(server.endpoint()), server: Some(server) }
            }
        }
    }

    /// A bucket of a server that somebody else has started.
    pub fn elsewhere(url: &str, endpoint: String) -> Self {
        Self { url: url.to_owned(), endpoint: Some(endpoint), server: None }
    }

    /// A container of a server that the environment tells of.
    pub fn of_environment(url: &str) -> Self {
        Self { url: url.to_owned(), endpoint: None, server: None }
    }

    /// The server of a bucket of this story's own.
    pub fn server(&self) -> &Buckets {
        self.server.as_ref().expect("a story that names its store")
    }

    /// What `store.url` is set to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What `store.s3` is set to.
    pub fn s3(&self) -> settings::S3 {
        let Some(endpoint) = self.endpoint.clone() else {
            return settings::S3::default();
        };
        settings::S3 { endpoint, region: "us-east-1".to_owned(), path_style: None, allow_http: Some(true) }
    }

    /// The same as sections of a settings file.
    pub fn toml(&self) -> String {
        let store = format!("[store]\nurl = \"{}\"\nmin_free = \"0\"\n", self.url);
        match &self.endpoint {
            None => store,
            Some(endpoint) => {
                format!("{store}[store.s3]\nendpoint = \"{endpoint}\"\nregion = \"us-east-1\"\nallow_http = true\n")
            }
        }
    }
}
