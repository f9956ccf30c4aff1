//! Opening an object store over the network: S3 and what speaks like it, Google Cloud Storage, Azure Blob Storage.
//!
//! Credentials come in by the door, as the names and values that each store's own tools read from the environment; none is ever shown. A
//! request that a store refuses for the moment is tried again, with jitter, for [`RETRY_FOR`] at most; then the caller hears that the
//! store is not available, which is the truth, and may come again.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use url::Url;

use super::object::Objects;
use crate::error::StorageError;

/// What a store's address does not say.
#[derive(Default, Clone)]
pub struct StoreOptions {
    /// Of `s3:` addresses.
    pub s3: S3Options,
    /// Names and values as the stores' own tools have them in the environment: `AWS_…`, `GOOGLE_…`, `AZURE_…`. What a store does not know is
    /// passed over.
    pub environment: Vec<(String, String)>,
}

/// Of an S3 server. What is set here wins over the environment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct S3Options {
    /// Where it is, when it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region that requests are signed for.
    pub region: Option<String>,
    /// Whether the bucket stands in the path rather than in the host's name; when nothing is said, it does with an endpoint.
    pub path_style: Option<bool>,
    /// Whether plain HTTP is allowed.
    pub allow_http: Option<bool>,
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions").field("s3", &self.s3).finish_non_exhaustive()
    }
}

/// How long a request is tried again before its caller hears of it.
const RETRY_FOR: Duration = Duration::from_secs(15);

/// And how often, the first time not counted.
const RETRIES: usize = 6;

/// How long a connection may take to be made, and how long nothing may come over one.
const CONNECT: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(20);

/// The store that the address names; `None` when it is of another kind.
pub(super) fn open(address: &Url, options: &StoreOptions) -> Option<Result<Objects, StorageError>> {
    let opens = match address.scheme() {
        "s3" => s3,
        "gs" => gs,
        "az" => az,
        _ => return None,
    };
    // Each client wants one. A second is refused, and then there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Some(opens(address, options))
}

fn s3(address: &Url, options: &StoreOptions) -> Result<Objects, StorageError> {
    let (bucket, prefix) = bucket(address)?;
    let mut builder = AmazonS3Builder::new().with_bucket_name(bucket).with_retry(retry()).with_client_options(client());
    for (key, value) in known::<AmazonS3ConfigKey>(&options.environment) {
        // What says where the bucket is comes below.
        if !matches!(
            key,
            AmazonS3ConfigKey::Bucket
                | AmazonS3ConfigKey::Endpoint
                | AmazonS3ConfigKey::S3Endpoint
                | AmazonS3ConfigKey::VirtualHostedStyleRequest
        ) {
            builder = builder.with_config(key, value);
        }
    }
    let environment =
        |name: &str| options.environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let S3Options { endpoint, region, path_style, allow_http } = options.s3.clone();
    let endpoint = endpoint.or_else(|| environment("AWS_ENDPOINT_URL_S3")).or_else(|| environment("AWS_ENDPOINT_URL"));
    if let Some(region) = region {
        builder = builder.with_region(region);
    }
    if let Some(allow) = allow_http {
        builder = builder.with_allow_http(allow);
    }
    let path_style = path_style.unwrap_or(endpoint.is_some());
    builder = builder.with_virtual_hosted_style_request(!path_style);
    if let Some(endpoint) = endpoint {
        let allowed =
            allow_http.or_else(|| environment("AWS_ALLOW_HTTP").map(|value| value.eq_ignore_ascii_case("true")));
        if endpoint.starts_with("http:") && allowed != Some(true) {
            let why = "store.s3.endpoint is plain HTTP: use https, or set store.s3.allow_http = true in a network of your own";
            return Err(StorageError::BadAddress(why.to_owned()));
        }
        builder = builder.with_endpoint(hosted(&endpoint, bucket, path_style)?);
    }
    let signs = signs_for_others(&builder);
    let store = builder.build().map_err(|error| bad(&error))?;
    let objects = Objects::new(store.clone(), prefix);
    Ok(if signs { objects.signing(Arc::new(store)) } else { objects })
}

