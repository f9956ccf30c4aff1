//! An index that is lost is made anew from the store: every URL, floor, hold, fork and tombstone as it was.

use std::collections::BTreeSet;
use std::time::Duration;

use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::record::AssetRecord;
use mediakeep_storage::{AssetId, BlobKey, RunId, TenantId};
use serde_json::{Value, json};

use crate::harness::bytes::{noise, png};
use crate::harness::index::Kind;
use crate::harness::process::{Place, Server, url};
use crate::harness::{Asset, Caller, Host};
use crate::retention::{DAY, keep, later};

/// What a host's logs quote, and how it is to be found.
struct World {
    assets: Vec<Asset>,
    foreign: Asset,
}

fn acme() -> TenantId {
    TenantId::parse("acme").expect("a tenant")
}

fn id(asset: &Asset) -> AssetId {
    AssetId::parse(&asset.id).expect("an id")
}

/// Live, shared, forked, held, expired, erased, amended, twice-generated.
async fn world(host: &Host) -> World {
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let expired = owner.upload_loose(noise(300, 0)).await;
    host.advance(DAY + Duration::from_secs(3_600));
    assert_eq!(host.sweep().await.expired, 1);
    keep(&owner, "run-1", &later(host, 90 * DAY)).await;
    let (one, same) = (owner.upload(png(3, 3)).await, owner.upload(png(3, 3)).await);
    let default = owner.upload_to("nobody-registered", noise(300, 1)).await;
    let held = owner.upload_loose(noise(300, 2)).await;
    let erased = owner.upload(noise(300, 3)).await;
    let renewed = owner.upload(noise(300, 4)).await;
    for (path, body) in [
        ("/v1/runs/child".to_owned(), json!({"forkOf": "run-1"})),
        ("/v1/runs/run-1/holds/case-12".to_owned(), json!({"reason": "a case"})),
        (format!("/v1/assets/{}/holds/audit-7", held.id), json!({"reason": "an audit"})),
    ] {
        assert_eq!(owner.put(&path, &body).await.status(), 200, "{path}");
    }
    let quoted = json!({"assets": [default.id, expired.id]});
    assert_eq!(owner.post("/v1/runs/child/references", &quoted).await.status(), 200);
    let words = json!({"name": "chart.png", "alt": "Signups"});
    assert_eq!(owner.patch(&format!("/v1/assets/{}", one.id), &words).await.status(), 200);
    host.raise_generation("acme", &renewed).await;
    let row = host.app().index.find(&acme(), id(&renewed)).await;
    let row = row.expect("an index").expect("a row");
    mediakeep::assets::ingest::put_recovery_record(host.app(), &row).await.expect("a record");
    assert_eq!(owner.put("/v1/runs/lifted/holds/none", &json!({"reason": "x"})).await.status(), 404);
    assert_eq!(owner.delete("/v1/runs/run-1/holds/case-12").await.status(), 204);
    assert_eq!(owner.delete(&format!("/v1/assets/{}?erase=true", erased.id)).await.status(), 200);
    assert_eq!(owner.put("/v1/runs/run-1/holds/case-13", &json!({"reason": "another"})).await.status(), 200);
    World { assets: vec![expired, one, same, default, held, erased, renewed], foreign: other.upload(png(3, 3)).await }
}

/// All that the tenants are told of it.
async fn told(host: &Host, world: &World) -> Vec<Value> {
    let (owner, other) = (host.owner("acme"), host.owner("globex"));
    let mut told = Vec::new();
    for asset in &world.assets {
        told.push(json!({
            "asset": owner.show(asset).await,
            "retention": body(&owner, &format!("/v1/assets/{}/retention", asset.id)).await,
            "opened": opened(host, &asset.url).await,
        }));
        let minted = owner.post(&format!("/v1/assets/{}/urls", asset.id), &json!({"class": "durable"})).await;
        told.push(minted.json().await.expect("JSON"));
    }
    told.push(json!([other.show(&world.foreign).await, opened(host, &world.foreign.url).await]));
    for path in
        ["/v1/runs", "/v1/runs/run-1/assets", "/v1/runs/child/assets", "/v1/runs/nobody-registered", "/v1/assets"]
    {
        told.push(body(&owner, path).await);
    }
    told
}

/// One by one: a difference is shown alone.
fn same(after: &[Value], before: &[Value]) {
    assert_eq!(after.len(), before.len());
    after.iter().zip(before).for_each(|(after, before)| assert_eq!(after, before));
}

async fn body(owner: &Caller<'_>, path: &str) -> Value {
    owner.get(path).await.json().await.expect("JSON")
}

/// What the URL in the log answers: its status, its tag, its length.
async fn opened(host: &Host, url: &str) -> Value {
    let answer = host.stranger().get(url).await;
    let (status, tag) = (answer.status().as_u16(), answer.headers().get("etag").cloned());
    json!([status, tag.map(|tag| tag.to_str().expect("ASCII").to_owned()), answer.bytes().await.expect("a body").len()])
}

