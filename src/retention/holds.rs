//! Holds: what an auditor wants kept, whatever else ends it.
//!
//! The record beside the bytes follows the transition, which owes it, and is written before anybody is told. The index numbers the placings
//! and liftings, so that a hold that is lifted and placed again at once is as it was placed last, whoever writes first.

use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::Placed;
use mediakeep_storage::record::{Hold, HoldOn, HoldRecord, Owed};
use mediakeep_storage::{AuditEvent, HoldId, TenantId, fault};
use serde_json::json;

use crate::access::Principal;
use crate::app::App;
use crate::assets::library::MAX_PAGE;
use crate::assets::{AssetError, Gone, members};

/// Places the hold, or gives one that is there its new reason.
pub async fn place(app: &App, caller: &Principal, on: &HoldOn, id: HoldId, reason: String) -> Result<Hold, AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let reason = members::reason(reason)?;
    let audit =
        about(AuditEvent::new(AuditKind::Hold, &*caller.id, now), on).details(json!({"holdId": id, "reason": reason}));
    let hold = Hold { id, reason, placed_at: now, principal: caller.id.to_string(), number: 0 };
    match app.index.hold(tenant, on, hold, audit).await? {
        Placed::Done(placed) => {
            changed(app, tenant, on);
            fault::point("hold.placed");
            write_record(app, tenant, on, &placed.id, placed.number).await?;
            Ok(placed)
        }
        Placed::Unknown => Err(AssetError::NotFound),
        Placed::Erased => Err(erased(app, tenant, on).await?),
    }
}

/// Lifts the hold. What nothing else keeps goes with the next sweep.
pub async fn lift(app: &App, caller: &Principal, on: &HoldOn, id: &HoldId) -> Result<(), AssetError> {
    let (tenant, now) = (&caller.tenant, app.now());
    let audit = about(AuditEvent::new(AuditKind::Lift, &*caller.id, now), on).details(json!({"holdId": id}));
    let Some(number) = app.index.lift(tenant, on, id, &app.terms(tenant), audit).await? else {
        return Err(AssetError::NotFound);
    };
    changed(app, tenant, on);
    fault::point("hold.lifted");
    write_record(app, tenant, on, id, number).await
}

/// Writes what has become of the hold since the transition of that number, and looks once more: a transition that came later may have
/// been written before. Of two records of one hold the higher number counts.
pub async fn write_record(
    app: &App,
    tenant: &TenantId,
    on: &HoldOn,
    id: &HoldId,
    number: u64,
) -> Result<(), AssetError> {
    let of = RecordOf::Hold(on, id);
    let mut seen = standing(app, tenant, on, id).await?;
    loop {
        match &seen {
            Some(hold) => {
                let record = HoldRecord { hold: hold.clone(), on: Some(on.clone()) };
                let json = serde_json::to_vec(&record).map_err(|error| AssetError::Internal(error.to_string()))?;
                app.blobs.put_record(tenant, of, hold.number, json).await?;
                app.blobs.remove_records(tenant, of, Some(hold.number)).await?;
            }
            // What is placed from now on has a higher number than any record that is there.
            None => app.blobs.remove_records(tenant, of, Some(number + 1)).await?,
        }
        let now = standing(app, tenant, on, id).await?;
        if now.as_ref().map(|hold| hold.number) == seen.as_ref().map(|hold| hold.number) {
            app.paid.note(tenant, &Owed::Hold { on: on.clone(), id: id.clone(), number });
            return Ok(());
        }
        seen = now;
    }
}

/// The hold of that name, if it stands.
async fn standing(app: &App, tenant: &TenantId, on: &HoldOn, id: &HoldId) -> Result<Option<Hold>, AssetError> {
    let mut after = None;
    loop {
        let page = app.index.holds(tenant, on, after.as_ref(), MAX_PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(None);
        };
        after = Some(last.id.clone());
        if let Some(hold) = page.into_iter().find(|hold| hold.id == *id) {
            return Ok(Some(hold));
        }
    }
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
