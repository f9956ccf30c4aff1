//! Artifacts: what they reference, who finds them, and how they end with their run.

use jiff::Timestamp;
use serde_json::json;

use super::Subject;
use super::stage::{MANY, Owner, day, event, just_before, put, run_id};
use crate::audit::AuditKind;
use crate::ids::{ArtifactId, AssetId};
use crate::index::{NewArtifact, PutArtifact};
use crate::record::{ArtifactRecord, HoldOn, Owed, RunRecord};

impl Owner {
    pub(super) async fn try_artifact(&self, run: &str, id: &str, assets: &[AssetId], at: Timestamp) -> PutArtifact {
        let document = json!({"put": at.to_string(), "assets": assets.len()});
        let artifact = NewArtifact { run: run_id(run), id: artifact_id(id), document, assets: assets.to_vec() };
        let audit = event(AuditKind::Artifact, at).run(&artifact.run);
        let put = self.index.put_artifact(&self.tenant, &artifact, &self.terms, audit, at).await;
        put.expect("an answer to a putting")
    }

    /// Puts an artifact that may be put.
    pub(super) async fn artifact(&self, run: &str, id: &str, assets: &[AssetId], at: Timestamp) -> ArtifactRecord {
        done(self.try_artifact(run, id, assets, at).await).0
    }

    pub(super) async fn found(&self, run: &str, id: &str) -> Option<ArtifactRecord> {
        self.index.artifact(&self.tenant, &run_id(run), &artifact_id(id)).await.expect("an artifact, or none")
    }

    async fn naming(&self, asset: AssetId) -> Option<(String, String)> {
        let named = self.index.artifact_naming(&self.tenant, asset).await.expect("an artifact's name, or none");
        named.map(|(run, id)| (run.to_string(), id.to_string()))
    }
}

fn done(put: PutArtifact) -> (ArtifactRecord, RunRecord, bool) {
    match put {
        PutArtifact::Done { artifact, run, replaced } => Some((*artifact, *run, replaced)),
        PutArtifact::Unknown(_) | PutArtifact::RunErased => None,
    }
    .expect("the artifact stands")
}

fn artifact_id(name: &str) -> ArtifactId {
    ArtifactId::parse(name).expect("an artifact")
}

fn pair(run: &str, id: &str) -> Option<(String, String)> {
    Some((run.to_owned(), id.to_owned()))
}

pub(super) async fn an_artifact_is_what_was_put_last(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let one = owner.upload(Some("run-1"), "one", day(0)).await.record.id;
    let two = owner.upload(None, "two", day(0)).await.record.id;

    let (first, run, replaced) = done(owner.try_artifact("run-1", "report", &[two, one, two], day(0)).await);
    assert_eq!((first.number, first.created_at, first.put_at, replaced), (1, day(0), day(0), false));
    assert_eq!(first.assets, [one.min(two), one.max(two)], "each once, by name");
    assert_eq!(run.id, run_id("run-1"));
    assert_eq!(owner.found("run-1", "report").await, Some(first));
    assert_eq!(owner.view(two).await.references, [run_id("run-1")]);

    let (second, _, replaced) = done(owner.try_artifact("run-1", "report", &[one], day(1)).await);
    assert_eq!((second.number, second.created_at, second.put_at, replaced), (2, day(0), day(1), true));
    assert_eq!(owner.found("run-1", "report").await, Some(second));
    assert_eq!(owner.found("run-1", "other").await, None);
    assert_eq!(owner.found("run-2", "report").await, None);
    assert_eq!(owner.log().await.iter().filter(|row| row.event.kind == AuditKind::Artifact).count(), 2);
}

pub(super) async fn an_artifact_that_names_nothing_keeps_its_run(index: Subject) {
    let owner = Owner::of(&index, "acme");

    owner.artifact("run-1", "text", &[], day(0)).await;

    let run = index.run(&owner.tenant, &run_id("run-1")).await.expect("a run").expect("it is heard of");
    assert_eq!((run.assets, run.record.registered), (0, false));
    owner.sweep(just_before(day(30))).await;
    assert!(owner.found("run-1", "text").await.is_some());
    owner.sweep(day(30)).await;
    assert_eq!(owner.found("run-1", "text").await, None, "thirty days after its last reference");
}