#[tokio::test]
async fn everything_that_a_url_depends_on_comes_back() {
    let host = Host::start().await;
    let world = world(&host).await;
    let before = told(&host, &world).await;

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.tenants, report.assets, report.holds, report.orphans), (2, 8, 2, 0));
    same(&told(&host, &world).await, &before);
    assert!(host.verify().await.is_clean());
    let owner = host.owner("acme");
    let held = &world.assets[4];
    assert_eq!(owner.delete(&format!("/v1/assets/{}?erase=true", held.id)).await.status(), 409, "still held");
    assert_eq!(owner.delete(&format!("/v1/assets/{}/holds/audit-7", held.id)).await.status(), 204);
    assert_eq!(owner.delete("/v1/runs/run-1/holds/case-13").await.status(), 204);
    keep(&owner, "child", &later(&host, DAY)).await;
    host.advance(91 * DAY);
    assert_eq!(host.sweep().await.expired, 6, "what was live ends when it would have");
    for asset in &world.assets {
        assert_eq!(host.stranger().get(&asset.url).await.status().as_u16() / 100, 4);
    }
}

/// Both ways: what the one has kept, the other is made of.
#[tokio::test]
async fn a_new_index_may_be_of_another_kind() {
    let host = Host::start().await;
    let world = world(&host).await;
    let before = told(&host, &world).await;
    let other = match Kind::of_this_process() {
        Kind::Sled => Kind::Postgres,
        Kind::Postgres => Kind::Sled,
    };

    let (host, report) = host.rebuilt(other).await;

    assert!(report.is_whole(), "{report:?}");
    same(&told(&host, &world).await, &before);
}

#[tokio::test]
async fn a_fork_whose_record_was_cut_off_takes_up_what_its_parent_has() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload_to("parent", noise(300, 1)).await;
    assert_eq!(owner.put("/v1/runs/child", &json!({"forkOf": "parent"})).await.status(), 200);
    assert_eq!(owner.put("/v1/runs/grandchild", &json!({"forkOf": "child"})).await.status(), 200);
    for folder in ["child", "grandchild"] {
        let quoted = data_encoding::BASE32_NOPAD.encode(folder.as_bytes()).to_ascii_lowercase();
        let quotes = host.folder().join("blobs/t").join(acme().prefix());
        std::fs::remove_dir_all(quotes.join("r/q").join(quoted)).expect("what the fork took up");
    }

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert!(report.is_whole(), "{report:?}");
    let mut quoting = host.owner("acme").show(&asset).await["references"].as_array().expect("runs").clone();
    quoting.sort_by_key(ToString::to_string);
    assert_eq!(quoting, [json!("child"), json!("grandchild"), json!("parent")]);
}

#[tokio::test]
async fn what_cannot_come_back_is_named_and_the_rest_does() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (good, lost, torn) =
        (owner.upload(noise(300, 1)).await, owner.upload(noise(300, 2)).await, owner.upload(noise(300, 3)).await);
    let acme = acme();
    let blobs = &host.app().blobs;
    let row = host.app().index.find(&acme, id(&lost)).await.expect("an index").expect("a row");
    blobs.remove(&acme, row.blob).await.expect("its bytes are taken away");
    blobs.put_record(&acme, RecordOf::Asset(id(&torn)), 1, b"{\"half\":".to_vec()).await.expect("a record");
    let stray = BlobKey::generate();
    let mut staging = blobs.stage(&acme, stray);
    staging.write(noise(50, 9).into()).await.expect("bytes");
    staging.seal().await.expect("a stray");

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert!(!report.is_whole());
    assert_eq!(report.without_bytes, [(acme.clone(), id(&lost))]);
    assert_eq!(report.unreadable.len(), 1, "{report:?}");
    assert!(report.unreadable[0].place.contains(&torn.id) && report.unreadable[0].instead.is_none(), "{report:?}");
    assert_eq!((report.orphans, report.doubtful), (0, 2), "the stray, and the bytes whose record is torn");
    assert_eq!(host.stranger().get(&good.url).await.status(), 200);
    for gone in [&lost, &torn] {
        assert_eq!(host.stranger().get(&gone.url).await.status(), 404);
    }
    host.advance(DAY);
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 3, "whatever may be an asset's stays");
}

