//! `docs/hosts`: the code of each page is one program, run by what its reader would run it by.
//!
//! Python is its standard library alone. TypeScript is checked and run by Deno, which the Python package registry has; it is installed once,
//! beside what was built. A machine without Python, or without a way to that registry, fails these stories.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use super::flaky;
use crate::harness::process::{Place, Ran, Server, ran};
use crate::harness::python::installed;

const DENO: &str = "2.9.8";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_for_hosts_in_python_does_what_it_says() {
    let told = told("python", "py", |program| {
        let mut command = Command::new("python3");
        command.args(["-I", "-W", "error"]).arg(program);
        command
    });
    assert_eq!(
        told.await,
        ["run run-py-1 open", "asset image/png 67", "fork run-py-1 1", "delivered 67", "export True"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_for_hosts_in_typescript_does_what_it_says() {
    let told = told("typescript", "ts", |program| {
        let mut command = Command::new(installed("deno", DENO, "deno", "deno"));
        command
            .args(["run", "--check", "--no-remote", "--no-config", "--allow-env", "--allow-net=127.0.0.1"])
            .arg(program);
        command.env("DENO_DIR", program.with_extension("cache")).env("NO_COLOR", "1");
        command
    });
    assert_eq!(
        told.await,
        ["run run-ts-1 open", "asset image/png 67", "fork run-ts-1 1", "delivered 67", "export true"]
    );
}

/// What the page's program prints against a service that is not always well, line by line.
async fn told(page: &str, language: &str, command: impl FnOnce(&Path) -> Command + Send + 'static) -> Vec<String> {
    let place = Place::new();
    let server = place.serve().await;
    let (service, failed) = flaky::before(([127, 0, 0, 1], place.port()).into()).await;
    let program = place.write(&format!("page.{language}"), code(page, language));
    let run = move || {
        let mut command = command(&program);
        command.env("MEDIAKEEP_URL", format!("http://{service}")).env("MEDIAKEEP_KEY", Server::key());
        command.stdin(Stdio::null());
        ran(command)
    };
    let ran: Ran = tokio::task::spawn_blocking(run).await.expect("it does not panic");
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert!(failed.load(Ordering::SeqCst) > 0, "something had to be sent again");
    assert!(server.stop().await.success(), "{}", place.log());
    ran.stdout.lines().map(str::to_owned).collect()
}

/// The page's blocks of code in that language, one after the other.
fn code(page: &str, language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/hosts/{page}.md"));
    let text = fs::read_to_string(path).expect("a page");
    let fence = format!("```{}\n", if language == "py" { "python" } else { language });
    let blocks: Vec<&str> = text.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() > 5, "{page} has {} blocks", blocks.len());
    blocks.join("\n\n")
}
