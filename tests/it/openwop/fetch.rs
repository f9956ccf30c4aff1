//! The seam of the guarded fetcher: what the public suite asks of it, and what it may ask of anybody.

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mediakeep::access::Scope;
use mediakeep::config::units::Span;
use mediakeep::remote::{Net, Resolver};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::seams::host;
use crate::denied::{count, denied};
use crate::harness::Host;
use crate::harness::told::Told;

const PATH: &str = "/v1/host/sample/http/safe-fetch";

/// Everything leads to this machine.
#[derive(Debug)]
struct Here;

impl Resolver for Here {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }.boxed()
    }
}

async fn ask(host: &Host, body: Value) -> Told {
    Told::of(host.owner("acme").post(PATH, &body).await).await
}

/// A host whose fetcher is on.
async fn fetching(port: u16) -> Host {
    let host = Host::with(|settings| {
        settings.conformance.seams = true;
        settings.conformance.tenant = "acme".into();
        settings.remote.enabled = true;
        settings.remote.allow_ports = vec![80, 443, port];
        settings.remote.timeout = Span::seconds(2);
    })
    .await;
    host.app().remote.see(Net { resolver: Arc::new(Here), allows: |address| address.is_loopback() });
    host
}

#[tokio::test]
async fn what_leads_inside_is_blocked_whether_or_not_anything_is_fetched() {
    let off = host().await;
    let on = Host::with(|settings| {
        settings.conformance.seams = true;
        settings.conformance.tenant = "acme".into();
        settings.remote.enabled = true;
    })
    .await;
    for host in [off, on] {
        for target in [
            json!({"url": "http://169.254.169.254/latest/meta-data/"}),
            json!({"url": "http://127.0.0.1:6379/"}),
            json!({"url": "http://10.0.0.1/"}),
            json!({"url": "http://[::1]/"}),
            json!({"url": "http://localhost/"}),
            json!({"url": "file:///etc/passwd"}),
            json!({"url": "http://example.com/", "simulateRebindTo": "169.254.169.254"}),
            json!({"url": "http://example.com/", "simulateRebindTo": "::ffff:10.0.0.1"}),
            json!({"url": "http://example.com/", "init": {}, "simulateRebindTo": "127.0.0.1"}),
        ] {
            let told = ask(&host, target.clone()).await;
            assert_eq!((told.status, told.json()), (200, json!({"outcome": "blocked", "blocked": "ssrf"})), "{target}");
        }
        for headers in [
            json!({"Connection": "upgrade"}),
            json!({"connection": "keep-alive, Upgrade"}),
            json!({"CONNECTION": ["upgrade"]}),
            json!({"Upgrade": "websocket"}),
        ] {
            let told = ask(&host, json!({"url": "https://example.com/", "init": {"headers": headers}})).await;
            assert_eq!(told.json(), json!({"outcome": "blocked", "blocked": "upgrade"}), "{headers}");
        }
    }
}

#[tokio::test]
async fn what_may_be_asked_for_is_asked_for_and_its_status_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let served = tokio::spawn(async move {
        let mut heard = String::new();
        for status in ["200 OK", "418 I'm a teapot"] {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = vec![0; 4_096];
            let length = stream.read(&mut head).await.expect("a request");
            heard.push_str(&String::from_utf8_lossy(&head[..length]).to_ascii_lowercase());
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("a listener");
        }
        heard
    });
    let host = fetching(port).await;
    let url = format!("http://x.test:{port}/");
    let with_secrets =
        json!({"url": url, "init": {"method": "get", "headers": {"Authorization": "Bearer secret", "Cookie": "a=b"}}});

    assert_eq!(ask(&host, with_secrets).await.json(), json!({"outcome": "fetched", "status": 200}));
    assert_eq!(ask(&host, json!({"url": url})).await.json(), json!({"outcome": "fetched", "status": 418}));

    let heard = served.await.expect("both were asked for");
    assert!(!heard.contains("secret") && !heard.contains("cookie"), "{heard}");
    assert!(host.is_bare().await, "nothing is kept of it");
}

#[tokio::test]
async fn what_cannot_be_answered_is_refused_as_by_any_fetch() {
    let off = host().await;
    let told = ask(&off, json!({"url": "https://example.com/"})).await;
    assert_eq!((told.status, told.refusal()), (400, "validation_error: fetch_disabled".into()));
    let on = fetching(1).await;
    for (body, reason) in [
        (json!({"url": "http://x.test:1/"}), "validation_error: fetch_failed"),
        (json!({"url": "http://x.test/", "init": {"method": "POST"}}), "validation_error"),
        (json!({"url": "http://x.test/", "simulateRebindTo": "nowhere"}), "validation_error"),
        (json!({"url": 1}), "validation_error"),
        (json!({}), "validation_error"),
    ] {
        let told = ask(&on, body.clone()).await;
        assert_eq!((told.status, told.refusal()), (400, reason.into()), "{body}");
    }
    let named = ask(&on, json!({"url": "http://x.test/", "tenantId": "globex"})).await;
    assert_eq!(named.status, 403);
}

#[tokio::test]
async fn the_seam_asks_for_the_right_to_ingest_and_a_refusal_is_told_to_the_auditor() {
    let host = host().await;
    let inside = json!({"url": "http://127.0.0.1/"});
    for scope in Scope::ALL {
        let status = host.with_scope("acme", scope).post(PATH, &inside).await.status();
        assert_eq!(status, if scope == Scope::AssetsWrite { 200 } else { 403 }, "{scope:?}");
    }
    let rows = denied(&host, "acme").await;
    assert_eq!(count(&rows, "fetch_refused"), 1, "{rows:?}");
}
