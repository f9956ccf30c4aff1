//! The process ends at each named moment of what it does: nothing that was acknowledged is lost, nothing lives without its bytes, nothing
//! is left behind, and what was begun in the index is in the store before long.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use futures_util::future::join_all;
use mediakeep_storage::testing::FAULT_VARIABLE;
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::harness::bytes::noise;
use crate::harness::process::{Place, Server, eventually, files, ran, url};

/// What is done when the process ends at the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// An upload of bytes that nobody has.
    Upload,
    /// An upload of bytes that are there.
    UploadAgain,
    /// The end of an upload that nobody wants any more, by the sweep.
    Sweep,
    Amend,
    Delete,
    Erase,
    EraseRun,
    Hold,
    Lift,
    Refer,
    PutRun,
    Fork,
    RevokeAll,
}

/// Moments before which the index or the store has been changed, and after which more is to be done.
const POINTS: &[(&str, Deed)] = &[
    ("publish.sealed", Deed::Upload),
    ("publish.recorded", Deed::Upload),
    ("publish.stored", Deed::Upload),
    ("publish.shared", Deed::UploadAgain),
    ("publish.copy_removed", Deed::UploadAgain),
    ("sweep.doomed", Deed::Sweep),
    ("sweep.removed", Deed::Sweep),
    ("sweep.dropped", Deed::Sweep),
    ("erase_run.settled", Deed::EraseRun),
];

