//! The guarded fetcher: bytes from somewhere else, only when a caller asks for them and the operator allows it.
//!
//! A URL names a host, and whoever controls the host's name may have it lead inside. So each hop is looked at anew: what the URL says
//! of itself ([`address::vet`]), then every address that its host resolves to, of which none may be other than public; the connection
//! goes to one of these addresses and to no other, whatever the name resolves to a moment later. Redirects are followed by hand, three
//! at most. No credential goes along, no proxy of the environment is asked, and nothing takes longer than `remote.timeout`, resolution
//! included, or is longer than `remote.max_bytes`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use crate::config::settings;

pub mod address;

/// So many redirects are followed.
const MAX_REDIRECTS: usize = 3;

/// The longest type that is believed, in bytes.
const MAX_TYPE: usize = 255;

/// Why nothing was fetched. The texts say nothing of what is behind an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The operator has not allowed it.
    #[error("nothing is fetched here; send the bytes")]
    Disabled,
    /// The URL, or where it leads, is not to be fetched.
    #[error("{0}")]
    Refused(&'static str),
    /// It was tried.
    #[error("{0}")]
    Failed(&'static str),
}

/// Finds the addresses of a host.
pub trait Resolver: std::fmt::Debug + Send + Sync + 'static {
    /// All of them.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's own.
#[derive(Debug)]
pub struct System;

impl Resolver for System {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) }.boxed()
    }
}

/// Asks another one, of so many names at a time.
///
/// A look-up cannot be taken back: whoever gives it up leaves it with a thread until the system does, and whose name server says nothing
/// would have all of them. Who waits for a turn waits in the time of the fetch.
#[derive(Debug)]
pub struct Bounded {
    inner: Arc<dyn Resolver>,
    turns: Arc<Semaphore>,
}

impl Bounded {
    /// At most so many at a time.
    pub fn new(inner: Arc<dyn Resolver>, at_most: usize) -> Self {
        Self { inner, turns: Arc::new(Semaphore::new(at_most)) }
    }
}

impl Resolver for Bounded {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async move {
            let turn = self.turns.clone().acquire_owned().await.map_err(io::Error::other)?;
            let (inner, host) = (self.inner.clone(), host.to_owned());
            // In a task of its own, which has the turn to its end, whether or not anybody waits for it.
            let asked = tokio::spawn(async move {
                let found = inner.resolve(&host).await;
                drop(turn);
                found
            });
            asked.await.map_err(io::Error::other)?
        }
        .boxed()
    }
}

/// So many names are looked up at a time: a fraction of the threads that files are read and written by.
const LOOK_UPS: usize = 32;

/// The network as the fetcher sees it.
#[derive(Debug, Clone)]
pub struct Net {
    /// Finds addresses.
    pub resolver: Arc<dyn Resolver>,
    /// Which of them may be connected to.
    pub allows: fn(IpAddr) -> bool,
}

/// Fetches. No setting changes what it allows: only code can, such as a test's.
#[derive(Debug)]
pub struct Remote {
    net: RwLock<Net>,
}

/// What is fetched, as it comes.
#[derive(Debug)]
pub struct Fetched {
    /// The host that was asked first: all that is ever said of where the bytes are from.
    pub host: String,
    /// What the last server says that they are.
    pub mime_type: Option<String>,
    response: Response,
    until: Instant,
    left: u64,
}

impl Default for Remote {
    fn default() -> Self {
        let resolver = Arc::new(Bounded::new(Arc::new(System), LOOK_UPS));
        Self { net: RwLock::new(Net { resolver, allows: address::is_public }) }
    }
}

impl Remote {
    /// Has it see another network.
    pub fn see(&self, net: Net) {
        *self.net.write().unwrap_or_else(PoisonError::into_inner) = net;
    }

    /// Asks for the URL, and follows where it leads; the bytes are still to be read.
    pub async fn fetch(&self, settings: &settings::Remote, raw: &str) -> Result<Fetched, RemoteError> {
        if !settings.enabled {
            return Err(RemoteError::Disabled);
        }
        let until = Instant::now() + settings.timeout.std();
        let (host, response) = follow(&self.net(), settings, raw, until).await?;
        match response.status() {
            StatusCode::OK => fetched(host, response, until, settings.max_bytes.0),
            _ => Err(RemoteError::Failed("the other side does not answer 200")),
        }
    }

    /// Asks for the URL in the same way, and says by which status the last server answers; nothing is read. With `rebound`, the URL's name
    /// is taken to lead there. What the URL says of itself is looked at also where nothing is fetched.
    pub async fn probe(
        &self,
        settings: &settings::Remote,
        raw: &str,
        rebound: Option<IpAddr>,
    ) -> Result<u16, RemoteError> {
        let mut net = self.net();
        if let Some(address) = rebound {
            net.resolver = Arc::new(Rebound(address));
        }
        if !settings.enabled {
            let url = parsed(raw)?;
            address::vet(raw, &url, &settings.allow_ports).map_err(RemoteError::Refused)?;
            if rebound.is_some() || !matches!(url.host(), Some(Host::Domain(_))) {
                resolved(&net, &url).await?;
            }
            return Err(RemoteError::Disabled);
        }
        let until = Instant::now() + settings.timeout.std();
        let (_, response) = follow(&net, settings, raw, until).await?;
        Ok(response.status().as_u16())
    }