/// Whether a signed URL would work for whoever has it: requests are signed at all, with credentials that are no session's of a directory
/// bucket, and reading takes no customer's key beside them.
fn signs_for_others(builder: &AmazonS3Builder) -> bool {
    let set = |name: &str| name.parse().ok().and_then(|key| builder.get_config_value(&key)).unwrap_or_default();
    let is_on = |name| ["1", "true", "on", "yes", "y"].contains(&set(name).to_ascii_lowercase().as_str());
    !is_on("aws_skip_signature") && !is_on("aws_s3_express") && set("aws_sse_customer_key_base64").is_empty()
}

/// The endpoint with the bucket in the host's name, where it belongs there.
fn hosted(endpoint: &str, bucket: &str, path_style: bool) -> Result<String, StorageError> {
    let refused = || StorageError::BadAddress("store.s3.endpoint is not an absolute http or https URL".to_owned());
    let mut url = Url::parse(endpoint).map_err(|_| refused())?;
    let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https")).ok_or_else(refused)?.to_owned();
    if !path_style {
        url.set_host(Some(&format!("{bucket}.{host}"))).map_err(|_| refused())?;
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn gs(address: &Url, options: &StoreOptions) -> Result<Objects, StorageError> {
    let (bucket, prefix) = bucket(address)?;
    let mut builder =
        GoogleCloudStorageBuilder::new().with_bucket_name(bucket).with_retry(retry()).with_client_options(client());
    for (key, value) in known::<GoogleConfigKey>(&options.environment) {
        if !matches!(key, GoogleConfigKey::Bucket) {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Objects::new(builder.build().map_err(|error| bad(&error))?, prefix))
}

fn az(address: &Url, options: &StoreOptions) -> Result<Objects, StorageError> {
    let (container, prefix) = bucket(address)?;
    let mut builder =
        MicrosoftAzureBuilder::new().with_container_name(container).with_retry(retry()).with_client_options(client());
    for (key, value) in known::<AzureConfigKey>(&options.environment) {
        if !matches!(key, AzureConfigKey::ContainerName) {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Objects::new(builder.build().map_err(|error| bad(&error))?, prefix))
}

/// Bucket and prefix of an address. What else an address may have is refused: a credential in it would end up in logs.
fn bucket(address: &Url) -> Result<(&str, Path), StorageError> {
    let refused = |why: &str| StorageError::BadAddress(format!("store.url: {why}"));
    if !address.username().is_empty() || address.password().is_some() {
        return Err(refused("has a user or password in it: credentials come from the environment"));
    }
    if address.port().is_some() || address.query().is_some() || address.fragment().is_some() {
        return Err(refused("is a scheme, a bucket and a prefix, such as s3://bucket/prefix"));
    }
    let bucket = address.host_str().filter(|bucket| !bucket.is_empty());
    let bucket = bucket.ok_or_else(|| refused("names no bucket: it is s3://bucket or s3://bucket/prefix"))?;
    let prefix = Path::from_url_path(address.path()).map_err(|error| refused(&format!("its prefix: {error}")))?;
    Ok((bucket, prefix))
}

/// What a store knows of the environment.
fn known<K: FromStr>(environment: &[(String, String)]) -> impl Iterator<Item = (K, &str)> {
    environment.iter().filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.as_str())))
}

fn retry() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(3), base: 2.0 };
    RetryConfig { backoff, max_retries: RETRIES, retry_timeout: RETRY_FOR }
}

/// No bound on a whole request: a blob may be long and its reader slow. Silence has one.
fn client() -> ClientOptions {
    ClientOptions::new().with_timeout_disabled().with_read_timeout(SILENCE).with_connect_timeout(CONNECT)
}

fn bad(error: &object_store::Error) -> StorageError {
    StorageError::BadAddress(format!("store.url: {error}"))
}