/// Those of them at which the index has what the store does not say yet.
const OWING: &[(&str, Deed)] = &[
    ("sweep.ended", Deed::Sweep),
    ("amend.changed", Deed::Amend),
    ("record.written", Deed::Amend),
    ("delete.ended", Deed::Delete),
    ("delete.removed", Deed::Delete),
    ("erase.marked", Deed::Erase),
    ("erase.removed", Deed::Erase),
    ("record.forgotten", Deed::Erase),
    ("erase_run.marked", Deed::EraseRun),
    ("hold.placed", Deed::Hold),
    ("hold.lifted", Deed::Lift),
    ("references.taken", Deed::Refer),
    ("run.changed", Deed::PutRun),
    ("run.changed", Deed::Fork),
    ("run.quoted", Deed::Fork),
    ("epoch.raised", Deed::RevokeAll),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_named_moment_loses_nothing_and_leaves_nothing() {
    for (point, deed) in POINTS.iter().chain(OWING) {
        // Nothing is kept a moment longer than it has to be.
        let terms = if *deed == Deed::Sweep { "tombstone_bytes = \"0s\"\ntombstone_record = \"0s\"" } else { "" };
        let world = World::crashed(point, *deed, terms).await;

        world.place.index().uploads_fall_silent().await;
        world.place.must_run(&["sweep"]);
        world.place.must_run(&["sweep"]);
        let verified = world.place.must_run(&["verify", "--deep"]);
        assert!(verified.stdout.contains(", 0 without a row"), "{point}: {}", verified.stdout);
        let server = world.place.serve().await;
        let kept = server.request(Method::GET, url(&world.kept)).send().await.expect("an answer");
        match deed {
            Deed::RevokeAll => assert_eq!(kept.status(), 404),
            _ => assert_eq!(kept.bytes().await.expect("a body"), noise(3_000, 1), "{point}"),
        }
        if *deed != Deed::Sweep {
            let again = world.ask(&server, *deed).send().await.expect("an answer").status();
            let lifted = *deed == Deed::Lift && again == StatusCode::NOT_FOUND;
            assert!(again.is_success() || lifted, "{point}: {again:?}");
            world.assert_done(&server, point, *deed).await;
        }
        assert!(server.stop().await.success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_owed_the_store_is_written_by_the_next_sweep_that_comes_through_and_survives_the_index() {
    for (point, deed) in OWING {
        let world = World::crashed(point, *deed, "").await;
        for another in ["owed.paying", "owed.paid"] {
            assert_ne!(world.sweep_that_fails(another), 0, "{point}: nothing was owed at {another}");
        }

        world.place.must_run(&["sweep"]);

        let server = world.serve_anew().await;
        world.assert_done(&server, point, *deed).await;
        assert!(server.stop().await.success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_owed_the_store_is_written_when_the_service_starts() {
    let world = World::crashed("hold.placed", Deed::Hold, "").await;
    let holds = || {
        files(&world.place.file("blobs/t")).iter().filter(|file| file.ancestors().any(|at| at.ends_with("r/h"))).count()
    };
    assert_eq!(holds(), 0);

    let server = world.place.serve().await;
    eventually(async || holds() == 1).await;
    assert!(server.stop().await.success());

    let server = world.serve_anew().await;
    world.assert_done(&server, "hold.placed", Deed::Hold).await;
    assert!(server.stop().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_owed_and_not_told_until_the_records_before_it_are_gone() {
    for deed in [Deed::Erase, Deed::Amend, Deed::Delete, Deed::PutRun, Deed::Lift] {
        let world = World::made(deed, "").await;
        let mut command = world.place.command(&["serve"]);
        command.env(FAULT_VARIABLE, "fails records.remove");
        let server = world.place.start(command).await;
        assert_eq!(world.ask(&server, deed).send().await.expect("an answer").status(), 503, "{deed:?}");
        assert!(server.stop().await.success());
        assert_eq!(world.sweep_that_fails("fails records.remove"), 0, "what is owed keeps nothing else from its end");

        world.place.must_run(&["sweep"]);

        for folder in ["r/a", "r/r"] {
            let records = files(&world.place.file("blobs/t")).into_iter();
            let mut records: Vec<_> =
                records.filter(|file| file.ancestors().nth(2).is_some_and(|at| at.ends_with(folder))).collect();
            let count = records.len();
            records.dedup_by_key(|file| file.parent().map(std::path::Path::to_owned));
            assert_eq!(records.len(), count, "{deed:?}: an older record is left");
        }
        let server = world.serve_anew().await;
        world.assert_done(&server, "fails records.remove", deed).await;
        assert!(server.stop().await.success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_of_many_that_was_cut_short_is_finished_by_the_same_request() {
    let place = Place::with("[retention]\nsweep_interval = \"1h\"");
    let server = place.serve().await;
    for some in 0..30 {
        join_all((0..20).map(|n| server.upload(noise(64, some * 20 + n)))).await;
    }
    assert!(server.stop().await.success());
    let erase = |server: &Server| server.request(Method::POST, "/v1/runs/run-1/erase").json(&json!({}));
    let mut command = place.command(&["serve"]);
    // After the first of three transitions.
    command.env(FAULT_VARIABLE, "sweep.ended");
    let mut server = place.start(command).await;
    assert!(erase(&server).send().await.is_err());
    assert_eq!(server.ended().await.signal(), Some(9));

    let server = place.serve().await;
    let live = shown(&server, "/v1/assets?state=live&limit=500").await;
    assert_eq!(live["assets"].as_array().map(Vec::len), Some(600 - 256), "some are erased, and the others are not");
    let told: Value = erase(&server).send().await.expect("an answer").json().await.expect("JSON");

    assert_eq!((&told["erased"], &told["kept"]), (&json!(600), &json!([])));
    assert!(server.stop().await.success());
    assert!(place.blobs().is_empty());
    assert!(place.must_run(&["verify"]).stdout.contains(", 0 without a row"));
}

/// What is there before anything is done.
struct World {
    place: Place,
    /// In `run-1`, and stays.
    kept: Value,
    /// In `run-1`, and is what things are done to.
    other: Value,
    /// No run references it.
    loose: Value,
}

impl World {
    async fn made(deed: Deed, terms: &str) -> Self {
        let soon = if deed == Deed::Sweep { "unreferenced = \"1s\"" } else { "" };
        let retention =
            format!("[retention]\ngrace = \"0s\"\norphan_grace = \"0s\"\nsweep_interval = \"1h\"\n{soon}\n{terms}");
        let place = Place::with(&retention);
        let server = place.serve().await;
        let (kept, other) = (server.upload(noise(3_000, 1)).await, server.upload(noise(3_000, 2)).await);
        let loose = server.request(Method::POST, "/v1/assets").body(noise(3_000, 3)).send().await.expect("an answer");
        assert_eq!(loose.status(), 201);
        let world = Self { place, kept, other, loose: loose.json().await.expect("JSON") };
        match deed {
            Deed::Lift => must(world.ask(&server, Deed::Hold)).await,
            // What another run quotes too is kept.
            Deed::EraseRun => must(world.ask(&server, Deed::Refer)).await,
            Deed::Sweep => tokio::time::sleep(Duration::from_millis(1_100)).await,
            _ => {}
        }
        assert!(server.stop().await.success());
        world
    }

    /// The process has ended at the point: a sweep's as a command of its own, everything else while a server was asked for it.
    async fn crashed(point: &str, deed: Deed, terms: &str) -> Self {
        let world = Self::made(deed, terms).await;
        if deed == Deed::Sweep {
            assert_ne!(world.sweep_that_fails(point), 0, "{point} was never come to");
            return world;
        }
        let mut command = world.place.command(&["serve"]);
        command.env(FAULT_VARIABLE, point);
        let mut server = world.place.start(command).await;
        assert!(world.ask(&server, deed).send().await.is_err(), "{point} was never come to");
        assert_eq!(server.ended().await.signal(), Some(9), "{point}");
        world
    }

    fn sweep_that_fails(&self, point: &str) -> i32 {
        let mut sweep = self.place.command(&["sweep"]);
        sweep.env(FAULT_VARIABLE, point);
        ran(sweep).code
    }

    /// A service on an index that is made from the store alone.
    async fn serve_anew(&self) -> Server {
        let anew = format!("sled://{}", self.place.file("anew").display());
        self.place.must_run(&["index", "rebuild", "--to", &anew]);
        let mut command = self.place.command(&["serve"]);
        command.env("MEDIAKEEP__INDEX__URL", &anew);
        self.place.start(command).await
    }

    fn ask(&self, server: &Server, deed: Deed) -> RequestBuilder {
        let other = path(&self.other);
        let of_other = |more: &str| format!("{other}{more}");
        let (method, path, body) = match deed {
            Deed::Upload | Deed::UploadAgain => {
                let seed = if deed == Deed::Upload { 9 } else { 1 };
                return server.request(Method::POST, "/v1/runs/run-1/assets").body(noise(3_000, seed));
            }
            Deed::Amend => (Method::PATCH, other, json!({"name": "renamed.png"})),
            Deed::Delete => (Method::DELETE, path(&self.loose), json!({})),
            Deed::Erase => (Method::DELETE, of_other("?erase=true"), json!({})),
            Deed::EraseRun => (Method::POST, "/v1/runs/run-1/erase".into(), json!({})),
            Deed::Hold => (Method::PUT, of_other("/holds/audit-7"), json!({"reason": "an audit"})),
            Deed::Lift => (Method::DELETE, of_other("/holds/audit-7"), json!({})),
            Deed::Refer => {
                (Method::POST, "/v1/runs/run-2/references".into(), json!({"assets": [self.kept["asset"]["assetId"]]}))
            }
            Deed::PutRun => (Method::PUT, "/v1/runs/run-1".into(), json!({"logRetainUntil": "2099-01-01T00:00:00Z"})),
            Deed::Fork => (Method::PUT, "/v1/runs/child".into(), json!({"forkOf": "run-1"})),
            Deed::RevokeAll => (Method::POST, "/v1/urls/revoke".into(), json!({"all": true})),
            Deed::Sweep => unreachable!("a command of its own"),
        };
        server.request(method, &path).json(&body)
    }

    /// What was asked for is so.
    async fn assert_done(&self, server: &Server, point: &str, deed: Deed) {
        let (kept, other) = (shown(server, &path(&self.kept)).await, shown(server, &path(&self.other)).await);
        let loose = async || shown(server, &path(&self.loose)).await;
        let (told, right) = match deed {
            Deed::Upload | Deed::UploadAgain => (json!(kept["state"]), json!("live")),
            Deed::Sweep | Deed::Delete => (loose().await["state"].clone(), json!("expired")),
            Deed::Amend => (other["name"].clone(), json!("renamed.png")),
            Deed::Erase => (json!([other["state"], other["name"], other["sha256"]]), json!(["erased", null, null])),
            Deed::EraseRun => (json!([other["state"], kept["state"]]), json!(["erased", "live"])),
            Deed::Hold => (other["holds"].clone(), json!(["audit-7"])),
            Deed::Lift => (other["holds"].clone(), json!([])),
            Deed::Refer => (kept["references"].clone(), json!(["run-2", "run-1"])),
            Deed::PutRun => {
                (shown(server, "/v1/runs/run-1").await["logRetainUntil"].clone(), json!("2099-01-01T00:00:00Z"))
            }
            Deed::Fork => {
                let child = shown(server, "/v1/runs/child").await;
                (json!([child["forkOf"], child["assets"]]), json!(["run-1", 2]))
            }
            Deed::RevokeAll => (json!(server.opens(url(&self.kept)).await), json!(404)),
        };
        assert_eq!(told, right, "{point}");
    }
}

async fn must(request: RequestBuilder) {
    let status = request.send().await.expect("an answer").status();
    assert!(status.is_success(), "{status}");
}

fn path(answer: &Value) -> String {
    format!("/v1/assets/{}", answer["asset"]["assetId"].as_str().expect("an id"))
}

async fn shown(server: &Server, path: &str) -> Value {
    server.request(Method::GET, path).send().await.expect("an answer").json().await.expect("JSON")
}
