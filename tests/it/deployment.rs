//! What an operator is given besides the program: the compose file, the secrets' script, the rules for alerts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::harness::Host;
use crate::harness::bytes::png;
use crate::harness::process::{Place, files, url};

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
    let place = Place::shared("");
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
fn the_image_is_built_from_all_that_cargo_asks_for() {
    let file = std::fs::read_to_string(repository("docs/deploy/Dockerfile")).expect("a file");
    let copies = file.lines().filter_map(|line| line.strip_prefix("COPY ")).filter(|rest| !rest.starts_with("--"));
    let copies: Vec<Vec<&str>> = copies.map(|rest| rest.split(' ').collect()).collect();
    for copy in &copies {
        let (to, from) = copy.split_last().expect("a target");
        assert!(*to == "./" || from == [*to], "{copy:?} goes elsewhere than it lies here");
    }
    let copied: Vec<&str> = copies.iter().flat_map(|copy| &copy[..copy.len() - 1]).copied().collect();
    let ignored = std::fs::read_to_string(repository(".dockerignore")).expect("a file");

    for source in &copied {
        assert!(repository(source).exists(), "{source} is not there");
        assert!(!ignored.lines().any(|line| Path::new(source).starts_with(line)), "{source} is kept from the builder");
    }
    let needed = needed();
    assert!(needed.len() > 15, "{needed:?}");
    for path in needed {
        assert!(repository(&path).exists(), "{path} is not there");
        assert!(copied.iter().any(|source| Path::new(&path).starts_with(source)), "{path} is not copied");
    }
}

#[test]
fn the_proxy_that_is_trusted_is_the_one_there_is() {
    let text = std::fs::read_to_string(repository("docker-compose.yml")).expect("a file");
    let (_, address) = text.split_once("ipv4_address: ").expect("the proxy's");
    let address = address.split('}').next().expect("the address");

    let trusted = environment().into_iter().find(|(name, _)| name == "MEDIAKEEP__SERVER__TRUSTED_PROXIES");

    assert_eq!(trusted.expect("it is set").1, format!(r#"["{address}"]"#));
    // The engine gives the others theirs from the first on.
    assert!(address.rsplit('.').next().and_then(|last| last.parse::<u8>().ok()).is_some_and(|last| last >= 200));
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

/// What a build reads: what the manifests name, and what the program's sources take in.
fn needed() -> BTreeSet<String> {
    let mut needed: BTreeSet<String> = ["Cargo.toml", "Cargo.lock", "src"].map(str::to_owned).into();
    for manifest in ["Cargo.toml", "storage/Cargo.toml", "keys/Cargo.toml"] {
        let text = std::fs::read_to_string(repository(manifest)).expect("a manifest");
        let folder = Path::new(manifest).parent().expect("a folder");
        needed.insert(manifest.to_owned());
        let named = ["path", "build", "readme", "license-file"].map(|name| format!("{name} = \""));
        let named = named.iter().flat_map(|name| text.match_indices(name.as_str()).map(|(at, name)| at + name.len()));
        for at in named {
            needed.insert(plain(&folder.join(text[at..].split('"').next().expect("a text"))));
        }
    }
    for source in ["src", "storage/src", "keys/src"].into_iter().flat_map(|folder| files(&repository(folder))) {
        let text = std::fs::read_to_string(&source).unwrap_or_default();
        for taken in ["include_str!(\"", "include_bytes!(\"", "migrate!(\""] {
            for (at, _) in text.match_indices(taken) {
                let name = text[at + taken.len()..].split('"').next().expect("a text");
                let path = source.parent().expect("a folder").join(name).canonicalize().expect("it is there");
                needed.insert(plain(path.strip_prefix(ROOT).expect("it is in the repository")));
            }
        }
    }
    needed
}

fn plain(path: &Path) -> String {
    path.to_str().expect("a plain name").to_owned()
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
