//! Rows for an index: uploads of which only the index hears.

use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::index::{NewAsset, Published};
use mediakeep_storage::quota::{Quota, Reserved};
use mediakeep_storage::record::{AssetState, DurableUrl, Labels, Origin, UploadIntent};
use mediakeep_storage::retention::Terms;
use mediakeep_storage::{AssetId, AssetIndex, AssetRecord, AuditEvent, BlobKey, Digest, RunId, TenantId, Timestamp};

/// How many bytes an asset has here.
pub(crate) const BYTES: u64 = 4096;

/// Two transitions: the announcement of an upload with its reservation, and the publication of its asset.
pub(crate) async fn upload(index: &dyn AssetIndex, tenant: &TenantId, quota: Quota) -> AssetId {
    let now = Timestamp::now();
    let blob = BlobKey::generate();
    let intent = UploadIntent { blob, alive_at: now, asset: None };
    let reserved = index.begin_reserved(tenant, intent, BYTES, quota).await.expect("an announcement");
    assert_eq!(reserved, Reserved::Done);
    let published = index.publish(tenant, new_asset(tenant, blob, now), &terms(), now).await.expect("a publication");
    let Published::Stored(view) = published else { unreachable!("{published:?}") };
    view.record.id
}

fn new_asset(tenant: &TenantId, blob: BlobKey, now: Timestamp) -> NewAsset {
    let record = record(tenant, "run-1", blob, now);
    let audit = AuditEvent::new(AuditKind::Ingest, "bench", now).asset(record.id);
    NewAsset { record, settled: None, recorded: None, discard_at: now, audit }
}

/// A live asset of a run, with bytes that no other has.
pub(crate) fn record(tenant: &TenantId, run: &str, blob: BlobKey, now: Timestamp) -> AssetRecord {
    let mut sha256 = [0; 32];
    sha256[..16].copy_from_slice(&blob.to_bytes());
    AssetRecord {
        id: AssetId::generate(now),
        tenant: tenant.clone(),
        run: RunId::parse(run).ok(),
        kind: "image".to_owned(),
        mime_type: "image/png".to_owned(),
        declared_mime_type: Some("image/png".to_owned()),
        bytes: BYTES,
        sha256: Digest(sha256),
        blob,
        facts: serde_json::json!({"width": 1024, "height": 768}),
        labels: Labels::default(),
        origin: Origin { source: "ai-generation".to_owned(), ..Origin::default() },
        created_at: now,
        asked_until: None,
        durable: DurableUrl { kid: "k1".to_owned(), issued_at: now.as_second(), generation: 1 },
        state: AssetState::Live,
        revision: 1,
    }
}

/// Terms of an installation that sets none.
pub(crate) fn terms() -> Terms {
    let day = jiff::SignedDuration::from_hours(24);
    Terms {
        default_run_log: 30 * day,
        unreferenced: day,
        grace: jiff::SignedDuration::ZERO,
        tombstone_bytes: day,
        tombstone_record: 90 * day,
    }
}