pub(super) async fn what_an_artifact_may_not_name_makes_nothing(index: Subject) {
    let (owner, other) = (Owner::of(&index, "acme"), Owner::of(&index, "other"));
    let own = owner.upload(None, "own", day(0)).await.record.id;
    let foreign = other.upload(None, "own", day(0)).await.record.id;
    let dead = owner.upload(None, "dead", day(0)).await.record.id;
    owner.delete(dead, day(0)).await;

    let put = owner.try_artifact("run-1", "report", &[own, foreign, AssetId::generate(day(0))], day(0)).await;
    assert_eq!(put, PutArtifact::Unknown(vec![1, 2]));
    assert_eq!(owner.found("run-1", "report").await, None);
    assert_eq!(index.find_run(&owner.tenant, &run_id("run-1")).await.expect("a run, or none"), None);
    assert_eq!(owner.naming(own).await, None);

    let artifact = owner.artifact("run-1", "report", &[own, dead], day(0)).await;
    assert_eq!(artifact.number, 1, "what came to nothing does not count");
    assert!(!owner.lives(dead).await, "a reference to the dead revives nothing");
    assert_eq!(owner.view(dead).await.references, [run_id("run-1")]);
}

pub(super) async fn an_asset_is_named_as_long_as_an_artifact_names_it(index: Subject) {
    let (owner, other) = (Owner::of(&index, "acme"), Owner::of(&index, "other"));
    let asset = owner.upload(None, "one", day(0)).await.record.id;
    owner.artifact("run-2", "b", &[asset], day(0)).await;
    owner.artifact("run-2", "a", &[asset], day(0)).await;
    owner.artifact("run-1", "z", &[asset], day(0)).await;

    assert_eq!(owner.naming(asset).await, pair("run-1", "z"), "by the names of run and artifact");
    assert_eq!(other.naming(asset).await, None);
    assert_eq!(other.found("run-1", "z").await, None);
    owner.artifact("run-1", "z", &[], day(0)).await;
    assert_eq!(owner.naming(asset).await, pair("run-2", "a"));
    owner.erase_run("run-2", day(0)).await;
    assert_eq!(owner.naming(asset).await, None, "at once");
    assert!(owner.view(asset).await.references.contains(&run_id("run-1")), "a reference stays for the run's life");
}

pub(super) async fn artifacts_end_with_their_run(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(5), day(0)).await;
    let asset = owner.upload(Some("run-1"), "one", day(0)).await.record.id;
    owner.artifact("run-1", "report", &[asset], day(0)).await;
    owner.run_until("run-1", day(7), day(1)).await;

    owner.sweep(day(5)).await;
    assert!(owner.found("run-1", "report").await.is_some(), "the run was extended");
    owner.hold(&HoldOn::Run(run_id("run-1")), "audit", day(6)).await;
    owner.sweep(day(9)).await;
    assert!(owner.found("run-1", "report").await.is_some(), "the run is held");
    owner.lift(&HoldOn::Run(run_id("run-1")), "audit", day(9)).await;
    assert_eq!(owner.sweep(day(9)).await.expired, [asset]);
    assert_eq!((owner.found("run-1", "report").await, owner.naming(asset).await), (None, None));

    // A run that is over takes it up all the same, and lets it go at the next sweep.
    let again = owner.artifact("run-1", "report", &[asset], day(9)).await;
    assert_eq!((again.number, again.created_at), (3, day(9)), "higher than the end of the first");
    owner.sweep(day(9)).await;
    assert_eq!(owner.found("run-1", "report").await, None);
    let ends = owner.log().await.into_iter().filter(|row| {
        row.event.kind == AuditKind::Expire && row.event.details == Some(json!({"artifactId": "report"}))
    });
    assert_eq!(ends.count(), 2);
}

