//! Bytes in a container of Azure's protocol: of Azurite, of the npm registry, which its makers test against.

use std::process::Command;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use jiff::Timestamp;
use ring::hmac;

use super::keeps_and_gives_up;
use crate::harness::beside::Beside;
use crate::harness::node;
use crate::harness::process::{Place, client, free_port};
use crate::harness::store::Store;

const AZURITE: &str = "3.37.0";

/// The account that every Azurite has, with the key that its pages name.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_azure_container_keeps_what_was_acknowledged_and_gives_up_what_has_ended() {
    let azurite = Azurite::start().await;
    let place = Place::at(Store::of_environment("az://media/of/ours"));
    keeps_and_gives_up(&place, |command| azurite.known_to(command)).await;
}

/// A running server with one container.
struct Azurite {
    port: u16,
    server: Beside,
}

impl Azurite {
    async fn start() -> Self {
        let port = free_port();
        let server = tokio::task::spawn_blocking(move || {
            let mut command = node::program("azurite", AZURITE, "dist/src/blob/main.js");
            command.args(["--blobPort", &port.to_string()]);
            command.args(["--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
            Beside::start(&mut command)
        });
        let azurite = Self { port, server: server.await.expect("it does not panic") };
        let began = Instant::now();
        while !azurite.makes_container().await {
            let said = azurite.server.complaints();
            assert!(began.elapsed() < Duration::from_secs(120), "Azurite does not answer: {said}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        azurite
    }

    /// Asks for a container as the protocol has it; `false` while nobody answers.
    async fn makes_container(&self) -> bool {
        let date = Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let said = format!("x-ms-date:{date}\nx-ms-version:2023-11-03\n/{ACCOUNT}/{ACCOUNT}/media\nrestype:container");
        let key = BASE64.decode(KEY.as_bytes()).expect("a key");
        let signed =
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), format!("PUT{}{said}", "\n".repeat(12)).as_bytes());
        let put = client().put(format!("{}/media?restype=container", self.endpoint()));
        let put = put.header("x-ms-date", date).header("x-ms-version", "2023-11-03").header("content-length", "0");
        let put = put.header("authorization", format!("SharedKey {ACCOUNT}:{}", BASE64.encode(signed.as_ref())));
        let Ok(answer) = put.send().await else { return false };
        assert_eq!(answer.status(), 201);
        true
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/{ACCOUNT}", self.port)
    }

    /// The command with what Azure's own tools read from the environment.
    fn known_to(&self, mut command: Command) -> Command {
        command.env("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT).env("AZURE_STORAGE_ACCOUNT_KEY", KEY);
        command.env("AZURE_STORAGE_ENDPOINT", self.endpoint()).env("AZURE_ALLOW_HTTP", "true");
        command
    }
}
