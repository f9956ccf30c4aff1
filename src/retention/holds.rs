//! Holds: what an auditor wants kept, whatever else ends it.
//!
//! The record beside the bytes is written before the hold stands in the index and goes after it was lifted: an index made anew may hold
//! what was just being lifted, and never lets go of what is held.

use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::Placed;
use mediakeep_storage::record::{Hold, HoldOn};
use mediakeep_storage::{AuditEvent, HoldId, TenantId, Timestamp};
use serde_json::json;
use tracing::warn;

use crate::access::Principal;
use crate::app::App;
use crate::assets::{AssetError, Gone, members};

/// Places the hold, or gives one that is there its new reason.
pub async fn place(app: &App, caller: &Principal, on: &HoldOn, id: HoldId, reason: String) -> Result<Hold, AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let reason = members::reason(reason)?;
    let audit =
        about(AuditEvent::new(AuditKind::Hold, &*caller.id, now), on).details(json!({"holdId": id, "reason": reason}));
    let hold = Hold { id, reason, placed_at: now, principal: caller.id.to_string() };
    let of = RecordOf::Hold(on, &hold.id);
    let json = serde_json::to_vec(&hold).map_err(|error| AssetError::Internal(error.to_string()))?;
    app.blobs.put_record(tenant, of, sequence(now), json).await?;
    match app.index.hold(tenant, on, hold.clone(), audit).await? {
        Placed::Done(placed) => {
            changed(app, tenant, on);
            remove_older(app, tenant, of, sequence(now)).await;
            Ok(placed)
        }
        Placed::Unknown => {
            remove_older(app, tenant, of, sequence(now) + 1).await;
            Err(AssetError::NotFound)
        }
        Placed::Erased => {
            remove_older(app, tenant, of, sequence(now) + 1).await;
            Err(erased(app, tenant, on).await?)
        }
    }
}

/// Lifts the hold. What nothing else keeps goes with the next sweep.
pub async fn lift(app: &App, caller: &Principal, on: &HoldOn, id: &HoldId) -> Result<(), AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let audit = about(AuditEvent::new(AuditKind::Lift, &*caller.id, now), on).details(json!({"holdId": id}));
    if !app.index.lift(tenant, on, id, &app.terms(tenant), audit).await? {
        return Err(AssetError::NotFound);
    }
    changed(app, tenant, on);
    // One that is placed anew from the next millisecond on has a record of its own.
    remove_older(app, tenant, RecordOf::Hold(on, id), sequence(now) + 1).await;
    Ok(())
}

/// Of two records of one hold the later one counts.
fn sequence(now: Timestamp) -> u64 {
    u64::try_from(now.as_millisecond()).unwrap_or(0)
}

fn about(event: AuditEvent, on: &HoldOn) -> AuditEvent {
    match on {
        HoldOn::Asset(id) => event.asset(*id),
        HoldOn::Run(id) => event.run(id),
    }
}

fn changed(app: &App, tenant: &TenantId, on: &HoldOn) {
    match on {
        HoldOn::Asset(id) => app.rows.changed(*id),
        HoldOn::Run(_) => app.rows.floors_changed(tenant),
    }
}

async fn erased(app: &App, tenant: &TenantId, on: &HoldOn) -> Result<AssetError, AssetError> {
    let HoldOn::Asset(id) = on else {
        return Ok(AssetError::RunErased);
    };
    let record = app.index.find(tenant, *id).await?;
    Ok(record.as_ref().and_then(Gone::of).map_or(AssetError::NotFound, AssetError::from))
}

async fn remove_older(app: &App, tenant: &TenantId, of: RecordOf<'_>, sequence: u64) {
    if let Err(error) = app.blobs.remove_records(tenant, of, Some(sequence)).await {
        warn!(error = %error, "the record of a hold that is no more stays behind: an index made anew would hold it again");
    }
}