pub(super) async fn artifacts_of_an_endless_run_stay(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.update(put("run-1"), day(0)).await.expect("a registration");
    owner.artifact("run-1", "report", &[], day(0)).await;

    owner.sweep(day(1_000)).await;

    assert!(owner.found("run-1", "report").await.is_some());
}

pub(super) async fn an_erased_run_has_no_artifacts(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let asset = owner.upload(None, "one", day(0)).await.record.id;
    owner.refer("other", &[asset], day(0)).await;
    owner.artifact("run-1", "report", &[asset], day(0)).await;

    owner.erase_run("run-1", day(1)).await;

    assert_eq!(owner.found("run-1", "report").await, None, "at once");
    assert_eq!(owner.try_artifact("run-1", "report", &[asset], day(1)).await, PutArtifact::RunErased);
    owner.sweep(day(1)).await;
    let gone = Owed::Artifact { run: run_id("run-1"), id: artifact_id("report"), number: 2 };
    let owed = index.owed(None, MANY).await.expect("what is owed");
    assert!(owed.contains(&(owner.tenant.clone(), gone)), "{owed:?}");
    assert!(owner.lives(asset).await, "another run references it");
    let ends = owner.log().await.into_iter().filter(|row| row.event.kind == AuditKind::Erase).count();
    assert_eq!(ends, 2, "of the run, and of the artifact");
}

pub(super) async fn artifacts_are_settled_in_pages(index: Subject) {
    let owner = Owner::of(&index, "acme");
    owner.run_until("run-1", day(2), day(0)).await;
    for n in 0..7 {
        owner.upload(Some("run-1"), "bytes", day(0)).await;
        owner.artifact("run-1", &format!("report-{n}"), &[], day(0)).await;
    }

    let swept = owner.sweep_by(2, day(2)).await;

    assert_eq!(swept.expired.len(), 7);
    for n in 0..7 {
        assert_eq!(owner.found("run-1", &format!("report-{n}")).await, None, "{n}");
    }
    assert_eq!(index.due(day(400), MANY).await.expect("what is due").len(), 7, "tombstones, and no look at the run");
}

pub(super) async fn a_fork_takes_up_no_artifact(index: Subject) {
    let owner = Owner::of(&index, "acme");
    let asset = owner.upload(None, "one", day(0)).await.record.id;
    owner.artifact("run-1", "report", &[asset], day(0)).await;

    let inherited = owner.fork("child", "run-1", day(0)).await.expect("a fork");

    assert_eq!(inherited, [asset]);
    assert_eq!(owner.found("child", "report").await, None);
}

pub(super) async fn an_artifact_and_an_erasure_are_of_one_mind([index, other]: [Subject; 2]) {
    for round in 0..12 {
        let (owner, second) = (Owner::of(&index, "acme"), Owner::of(&other, "acme"));
        let run = format!("run-{round}");
        let asset = owner.upload(Some(&run), "bytes", day(0)).await.record.id;

        let (put, _) = tokio::join!(
            async { tokio::spawn(artifact_in(owner.clone(), run.clone(), asset)).await.expect("it does not panic") },
            async { tokio::spawn(erasing(second.clone(), run.clone())).await.expect("it does not panic") },
        );

        assert!(!matches!(put, PutArtifact::Unknown(_)), "{put:?}");
        assert_eq!(owner.found(&run, "report").await, None, "whichever came first");
        owner.sweep(day(1)).await;
        assert_eq!(owner.naming(asset).await, None);
        assert!(!owner.lives(asset).await);
    }
}

async fn artifact_in(owner: Owner, run: String, asset: AssetId) -> PutArtifact {
    owner.try_artifact(&run, "report", &[asset], day(0)).await
}

async fn erasing(owner: Owner, run: String) {
    owner.erase_run(&run, day(0)).await;
}
