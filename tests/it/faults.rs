//! The process ends at each named moment of an upload, an expiry, an erasure and a sweep: nothing that was acknowledged is lost, nothing
//! lives without its bytes, and nothing is left behind.

use mediakeep_storage::testing::FAULT_VARIABLE;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server, url};

/// What is asked of the server when it ends at the point.
#[derive(Debug, Clone, Copy)]
enum Deed {
    /// An upload of bytes that nobody has.
    Upload,
    /// An upload of bytes that are there.
    UploadAgain,
    /// The end of an upload that nobody wants any more, by the sweep.
    Sweep,
    /// The erasure of an asset.
    Erase,
    /// The erasure of a run.
    EraseRun,
}

const POINTS: &[(&str, Deed)] = &[
    ("publish.sealed", Deed::Upload),
    ("publish.recorded", Deed::Upload),
    ("publish.stored", Deed::Upload),
    ("publish.shared", Deed::UploadAgain),
    ("publish.copy_removed", Deed::UploadAgain),
    ("sweep.ended", Deed::Sweep),
    ("sweep.doomed", Deed::Sweep),
    ("sweep.removed", Deed::Sweep),
    ("sweep.dropped", Deed::Sweep),
    ("erase.marked", Deed::Erase),
    ("erase.removed", Deed::Erase),
    ("erase_run.marked", Deed::EraseRun),
    ("erase_run.settled", Deed::EraseRun),
];

/// With these terms whatever nothing keeps is over a second after it was stored, with its bytes and its tombstone.
const SHORT: &str = "[retention]\nunreferenced = \"1s\"\ngrace = \"0s\"\norphan_grace = \"0s\"\n\
    tombstone_bytes = \"0s\"\ntombstone_record = \"0s\"\nsweep_interval = \"1h\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_named_moment_loses_nothing_and_leaves_nothing() {
    for (point, deed) in POINTS {
        crash_at(point, *deed).await;
    }
}

async fn crash_at(point: &str, deed: Deed) {
    let place = Place::with(SHORT);
    let server = place.serve().await;
    let (kept, other) = (server.upload(noise(3_000, 1)).await, server.upload(noise(3_000, 2)).await);
    if matches!(deed, Deed::Sweep) {
        let loose = server.request(Method::POST, "/v1/assets").body(noise(3_000, 3)).send().await.expect("an answer");
        assert_eq!(loose.status(), 201);
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    }
    assert!(server.stop().await.success());

    // A sweep is a command of its own; everything else is asked of a server that ends while it answers.
    if matches!(deed, Deed::Sweep) {
        let mut sweep = place.command(&["sweep"]);
        sweep.env(FAULT_VARIABLE, point);
        assert_ne!(crate::harness::process::ran(sweep).code, 0, "{point} was never come to");
    } else {
        let mut command = place.command(&["serve"]);
        command.env(FAULT_VARIABLE, point);
        let mut server = place.start(command).await;
        assert!(ask(&server, deed, &kept, &other).await.is_err(), "{point} was never come to");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&server.ended().await), Some(9), "{point}");
    }

    place.must_run(&["sweep"]);
    place.must_run(&["sweep"]);
    let verified = place.must_run(&["verify", "--deep"]);
    assert!(verified.stdout.contains(", 0 without a row"), "{point}: {}", verified.stdout);
    let server = place.serve().await;
    afterwards(&server, point, deed, &kept, &other).await;
    assert!(server.stop().await.success());
}

async fn ask(server: &Server, deed: Deed, kept: &Value, other: &Value) -> reqwest::Result<reqwest::Response> {
    let upload = |seed| server.request(Method::POST, "/v1/runs/run-1/assets").body(noise(3_000, seed));
    let id = |answer: &Value| answer["asset"]["assetId"].as_str().expect("an id").to_owned();
    match deed {
        Deed::Upload => upload(9).send().await,
        Deed::UploadAgain => upload(1).send().await,
        Deed::Erase => server.request(Method::DELETE, &format!("/v1/assets/{}?erase=true", id(other))).send().await,
        Deed::EraseRun => {
            // What another run quotes too is kept.
            let quoted = json!({"assets": [id(kept)]});
            server.request(Method::POST, "/v1/runs/run-2/references").json(&quoted).send().await?.error_for_status()?;
            server.request(Method::POST, "/v1/runs/run-1/erase").json(&json!({})).send().await
        }
        Deed::Sweep => unreachable!("a command of its own"),
    }
}

/// What was acknowledged is there, and what was asked for is done when it is asked for again.
async fn afterwards(server: &Server, point: &str, deed: Deed, kept: &Value, other: &Value) {
    let bytes = server.request(Method::GET, url(kept)).send().await.expect("an answer").bytes().await.expect("a body");
    assert_eq!(bytes, noise(3_000, 1), "{point}");
    if !matches!(deed, Deed::Sweep) {
        let again = ask(server, deed, kept, other).await.expect("an answer");
        assert!(again.status().is_success(), "{point}: {again:?}");
    }
    let opens = server.opens(url(other)).await;
    match deed {
        Deed::Erase | Deed::EraseRun => assert!(matches!(opens, 410 | 404), "{point}: {opens}"),
        _ => assert_eq!(opens, 200, "{point}"),
    }
}

/// Everything ends a second after it was stored, and leaves a tombstone.
const TOMBSTONES: &str =
    "[retention]\nunreferenced = \"1s\"\ngrace = \"0s\"\norphan_grace = \"0s\"\nsweep_interval = \"1h\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_owed_the_store_is_written_by_the_next_sweep_and_survives_the_index() {
    let points = [("erase.marked", 410, "erased"), ("sweep.ended", 410, "expired"), ("hold.placed", 200, "live")];
    for (point, right, state) in points {
        let place = Place::with(TOMBSTONES);
        let server = place.serve().await;
        let loose = server.request(Method::POST, "/v1/assets").body(noise(3_000, 3)).send().await.expect("an answer");
        let loose: Value = loose.json().await.expect("JSON");
        let path = format!("/v1/assets/{}", loose["asset"]["assetId"].as_str().expect("an id"));
        assert!(server.stop().await.success());
        if point == "sweep.ended" {
            tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
            let mut sweep = place.command(&["sweep"]);
            sweep.env(FAULT_VARIABLE, point);
            assert_ne!(crate::harness::process::ran(sweep).code, 0, "{point} was never come to");
        } else {
            let mut command = place.command(&["serve"]);
            command.env(FAULT_VARIABLE, point);
            let mut server = place.start(command).await;
            let request = match point {
                "hold.placed" => {
                    server.request(Method::PUT, &format!("{path}/holds/audit-7")).json(&json!({"reason": "an audit"}))
                }
                _ => server.request(Method::DELETE, &format!("{path}?erase=true")),
            };
            assert!(request.send().await.is_err(), "{point} was never come to");
            server.ended().await;
        }

        place.must_run(&["sweep"]);
        let anew = format!("sled://{}", place.file("anew").display());
        place.must_run(&["index", "rebuild", "--to", &anew]);
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        let mut command = place.command(&["serve"]);
        command.env("MEDIAKEEP__INDEX__URL", &anew);
        let server = place.start(command).await;
        assert_eq!(server.opens(url(&loose)).await, right, "{point}");
        let told: Value =
            server.request(Method::GET, &path).send().await.expect("an answer").json().await.expect("JSON");
        assert_eq!(told["state"], state, "{point}: {told}");
        assert!(server.stop().await.success());
    }
}
