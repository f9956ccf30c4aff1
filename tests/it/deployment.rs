//! What an operator is given besides the program: the compose file, the secrets' script, the rules for alerts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::harness::Host;
use crate::harness::bytes::png;
use crate::harness::process::{Place, url};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_compose_file_is_one_and_its_secrets_can_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(repository("docker-compose.yml"), folder.path().join("docker-compose.yml")).expect("a copy");

    let made = run(folder.path(), Command::new("sh").arg(repository("docs/deploy/secrets.sh")));
    let again = run(folder.path(), Command::new("sh").arg(repository("docs/deploy/secrets.sh")));
    let read = run(folder.path(), compose().args(["config", "--quiet"]));

    assert!(made.status.success() && again.status.success() && read.status.success(), "{made:?} {again:?} {read:?}");
    assert!(String::from_utf8_lossy(&made.stderr).contains("mk_acme-host_"));
    assert!(again.stderr.is_empty(), "what is there stays");
    for secret in secrets() {
        assert!(folder.path().join(&secret).is_file(), "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_starts_with_what_the_compose_file_sets() {
    let place = Place::in_bucket();
    let here = [
        ("MEDIAKEEP__SERVER__LISTEN", format!("127.0.0.1:{}", place.port())),
        ("MEDIAKEEP__SERVER__ADMIN_LISTEN", "127.0.0.1:0".to_owned()),
        ("MEDIAKEEP__STORE__URL", place.store().url().to_owned()),
        ("MEDIAKEEP__STORE__S3__ENDPOINT", place.store().s3().endpoint),
    ];
    let credentials: Vec<_> = mediakeep_storage::testing::credentials().into_iter().map(|(_, value)| value).collect();
    let file =
        format!("[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n", credentials[0], credentials[1]);
    let file = place.write("s3_credentials", file);
    let mut command = place.command(&["serve"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    for (name, value) in environment() {
        let value = match here.iter().find(|(known, _)| *known == name) {
            Some((_, here)) => here.clone(),
            None if name == "AWS_SHARED_CREDENTIALS_FILE" => file.display().to_string(),
            None => value,
        };
        command.env(name, value);
    }

    let server = place.start(command).await;

    let sent = server.upload(png(3, 3)).await;
    let path = url(&sent).strip_prefix("https://localhost").expect("the public base URL");
    assert_eq!(server.opens(&server.url(path)).await, 200);
    assert!(server.stop().await.success());
}

#[test]
fn every_setting_of_the_compose_file_is_in_the_readme() {
    let readme = std::fs::read_to_string(repository("README.md")).expect("a file");
    for (name, _) in environment().into_iter().filter(|(name, _)| name.starts_with("MEDIAKEEP__")) {
        let setting = name.trim_start_matches("MEDIAKEEP__").to_lowercase().replace("__", ".");
        assert!(readme.contains(&format!("`{setting}`")), "{setting}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_alert_asks_for_a_metric_that_there_is() {
    let host = Host::with(|settings| settings.server.admin_listen = "127.0.0.1:0".into()).await;
    // What is counted by label shows once there is one.
    assert_eq!(host.stranger().get(&host.url("/a/no-token")).await.status(), 404);
    let url = host.admin_url("/metrics");
    let metrics = reqwest::get(&url).await.expect("an answer").text().await.expect("text");
    let rules = std::fs::read_to_string(repository("docs/deploy/alerts.yml")).expect("a file");

    let asked: BTreeSet<&str> = rules
        .lines()
        .filter(|line| line.trim_start().starts_with("expr:"))
        .flat_map(|line| line.split(|c: char| !(c.is_ascii_lowercase() || c == '_')))
        .filter(|word| word.starts_with("mediakeep_"))
        .collect();

    assert!(asked.len() >= 5, "{asked:?}");
    for metric in asked {
        let family = metric.trim_end_matches("_total");
        assert!(metrics.contains(&format!("# TYPE {family} ")), "{metric}: {metrics}");
    }
}

fn repository(path: &str) -> PathBuf {
    Path::new(ROOT).join(path)
}

/// What the compose file gives the service: the lines of its `environment`.
fn environment() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(repository("docker-compose.yml")).expect("a file");
    let (_, service) = text.split_once("environment: &settings\n").expect("the service's environment");
    let lines = service.lines().take_while(|line| line.starts_with("    "));
    let pairs: Vec<_> = lines
        .filter_map(|line| line.trim().split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
        .collect();
    assert!(pairs.len() > 5, "{pairs:?}");
    pairs
}

/// The files that it takes for secrets.
fn secrets() -> Vec<String> {
    let text = std::fs::read_to_string(repository("docker-compose.yml")).expect("a file");
    let files = text.lines().filter_map(|line| line.split_once("{file: ./")?.1.strip_suffix('}').map(str::to_owned));
    let files: Vec<_> = files.collect();
    assert_eq!(files.len(), 6);
    files
}

/// Docker's program for compose files; Debian's package is installed where this user may.
fn compose() -> Command {
    let there = || Command::new("docker-compose").arg("version").stdin(Stdio::null()).output().is_ok();
    if !there() && rustix::process::geteuid().is_root() {
        for arguments in [&["update"][..], &["install", "--yes", "--no-install-recommends", "docker-compose"]] {
            let mut apt = Command::new("apt-get");
            apt.args(["-qq", "-o", "DPkg::Lock::Timeout=300"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
            let installed = apt.stdin(Stdio::null()).output().expect("it starts");
            assert!(installed.status.success(), "{installed:?}");
        }
    }
    assert!(there(), "this story needs docker-compose 1.29 or later (Debian: docker-compose)");
    Command::new("docker-compose")
}

fn run(folder: &Path, command: &mut Command) -> Output {
    command.current_dir(folder).stdin(Stdio::null()).output().expect("it starts")
}