    fn net(&self) -> Net {
        self.net.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A name that has come to lead there.
#[derive(Debug)]
struct Rebound(IpAddr);

impl Resolver for Rebound {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        std::future::ready(Ok(vec![self.0])).boxed()
    }
}

/// The last answer, and the host that was asked first.
async fn follow(
    net: &Net,
    settings: &settings::Remote,
    raw: &str,
    until: Instant,
) -> Result<(String, Response), RemoteError> {
    let hops = async {
        let mut url = parsed(raw)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let mut spelled = raw.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            address::vet(&spelled, &url, &settings.allow_ports).map_err(RemoteError::Refused)?;
            let response = ask(net, &url, until).await?;
            match response.status() {
                status if status.is_redirection() => {
                    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
                    let location = location.ok_or(RemoteError::Failed("it leads nowhere"))?;
                    url = url.join(location).map_err(|_| RemoteError::Refused("it leads to what is no URL"))?;
                    spelled = location.to_owned();
                }
                _ => return Ok((host, response)),
            }
        }
        Err(RemoteError::Refused("it leads on and on"))
    };
    timeout_at(until, hops).await.map_err(|_| RemoteError::Failed("it takes too long"))?
}

fn parsed(raw: &str) -> Result<Url, RemoteError> {
    Url::parse(raw).map_err(|_| RemoteError::Refused("not an absolute URL"))
}

/// One hop, to an address that was looked at.
///
/// Each has a client of its own: a client keeps connections, and hands a later request one that goes where an earlier look led. What it
/// costs, a set of certificates, is little beside a fetch.
async fn ask(net: &Net, url: &Url, until: Instant) -> Result<Response, RemoteError> {
    let pinned = resolved(net, url).await?;
    // A second provider is refused, and then there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .referer(false)
        .dns_resolver(Arc::new(pinned))
        .timeout(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
        .user_agent("mediakeep")
        .build();
    let client = client.map_err(|_| RemoteError::Failed("no connection can be made"))?;
    let request = client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
    request.send().await.map_err(|_| RemoteError::Failed("the other side does not answer"))
}

/// The addresses that the URL's host leads to, none of them other than public.
async fn resolved(net: &Net, url: &Url) -> Result<Pinned, RemoteError> {
    let (name, addresses) = match url.host() {
        Some(Host::Ipv4(address)) => (String::new(), vec![IpAddr::V4(address)]),
        Some(Host::Ipv6(address)) => (String::new(), vec![IpAddr::V6(address)]),
        Some(Host::Domain(name)) => {
            let found = net.resolver.resolve(name).await;
            (name.to_owned(), found.map_err(|_| RemoteError::Failed("its host is not found"))?)
        }
        None => return Err(RemoteError::Refused("it has no host")),
    };
    if addresses.is_empty() {
        return Err(RemoteError::Failed("its host is not found"));
    }
    if !addresses.iter().all(|address| (net.allows)(*address)) {
        return Err(RemoteError::Refused("it leads to an address that is not public"));
    }
    Ok(Pinned { name, addresses })
}

fn fetched(host: String, response: Response, until: Instant, most: u64) -> Result<Fetched, RemoteError> {
    if response.content_length().is_some_and(|length| length > most) {
        return Err(TOO_LARGE);
    }
    let coding = response.headers().get(CONTENT_ENCODING);
    if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(RemoteError::Failed("the other side sends it compressed"));
    }
    // What is no type says nothing; it is not the caller's mistake.
    let mime_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mime_type =
        mime_type.filter(|name| name.len() <= MAX_TYPE && name.parse::<mime::Mime>().is_ok()).map(str::to_owned);
    Ok(Fetched { host, mime_type, response, until, left: most })
}

const TOO_LARGE: RemoteError = RemoteError::Failed("it is longer than remote.max_bytes");

impl Fetched {
    /// The next bytes; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, RemoteError> {
        let next = timeout_at(self.until, self.response.chunk()).await;
        let next = next.map_err(|_| RemoteError::Failed("it takes too long"))?;
        let Some(chunk) = next.map_err(|_| RemoteError::Failed("it ended too soon"))? else {
            return Ok(None);
        };
        self.left = self.left.checked_sub(chunk.len() as u64).ok_or(TOO_LARGE)?;
        Ok(Some(chunk))
    }
}

/// Resolves one name to the addresses that were looked at, and no other.
#[derive(Debug)]
struct Pinned {
    name: String,
    addresses: Vec<IpAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let found: Result<Addrs, _> = if name.as_str().eq_ignore_ascii_case(&self.name) {
            // The port is the URL's.
            let addresses: Vec<SocketAddr> = self.addresses.iter().map(|ip| SocketAddr::new(*ip, 0)).collect();
            Ok(Box::new(addresses.into_iter()))
        } else {
            Err(io::Error::other("not the name that was looked at").into())
        };
        Box::pin(std::future::ready(found))
    }
}
