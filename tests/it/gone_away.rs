//! A client that asks for a change and is gone before the answer: what it has begun is done, and the next request sees it.

use std::time::Duration;

use mediakeep_storage::testing::FAULT_VARIABLE;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server, client, eventually, free_port, url};

/// A service whose index takes changes at once and answers them when the story says so.
struct Held {
    place: Place,
    server: Server,
    metrics: String,
}

impl Held {
    async fn start() -> Self {
        let place = Place::with("");
        let admin = format!("127.0.0.1:{}", free_port());
        let mut command = place.command(&["serve"]);
        command
            .env("MEDIAKEEP__SERVER__ADMIN_LISTEN", &admin)
            // Where a cached row is trusted for a time, that time would hide what is wrong.
            .env("MEDIAKEEP__CAPABILITIES__REVOCATION_LAG", "1h")
            .env(FAULT_VARIABLE, format!("holds change.answered {}", place.file("hold").display()));
        let server = place.start(command).await;
        Self { place, server, metrics: format!("http://{admin}/metrics") }
    }

    /// Asks for the change, and resets the connection when the index has it. Its answer comes after the handler has gone.
    async fn ask_and_go(&self, method: &Method, path: &str, body: &Value) {
        let held = self.place.write("hold", "").with_extension("held");
        let mut wire = TcpStream::connect(("127.0.0.1", self.server.port())).await.expect("a connection");
        rustix::net::sockopt::set_socket_linger(&wire, Some(Duration::ZERO)).expect("a socket");
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\
             Content-Type: application/json\r\n\r\n{body}",
            Server::key(),
            body.len()
        );
        wire.write_all(head.as_bytes()).await.expect("it is heard");
        eventually(async || held.exists()).await;
        eventually(async || self.under_way().await == 1).await;

        drop(wire);
        eventually(async || self.under_way().await == 0).await;
        std::fs::remove_file(held).expect("it is there as long as it is held");
    }

    /// How many requests have a place.
    async fn under_way(&self) -> u64 {
        let text = client().get(&self.metrics).send().await.expect("metrics").text().await.expect("text");
        let gauges =
            text.lines().filter_map(|line| line.strip_prefix("mediakeep_requests_under_way{")?.rsplit_once(' '));
        gauges.map(|(_, taken)| taken.parse::<u64>().expect("a number")).sum()
    }

    /// Status and file name of what the URL opens.
    async fn opened(&self, url: &str) -> (u16, String) {
        let answer = self.server.request(Method::GET, url).send().await.expect("an answer");
        let named = answer.headers().get("content-disposition").map(|named| named.to_str().expect("ASCII").to_owned());
        (answer.status().as_u16(), named.unwrap_or_default())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_has_begun_holds_though_it_resets_its_connection_before_the_answer() {
    let host = Held::start().await;
    let loose = host.server.request(Method::POST, "/v1/assets").body(noise(3_000, 0)).send().await.expect("an answer");
    let loose: Value = loose.json().await.expect("JSON");
    let asset = async |seed| host.server.upload(noise(3_000, seed)).await;
    let (renamed, revoked, all) = (asset(1).await, asset(2).await, asset(3).await);
    let id = |answer: &Value| answer["asset"]["assetId"].as_str().expect("an id").to_owned();
    let path = |answer: &Value| format!("/v1/assets/{}", id(answer));
    let revoke = "/v1/urls/revoke".to_owned();

    for (method, path, body, shown, becomes) in [
        (Method::PATCH, path(&renamed), json!({"name": "renamed.bin"}), &renamed, 200),
        (Method::DELETE, path(&loose), json!({}), &loose, 410),
        (Method::POST, revoke.clone(), json!({"assetId": id(&revoked)}), &revoked, 404),
        (Method::POST, revoke, json!({"all": true}), &all, 404),
    ] {
        let before = host.opened(url(shown)).await;
        assert_eq!(before.0, 200, "{path}");

        host.ask_and_go(&method, &path, &body).await;

        eventually(async || host.opened(url(shown)).await != before).await;
        let (status, named) = host.opened(url(shown)).await;
        assert_eq!(status, becomes, "{path}");
        assert!(status != 200 || named.contains("renamed.bin"), "{named}");
    }
    assert!(host.server.stop().await.success());
}
