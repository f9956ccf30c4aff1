//! Refusals of those who are who they say: an authentic token that opens nothing any more, a credential without the scope.
//!
//! What is forged leaves no row: anybody can send it, and it says nothing of anybody. Of the others there is at most one row per
//! principal and minute, with a count, so that nobody can fill a log by being refused. It stands in the log of the caller's tenant. Where
//! what was asked for is another tenant's, a row stands in that one's log too, and names nobody: `foreign`. Each process counts for itself.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::{AssetId, AuditEvent, StorageError, TenantId, Timestamp};
use serde_json::json;

use crate::access::Principal;
use crate::app::App;
use crate::assets::capability::Capability;

/// Between two rows of one principal, in seconds.
const MINUTE: i64 = 60;

/// Principals and tokens of one tenant whose refusals are told apart. Those of further ones are one row of [`OTHERS`]: whoever is refused
/// under many names takes no room but its own tenant's.
const PRINCIPALS: usize = 64;

/// Tenants whose refusals wait at a time. Those of further ones are counted, for the metric alone.
const TENANTS: usize = 4_096;

/// Asset ids that one principal asked for in vain, and whose owner is looked for.
const SUSPECTS: usize = 8;

/// The most looks of one flush for owners: beyond them, in a service of very many tenants, an owner is not told.
const LOOKS: usize = 2_000;

/// What is said of callers of other tenants.
const FOREIGN: &str = "foreign";

/// What is said of callers who are not told apart.
const OTHERS: &str = "others";

/// Refusals that wait to be written.
#[derive(Debug, Default)]
pub struct Denials(Mutex<HashMap<TenantId, OfTenant>>);

/// Refusals that stand in one tenant's log, by who was refused.
type OfTenant = HashMap<String, Denial>;

/// Whose log, and who was refused.
type Key = (TenantId, String);

/// Refusals of one principal.
#[derive(Debug, Default)]
struct Denial {
    principal: String,
    url: Option<String>,
    asset: Option<AssetId>,
    reasons: BTreeMap<&'static str, u64>,
    suspects: Vec<AssetId>,
    written: Option<Timestamp>,
}

/// Who was refused.
#[derive(Debug)]
struct Refused<'a> {
    tenant: &'a TenantId,
    principal: &'a str,
    url: Option<String>,
    asset: Option<AssetId>,
}

/// Which rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Those whose principal had none for a minute.
    Now,
    /// All: the service stops.
    All,
}

impl Denials {
    /// A credential was refused; `false` if there is no room to remember it.
    pub fn credential(&self, caller: &Principal, reason: &'static str) -> bool {
        self.note(Refused { tenant: &caller.tenant, principal: &caller.id, url: None, asset: None }, reason)
    }

    /// A credential asked for an asset that its tenant does not have. Whether another one does is found out later.
    pub fn asset(&self, caller: &Principal, asset: AssetId) -> bool {
        let noted = self.credential(caller, "not_found");
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tenant = waiting.get_mut(&caller.tenant);
        // Whoever found no place of its own is among the others.
        let denial = of_tenant
            .and_then(|of| if of.contains_key(&caller.id) { of.get_mut(&caller.id) } else { of.get_mut(OTHERS) });
        if let Some(denial) = denial
            && denial.suspects.len() < SUSPECTS
            && !denial.suspects.contains(&asset)
        {
            denial.suspects.push(asset);
        }
        noted
    }

    /// An authentic token opened nothing.
    pub fn capability(&self, token: &Capability, caller: Option<&Principal>, reason: &'static str) -> bool {
        let (url, asset) = (Some(token.claims.url_id()), Some(token.asset));
        match caller {
            Some(caller) if caller.tenant != token.tenant => {
                let noted = self.note(Refused { tenant: &token.tenant, principal: FOREIGN, url, asset }, reason);
                self.credential(caller, "not_found") && noted
            }
            Some(caller) => self.note(Refused { tenant: &token.tenant, principal: &caller.id, url, asset }, reason),
            None => self.note(Refused { tenant: &token.tenant, principal: "capability", url, asset }, reason),
        }
    }

    fn note(&self, refused: Refused<'_>, reason: &'static str) -> bool {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= TENANTS && !waiting.contains_key(refused.tenant) {
            return false;
        }
        let of_tenant = waiting.entry(refused.tenant.clone()).or_default();
        // A token by itself is its own principal.
        let mut who = match (&refused.url, refused.principal) {
            (Some(url), "capability") => format!("capability {url}"),
            (_, principal) => principal.to_owned(),
        };
        let mut principal = refused.principal;
        if of_tenant.len() >= PRINCIPALS && !of_tenant.contains_key(&who) {
            (who, principal) = (OTHERS.to_owned(), OTHERS);
        }
        let denial = of_tenant.entry(who).or_default();
        if denial.reasons.is_empty() {
            (denial.url, denial.asset) = (refused.url, refused.asset);
            denial.principal = principal.to_owned();
        } else {
            // The row is about one asset, or about none in particular.
            denial.url = denial.url.take().filter(|url| refused.url.as_ref() == Some(url));
            denial.asset = denial.asset.filter(|asset| refused.asset == Some(*asset));
        }
        *denial.reasons.entry(reason).or_default() += 1;
        true
    }

