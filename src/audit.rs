//! Which reads the audit log tells of.
//!
//! Every other event is written by the transition that it tells of. A read changes nothing, so it has no transition: under `full` its
//! row is written before the bytes go out; under `sampled` a few reads a second are kept, and of the rest there is a row that says how
//! many they were; under `off` there is none.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mediakeep_keys::Claims;
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::{AssetRecord, AuditEvent, StorageError, TenantId, Timestamp};
use serde_json::json;

use crate::access::Principal;
use crate::app::App;
use crate::config::settings::AuditReads;

/// Rows of reads that are kept between two flushes: enough to see who reads, too few to matter beside what is read.
const SAMPLE: usize = 8;

/// Reads that wait to be written.
#[derive(Debug, Default)]
pub struct ReadTrail {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    sampled: Vec<(TenantId, AuditEvent)>,
    counted: HashMap<TenantId, u64>,
}

/// Who is about to read.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    /// The credential's principal, if there is one.
    pub caller: Option<&'a Principal>,
    /// What the capability says, if it is one that opens the bytes.
    pub claims: Option<&'a Claims>,
}

/// Notes that somebody is about to read the asset's bytes.
pub async fn read(app: &App, record: &AssetRecord, reader: Reader<'_>) -> Result<(), StorageError> {
    match app.settings.audit.reads {
        AuditReads::Off => Ok(()),
        AuditReads::Full => app.index.record(&record.tenant, vec![reader.event(record, app.now())]).await,
        AuditReads::Sampled => {
            let mut waiting = app.reads.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.sampled.len() < SAMPLE {
                waiting.sampled.push((record.tenant.clone(), reader.event(record, app.now())));
            } else if let Some(count) = waiting.counted.get_mut(&record.tenant) {
                *count += 1;
            } else {
                waiting.counted.insert(record.tenant.clone(), 1);
            }
            Ok(())
        }
    }
}

impl Reader<'_> {
    fn event(self, record: &AssetRecord, now: Timestamp) -> AuditEvent {
        let principal = self.caller.map_or("capability", |caller| &*caller.id);
        let event = AuditEvent::new(AuditKind::Read, principal, now).asset(record.id);
        match self.claims {
            Some(claims) => event.url(claims.url_id()),
            None => event,
        }
    }
}

/// Writes what waits. Called every second, and once at the end.
pub async fn flush(app: &App) -> Result<(), StorageError> {
    let waiting = {
        let mut waiting = app.reads.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *waiting)
    };
    let mut rows: HashMap<TenantId, Vec<AuditEvent>> = HashMap::new();
    for (tenant, event) in waiting.sampled {
        rows.entry(tenant).or_default().push(event);
    }
    for (tenant, count) in waiting.counted {
        app.metrics.reads_not_logged(count);
        let summary = AuditEvent::new(AuditKind::Read, "sampling", app.now()).details(json!({"notLogged": count}));
        rows.entry(tenant).or_default().push(summary);
    }
    for (tenant, events) in rows {
        app.index.record(&tenant, events).await?;
    }
    Ok(())
}
