//! The guarded fetcher.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mediakeep::access::Scope;
use mediakeep::config::units::{Size, Span};
use mediakeep::remote::address::is_public;
use mediakeep::remote::{Net, Resolver};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::bytes::png;
use crate::harness::told::Told;
use crate::harness::{Caller, Host};

mod hostile;
mod unasked;

/// Answers with each of these in turn, and then with the last for ever.
#[derive(Debug)]
struct Names(Vec<Vec<IpAddr>>, AtomicUsize);

impl Resolver for Names {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let asked = self.1.fetch_add(1, Ordering::SeqCst).min(self.0.len() - 1);
        let known = host.ends_with(".test").then(|| self.0[asked].clone());
        async move { known.ok_or_else(|| io::Error::other("no such host")) }.boxed()
    }
}

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A server that answers every connection with this text, and counts them.
async fn elsewhere(
    answer: impl Fn(SocketAddr) -> Vec<u8> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>, Arc<std::sync::Mutex<String>>) {
    answering(move |_, address| answer(address)).await
}

/// The same, by what it hears.
async fn answering(
    answer: impl Fn(&str, SocketAddr) -> Vec<u8> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>, Arc<std::sync::Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (count, heard) = (Arc::new(AtomicUsize::new(0)), Arc::<std::sync::Mutex<String>>::default());
    let (counted, told) = (count.clone(), heard.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut head = vec![0; 8_192];
            let length = stream.read(&mut head).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            told.lock().expect("a text").push_str(&head);
            let _ = stream.write_all(&answer(&head, address)).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, count, heard)
}