    /// Takes the rows that are due, and forgets who was not refused for a minute.
    fn take(&self, due: Due, now: Timestamp) -> Vec<(Key, AuditEvent)> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |written: Option<Timestamp>| {
            due == Due::All || written.is_none_or(|at| now.duration_since(at).as_secs() >= MINUTE)
        };
        let mut ready = Vec::new();
        waiting.retain(|tenant, of_tenant| {
            of_tenant.retain(|_, denial| !denial.reasons.is_empty() || !is_due(denial.written));
            let due = of_tenant.iter_mut().filter(|(_, denial)| !denial.reasons.is_empty() && is_due(denial.written));
            ready.extend(due.map(|(who, denial)| ((tenant.clone(), who.clone()), denial.row(now))));
            !of_tenant.is_empty()
        });
        ready
    }

    /// Has a row that could not be written wait for the next flush.
    fn put_back(&self, key: Key, unwritten: &AuditEvent) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let denial = waiting.entry(key.0).or_default().entry(key.1).or_default();
        denial.principal.clone_from(&unwritten.principal);
        let count = unwritten.details.as_ref().and_then(|details| details["count"].as_u64()).unwrap_or(1);
        *denial.reasons.entry("not_written_at_first").or_default() += count;
        denial.written = None;
    }

    /// Takes the asset ids that somebody asked for in vain, with whose credential.
    fn take_suspects(&self) -> Vec<(TenantId, AssetId)> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let suspects = waiting.iter_mut().flat_map(|(tenant, of_tenant)| {
            let suspects = of_tenant.values_mut().flat_map(|denial| std::mem::take(&mut denial.suspects));
            suspects.map(|asset| (tenant.clone(), asset))
        });
        suspects.collect()
    }
}

impl Denial {
    fn row(&mut self, now: Timestamp) -> AuditEvent {
        let reasons = std::mem::take(&mut self.reasons);
        let count: u64 = reasons.values().sum();
        self.written = Some(now);
        AuditEvent {
            asset_id: self.asset.take(),
            url_id: self.url.take(),
            ..AuditEvent::new(AuditKind::Denied, &*self.principal, now)
        }
        .details(json!({"count": count, "reasons": reasons}))
    }
}

/// Writes the rows that are due. One that cannot be written waits for the next flush, and keeps no other waiting. The answer is the last
/// failure.
pub async fn flush(app: &App, due: Due) -> Result<(), StorageError> {
    let mut outcome = find_owners(app).await;
    for (key, event) in app.denials.take(due, app.now()) {
        if let Err(error) = app.index.record(&key.0, vec![event.clone()]).await {
            app.denials.put_back(key, &event);
            outcome = Err(error);
        }
    }
    outcome
}

/// Tells the owners of assets that others asked for by their id. Nobody waits for it: the answer was given before, and is the same
/// whether there is an owner or not.
async fn find_owners(app: &App) -> Result<(), StorageError> {
    let suspects = app.denials.take_suspects();
    if suspects.is_empty() {
        return Ok(());
    }
    let (mut looks, mut last) = (0, None);
    while let Some(tenant) = super::tenant_behind(app, last).await? {
        for (_, asset) in suspects.iter().filter(|(caller, _)| *caller != tenant) {
            looks += 1;
            if app.index.find(&tenant, *asset).await?.is_some() {
                let refused = Refused { tenant: &tenant, principal: FOREIGN, url: None, asset: Some(*asset) };
                app.denials.note(refused, "not_found");
            }
        }
        if looks > LOOKS {
            return Ok(());
        }
        last = Some(tenant);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scopes;

    fn caller(id: &str) -> Principal {
        Principal { tenant: TenantId::parse("acme").expect("a tenant"), id: id.into(), scopes: Scopes::ALL }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time in range")
    }

    fn counts(denials: &Denials, second: i64) -> Vec<u64> {
        let rows = denials.take(Due::Now, at(second)).into_iter();
        rows.map(|(_, event)| event.details.expect("details")["count"].as_u64().expect("a count")).collect()
    }

    #[test]
    fn a_principal_has_one_row_a_minute_with_a_count() {
        let denials = Denials::default();
        let deny = |times| (0..times).for_each(|_| assert!(denials.credential(&caller("key"), "scope_missing")));

        deny(3);
        assert_eq!(counts(&denials, 0), [3]);
        deny(4);
        assert_eq!(counts(&denials, 59), [0; 0]);
        deny(1);
        assert_eq!(counts(&denials, 60), [5]);
        assert_eq!(counts(&denials, 120), [0; 0]);
        assert!(denials.0.lock().expect("no panic").is_empty(), "whoever is not refused is forgotten");
    }

    #[test]
    fn of_too_many_principals_the_later_ones_are_not_told_apart() {
        let denials = Denials::default();
        for n in 0..PRINCIPALS + 5 {
            assert!(denials.credential(&caller(&format!("key-{n}")), "scope_missing"));
        }
        assert!(denials.credential(&caller("key-0"), "scope_missing"));

        let rows = denials.take(Due::Now, at(0));
        let row = |who: &str| rows.iter().find(|(key, _)| key.1 == who).expect("a row").1.clone();
        let count = |row: AuditEvent| row.details.expect("details")["count"].clone();
        assert_eq!((rows.len(), count(row("key-0")), count(row(OTHERS))), (PRINCIPALS + 1, json!(2), json!(5)));
        assert_eq!(row(OTHERS).principal, OTHERS);
    }

    #[test]
    fn a_tenant_that_is_refused_under_many_names_takes_no_other_tenants_place() {
        let denials = Denials::default();
        for n in 0..100_000 {
            assert!(denials.credential(&caller(&format!("key-{n}")), "scope_missing"));
        }
        let globex = Principal { tenant: TenantId::parse("globex").expect("a tenant"), ..caller("key") };
        assert!(denials.credential(&globex, "scope_missing"));

        let rows = denials.take(Due::Now, at(0));
        assert!(rows.iter().any(|(key, _)| key.0 == globex.tenant && key.1 == "key"));
        assert_eq!(rows.len(), PRINCIPALS + 2);
    }
}