#[tokio::test]
async fn an_asset_whose_blob_is_lost_takes_another_with_the_same_bytes_and_no_other() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let (first, same) = (owner.upload(noise(300, 1)).await, owner.upload(noise(300, 1)).await);
    let (stray, liar) = (owner.upload(noise(300, 2)).await, owner.upload(noise(300, 3)).await);
    let (decoy, foreign) = (owner.upload(noise(300, 4)).await, host.owner("globex").upload(noise(300, 3)).await);
    let rewrite = async |asset: &Asset, change: &dyn Fn(&mut AssetRecord)| {
        let mut row = host.app().index.find(&acme(), id(asset)).await.expect("an index").expect("a row");
        let before = row.blob;
        change(&mut row);
        mediakeep::assets::ingest::put_recovery_record(host.app(), &row).await.expect("a record");
        (before, row.sha256)
    };
    // What it was to share has gone; what it was to share is there under no name; and what says that it has the bytes has others.
    rewrite(&same, &|row| row.blob = BlobKey::generate()).await;
    rewrite(&stray, &|row| row.blob = BlobKey::generate()).await;
    let (lost, digest) = rewrite(&liar, &|row| row.blob = BlobKey::generate()).await;
    rewrite(&decoy, &|row| row.sha256 = digest).await;
    host.app().blobs.remove(&acme(), lost).await.expect("its bytes are taken away");

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert_eq!(report.without_bytes, [(acme(), id(&liar))], "neither another's bytes nor another tenant's");
    // Assets of one instant have no order.
    let moved: BTreeSet<_> = report.moved.iter().cloned().collect();
    assert_eq!(moved, BTreeSet::from([(acme(), id(&same)), (acme(), id(&stray))]));
    assert!(report.unreadable.is_empty());
    for (asset, seed) in [(&first, 1), (&same, 1), (&stray, 2), (&foreign, 3)] {
        let answer = host.stranger().get(&asset.url).await;
        assert_eq!(answer.bytes().await.expect("a body"), noise(300, seed), "{}", asset.id);
    }
    assert_eq!(host.stranger().get(&liar.url).await.status(), 404);
    let (host, report) = host.rebuilt(Kind::of_this_process()).await;
    assert_eq!(report.moved, [], "their records say so since then");
    assert!(host.verify().await.is_clean());
}

#[tokio::test]
async fn an_older_record_counts_where_the_newest_does_not_read_and_the_next_change_ends_both() {
    let host = Host::start().await;
    let owner = host.owner("acme");
    let asset = owner.upload(noise(300, 1)).await;
    assert_eq!(owner.patch(&format!("/v1/assets/{}", asset.id), &json!({"name": "secret.png"})).await.status(), 200);
    keep(&owner, "run-1", &later(&host, 90 * DAY)).await;
    let run = RunId::parse("run-1").expect("a run");
    let blobs = &host.app().blobs;
    for of in [RecordOf::Asset(id(&asset)), RecordOf::Run(&run)] {
        blobs.put_record(&acme(), of, 7, b"{\"half\": \"secret.png".to_vec()).await.expect("a record");
    }
    blobs.put_record(&acme(), RecordOf::Epoch, 3, Vec::new()).await.expect("a record");

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert!(!report.is_whole());
    let instead = report.unreadable.iter().map(|bad| bad.instead.as_deref().and_then(|place| place.rsplit('/').next()));
    let (asset_at, run_at) = ("00000000000000000002.json", "00000000000000000002.json");
    assert_eq!(instead.collect::<Vec<_>>(), [Some(run_at), Some(asset_at), None]);
    let owner = host.owner("acme");
    let shown = owner.show(&asset).await;
    assert_eq!((&shown["name"], &shown["retainUntil"]), (&json!("secret.png"), &json!(later(&host, 90 * DAY))));
    assert_eq!(
        host.stranger().get(&asset.url).await.status(),
        404,
        "all URLs were revoked, as the name of a record says"
    );
    assert_eq!(owner.delete(&format!("/v1/assets/{}?erase=true", asset.id)).await.status(), 200);
    for file in crate::harness::process::files(&host.folder().join("blobs/t").join(acme().prefix()).join("r/a")) {
        let text = std::fs::read_to_string(&file).expect("a record");
        assert!(!text.contains("secret.png"), "{}", file.display());
    }
}

#[tokio::test]
async fn bytes_of_nobody_go_after_their_grace() {
    let host = Host::start().await;
    let asset = host.owner("acme").upload(noise(300, 1)).await;
    let acme = acme();
    let mut staging = host.app().blobs.stage(&acme, BlobKey::generate());
    staging.write(noise(50, 9).into()).await.expect("bytes");
    staging.seal().await.expect("a stray");

    let (host, report) = host.rebuilt(Kind::of_this_process()).await;

    assert_eq!((report.orphans, report.doubtful), (1, 0));
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 2);
    host.advance(DAY);
    host.sweep().await;
    assert_eq!(host.stored_blobs().await, 1);
    assert_eq!(host.stranger().get(&asset.url).await.status(), 200);
}

#[tokio::test]
async fn the_command_takes_an_empty_place_and_says_what_it_cannot_know() {
    let place = Place::new();
    let server = place.serve().await;
    let answer = server.upload(png(2, 2)).await;
    assert!(server.stop().await.success());
    let there = place.index().url().to_owned();

    let refused = place.run(&["index", "rebuild", "--to", &there]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("made anew only where there is none"), "{refused:?}");

    let anew = format!("sled://{}", place.file("anew").display());
    let ran = place.must_run(&["index", "rebuild", "--to", &anew]);
    assert!(ran.stdout.contains("1 tenants, 1 runs, 1 assets"), "{ran:?}");
    assert_eq!(ran.stdout.lines().filter(|line| line.starts_with("not in a store: ")).count(), 3, "{ran:?}");
    let mut command = place.command(&["serve"]);
    command.env("MEDIAKEEP__INDEX__URL", &anew);
    let server: Server = place.start(command).await;
    assert_eq!(server.opens(url(&answer)).await, 200);
    assert_eq!(place.run(&["index", "rebuild", "--to", &anew]).code, 3, "a service has it");
}