fn ok(mime_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {mime_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn to(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
}

/// A host that may fetch from that port; its names resolve as told, and every address counts as public if `lax`.
async fn host(port: u16, names: Vec<Vec<IpAddr>>, lax: bool) -> Host {
    let host = Host::with(|settings| {
        settings.remote.enabled = true;
        settings.remote.allow_ports = vec![port, 80];
        settings.remote.max_bytes = Size(10_000);
        settings.remote.timeout = Span::seconds(1);
    })
    .await;
    let allows: fn(IpAddr) -> bool = if lax { |_| true } else { is_public };
    host.app().remote.see(Net { resolver: Arc::new(Names(names, AtomicUsize::new(0))), allows });
    host
}

async fn ingest(caller: &Caller<'_>, url: &str) -> Told {
    Told::of(caller.inline(&json!({"url": url})).await).await
}

fn reason(told: &Told) -> Value {
    assert_eq!((told.status, &told.json()["error"]), (400, &json!("validation_error")));
    told.json()["details"]["reason"].clone()
}

#[tokio::test]
async fn an_asset_is_fetched_and_the_log_says_from_which_host() {
    let picture = png(4, 4);
    let body = picture.clone();
    let (address, _, heard) = elsewhere(move |_| ok("image/jpeg", &body)).await;
    let host = host(address.port(), vec![vec![HERE]], true).await;
    let owner = host.owner("acme");

    let told = ingest(&owner, &format!("http://pictures.test:{}/a?token=secret", address.port())).await;

    assert_eq!(told.status, 201, "{}", String::from_utf8_lossy(&told.body));
    let asset = told.json()["asset"].clone();
    assert_eq!((&asset["mimeType"], &asset["declaredMimeType"]), (&json!("image/png"), &json!("image/jpeg")));
    let heard = heard.lock().expect("a text").to_ascii_lowercase();
    assert!(
        heard.contains("host: pictures.test") && !heard.contains("authorization") && !heard.contains("cookie"),
        "{heard}"
    );
    while host.app().index.seal_audit(100).await.expect("sealed") > 0 {}
    let rows = Told::of(owner.get("/v1/audit/events?type=ingest").await).await;
    assert_eq!(rows.json()["events"][0]["details"]["fetchedFrom"], "pictures.test");
    assert!(!String::from_utf8_lossy(&rows.body).contains("secret"));
    let parts = json!({"runId": "run-2", "modalities": ["image"], "fetch": true, "messages": [{"content": [
        {"type": "image", "mimeType": "image/png", "url": format!("http://pictures.test:{}/b", address.port())}]}]});
    let told = Told::of(owner.post("/v1/content-parts/normalize", &parts).await).await.json();
    assert!(
        told["messages"][0]["content"][0]["mediaRef"].as_str().is_some_and(|name| name.starts_with("blob:ast_")),
        "{told}"
    );
}

#[tokio::test]
async fn nothing_is_fetched_unless_the_operator_allows_it() {
    let host = Host::start().await;
    assert_eq!(reason(&ingest(&host.owner("acme"), "http://pictures.test/").await), "fetch_disabled");
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_whatever_else_it_leads_to() {
    let (address, count, _) = elsewhere(|_| ok("text/plain", b"inside")).await;
    for names in
        [vec![HERE], vec!["8.8.8.8".parse().expect("an address"), HERE], vec!["::ffff:127.0.0.1".parse().expect("one")]]
    {
        let host = host(address.port(), vec![names], false).await;
        let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;
        assert_eq!(reason(&told), "fetch_refused");
        assert!(host.is_bare().await);
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn literal_hosts_that_lead_inside_are_refused_however_they_are_spelled() {
    let (address, count, _) = elsewhere(|_| ok("text/plain", b"inside")).await;
    let host = host(address.port(), vec![vec![HERE]], false).await;
    let owner = host.owner("acme");
    for literal in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
    ] {
        let told = ingest(&owner, &format!("http://{literal}:{}/", address.port())).await;
        assert_eq!(reason(&told), "fetch_refused", "{literal}");
    }
    for url in ["ftp://x.test/", "http://user@x.test/", "http://x.test:81/", "/relative", "file:///etc/passwd"] {
        assert_eq!(reason(&ingest(&owner, url).await), "fetch_refused", "{url}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    assert!(host.is_bare().await);
}

#[tokio::test]
async fn a_name_that_changes_after_it_was_looked_at_changes_nothing() {
    let (address, count, _) = elsewhere(|_| ok("text/plain", b"inside")).await;
    // First an address of the Internet that nobody answers at, then this machine.
    let outside: IpAddr = "192.0.1.1".parse().expect("an address");
    let host = host(address.port(), vec![vec![outside], vec![HERE]], false).await;

    let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;

    assert_eq!(reason(&told), "fetch_failed");
    assert_eq!(count.load(Ordering::SeqCst), 0, "the connection went where the first answer led");
}

#[tokio::test]
async fn a_redirect_is_looked_at_like_the_first_url() {
    let (address, count, _) = elsewhere(|address| to(&format!("http://127.0.0.1:{}/inside", address.port()))).await;
    let host = host(address.port(), vec![vec![HERE]], false).await;
    // Only what a name leads to is trusted here, and only once.
    fn but_loopback_once(address: IpAddr) -> bool {
        static SEEN: AtomicUsize = AtomicUsize::new(0);
        address.is_loopback() && SEEN.fetch_add(1, Ordering::SeqCst) == 0 || is_public(address)
    }
    host.app()
        .remote
        .see(Net { resolver: Arc::new(Names(vec![vec![HERE]], AtomicUsize::new(0))), allows: but_loopback_once });

    let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;

    assert_eq!(reason(&told), "fetch_refused");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert!(host.becomes_bare().await);
}

#[tokio::test]
async fn three_redirects_are_followed_and_no_fourth() {
    let (address, count, _) = elsewhere(|_| to("/again")).await;
    let host = host(address.port(), vec![vec![HERE]], true).await;
    let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;
    assert_eq!(reason(&told), "fetch_refused");
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn what_is_too_long_too_slow_or_no_200_is_not_stored() {
    let answers: [(&str, Vec<u8>); 4] = [
        ("too long", ok("text/plain", &[b'x'; 10_001])),
        (
            "too long and does not say so",
            [b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec(), vec![b'x'; 20_000]].concat(),
        ),
        ("cut off", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\nconnection: close\r\n\r\nabc".to_vec()),
        ("not there", b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()),
    ];
    for (what, answer) in answers {
        let (address, ..) = elsewhere(move |_| answer.clone()).await;
        let host = host(address.port(), vec![vec![HERE]], true).await;
        let told = ingest(&host.owner("acme"), &format!("http://x.test:{}/", address.port())).await;
        assert_eq!(reason(&told), "fetch_failed", "{what}");
        assert!(host.becomes_bare().await, "{what}");
    }
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let host = host(port, vec![vec![HERE]], true).await;
    assert_eq!(reason(&ingest(&host.owner("acme"), &format!("http://x.test:{port}/")).await), "fetch_failed");
}

#[tokio::test]
async fn a_url_of_our_own_is_resolved_inside_the_tenant_and_never_fetched() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let picture = png(4, 4);
    let asset = owner.upload(picture.clone()).await;
    let foreign = host.owner("globex").upload(png(5, 5)).await;
    let bound = host.url(&format!("/v1/assets/{}/content", asset.id));

    for url in [&asset.url, &bound] {
        let told = ingest(&owner, url).await;
        assert_eq!(told.status, 201);
        assert_eq!(told.json()["asset"]["sha256"], asset.answer["asset"]["sha256"]);
    }
    for url in [&foreign.url, &host.url("/v1/assets/ast_01arz3ndektsv4rrffq69g5fav/content"), &host.url("/healthz")] {
        assert_eq!(ingest(&owner, url).await.status, 404, "{url}");
    }
    let writer = host.with_scope("acme", Scope::AssetsWrite);
    assert_eq!(ingest(&writer, &bound).await.status, 403);
    let part = json!({"runId": "run-2", "modalities": ["image"], "fetch": true, "messages": [{"content": [
        {"type": "image", "mimeType": "image/png", "url": asset.url}]}]});
    let told = Told::of(owner.post("/v1/content-parts/normalize", &part).await).await.json();
    assert_eq!(
        told["messages"][0]["content"][0],
        json!({"type": "image", "mimeType": "image/png", "mediaRef": format!("blob:{}", asset.id)})
    );
}
