//! The OpenAPI document, tried by a program that knows nothing else of us: every operation with what the document allows and with what
//! it does not, and what follows from one answer to the next request.
//!
//! The program is schemathesis, of the Python package registry.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mediakeep::access::{Scope, hash_secret};

use crate::harness::process::Place;
use crate::harness::python;

const VERSION: &str = "4.32.5";

/// What is not asked of the service: what the document takes for valid may still be refused. A cursor is a cursor of ours, a date lies
/// ahead, text is base64 of something, a condition does not hold, an asset is over: none of that can be said in a schema.
const EXCLUDED: &str = "positive_data_acceptance";

/// How else it may refuse what the document does not allow. Some refusals come before the parameters or the body are looked at: whoever has
/// no credential, or not its scope, hears so whatever was sent (401, 403); what is no id of anything is as unknown as an id that nobody
/// has (404); what is over is over (410); another version of a protocol is not spoken (412); a body beyond its limit is refused while it comes (413).
const SETTINGS: &str = "
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 410, 412, 413, 415, 422, 428, 429]

[checks.missing_required_header]
expected-statuses = [400, 401, 403, 404, 406, 412, 415, 422]
";

/// What it cannot write by itself: the bytes of an upload in parts are bytes.
const HOOKS: &str = "
import schemathesis

schemathesis.serializer.alias('application/offset+octet-stream', 'application/octet-stream')
";

/// The same requests each time: a commit fails for what it does, not for what was thrown.
const SEED: &str = "1";

/// Longer than it ever takes.
const PATIENCE: Duration = Duration::from_secs(150);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_does_what_its_document_says_for_whoever_has_a_credential() {
    let key = "mk_tried_secret-of-tried";
    is_clean(&["--header", &format!("Authorization: Bearer {key}"), "--max-examples", "10"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_does_what_its_document_says_for_whoever_has_none() {
    is_clean(&["--max-examples", "5"]).await;
}

/// Serves, and has every check run in every phase.
async fn is_clean(arguments: &[&str]) {
    let scopes: Vec<String> = Scope::ALL.iter().map(|scope| format!("{:?}", scope.name())).collect();
    let place = Place::with(&format!(
        "[[access.api_keys]]\nid = \"tried\"\ntenant = \"tried\"\nsecret_sha256 = \"{}\"\nscopes = [{}]",
        hash_secret("secret-of-tried"),
        scopes.join(", ")
    ));
    let server = place.serve().await;
    place.write("schemathesis.toml", SETTINGS);
    place.write("octets.py", HOOKS);
    let program = tokio::task::spawn_blocking(|| python::installed("schemathesis", VERSION, "schemathesis", "st"))
        .await
        .expect("it does not panic");

    let mut command = Command::new(program);
    command.args(["--config-file", "schemathesis.toml", "run", &server.url("/v1/openapi.json")]);
    command.args(["--checks", "all", "--exclude-checks", EXCLUDED, "--continue-on-failure"]);
    command.args(["--phases", "examples,coverage,fuzzing,stateful"]);
    command.args(["--seed", SEED, "--request-timeout", "20", "--no-color"]).args(arguments);
    command.current_dir(place.path()).stdin(Stdio::null());
    command.env("SCHEMATHESIS_HOOKS", "octets").env("PYTHONPATH", place.path());
    let told = tokio::task::spawn_blocking(move || ran(command)).await.expect("it does not panic");

    assert!(told.0, "{}", told.1);
    assert!(!told.1.contains("Errored:"), "each operation was tried: {}", told.1);
    assert!(server.stop().await.success(), "{}", place.log());
}

/// Runs it to its end; whether it found nothing, and what it said.
fn ran(mut command: Command) -> (bool, String) {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let to_log = || Stdio::from(log.reopen().expect("the file"));
    let mut child = command.stdout(to_log()).stderr(to_log()).spawn().expect("it starts");
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break Some(status);
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let text = String::from_utf8_lossy(&fs::read(log.path()).expect("the file")).into_owned();
    (status.is_some_and(|status| status.success()), format!("{status:?}\n{text}"))
}
