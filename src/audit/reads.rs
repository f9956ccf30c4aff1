//! Reads. A read changes nothing, so it has no transition that would write its row: under `full` its
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

/// Rows of a tenant's reads that are kept between two flushes: enough to see who reads, too few to matter beside what is read.
const SAMPLE: usize = 8;

/// Tenants whose rows are kept between two flushes: their rows are a megabyte or two at the most. Of further ones, reads are counted.
const SAMPLED_TENANTS: usize = 1_024;

/// Reads that wait to be written.
#[derive(Debug, Default)]
pub struct ReadTrail {
    waiting: Mutex<HashMap<TenantId, Waiting>>,
}

/// A tenant's reads.
#[derive(Debug, Default)]
struct Waiting {
    sampled: Vec<AuditEvent>,
    counted: u64,
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
            app.reads.sample(&record.tenant, || reader.event(record, app.now()));
            Ok(())
        }
    }
}

impl ReadTrail {
    /// Keeps the event while there is room for it, else counts it.
    fn sample(&self, tenant: &TenantId, event: impl FnOnce() -> AuditEvent) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Nearly every read is of a tenant that is there: its name is copied only when it is not.
        if !waiting.contains_key(tenant) {
            waiting.insert(tenant.clone(), Waiting::default());
        }
        let tenants = waiting.len();
        let own = waiting.get_mut(tenant).expect("the lines above have put it there");
        match own.sampled.len() < SAMPLE && (tenants <= SAMPLED_TENANTS || !own.sampled.is_empty()) {
            true => own.sampled.push(event()),
            false => own.counted += 1,
        }
    }

    fn take(&self) -> HashMap<TenantId, Waiting> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has what could not be written wait for the next flush, under the bounds of what is new.
    fn put_back(&self, tenant: &TenantId, unwritten: Waiting) {
        for event in unwritten.sampled {
            self.sample(tenant, || event);
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(tenant.clone()).or_default().counted += unwritten.counted;
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

/// Writes what waits.
///
/// What cannot be written waits for the next call, and keeps no other tenant's reads waiting. The answer is the last failure.
pub(super) async fn flush(app: &App) -> Result<(), StorageError> {
    let mut outcome = Ok(());
    for (tenant, waiting) in app.reads.take() {
        match app.index.record(&tenant, waiting.rows(app.now())).await {
            Ok(()) if waiting.counted > 0 => app.metrics.reads_not_logged(waiting.counted),
            Ok(()) => {}
            Err(error) => {
                app.reads.put_back(&tenant, waiting);
                outcome = Err(error);
            }
        }
    }
    outcome
}

impl Waiting {
    /// The reads that were kept, and a row that says how many were not.
    fn rows(&self, now: Timestamp) -> Vec<AuditEvent> {
        let mut rows = self.sampled.clone();
        if self.counted > 0 {
            let left_out = json!({"notLogged": self.counted});
            rows.push(AuditEvent::new(AuditKind::Read, "sampling", now).details(left_out));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(id: &str) -> TenantId {
        TenantId::parse(id).expect("a tenant")
    }

    fn read() -> AuditEvent {
        AuditEvent::new(AuditKind::Read, "capability", Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn what_could_not_be_written_waits_within_the_same_bounds() {
        let (trail, acme) = (ReadTrail::default(), tenant("acme"));
        (0..10).for_each(|_| trail.sample(&acme, read));
        let unwritten = trail.take().remove(&acme).expect("its reads");
        (0..3).for_each(|_| trail.sample(&acme, read));

        trail.put_back(&acme, unwritten);

        let waiting = trail.take().remove(&acme).expect("its reads");
        assert_eq!((waiting.sampled.len(), waiting.counted), (SAMPLE, 5));
    }

    #[test]
    fn of_too_many_tenants_the_later_ones_are_counted() {
        let trail = ReadTrail::default();
        for n in 0..=SAMPLED_TENANTS {
            trail.sample(&tenant(&format!("tenant-{n}")), read);
        }
        trail.sample(&tenant("tenant-0"), read);

        let mut waiting = trail.take();

        let mut of = |n: usize| waiting.remove(&tenant(&format!("tenant-{n}"))).expect("its reads");
        assert_eq!(of(0).sampled.len(), 2);
        let last = of(SAMPLED_TENANTS);
        assert_eq!((last.sampled.len(), last.counted), (0, 1));
    }
}
