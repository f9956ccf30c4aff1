//! Delivery URLs of the model, and what revokes them.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::state::State;
use crate::audit::AuditEvent;
use crate::ids::{AssetId, TenantId};
use crate::index::NewDurable;
use crate::record::{AssetRecord, MintedUrl, Owed, Taken, UrlView};

impl State {
    pub(super) fn mint(&mut self, tenant: &TenantId, urls: Vec<MintedUrl>, events: Vec<AuditEvent>) {
        for url in urls {
            if self.url(tenant, &url.url_id).is_none() {
                self.urls.push((tenant.clone(), url));
            }
        }
        events.into_iter().for_each(|event| self.audit(tenant, event));
    }

    pub(super) fn url(&self, tenant: &TenantId, url_id: &str) -> Option<UrlView> {
        let (_, url) = self.urls.iter().find(|(owner, url)| owner == tenant && url.url_id == url_id)?;
        let MintedUrl { url_id, record } = url.clone();
        Some(UrlView { revoked: self.is_revoked(tenant, &url_id), url_id, record })
    }

    pub(super) fn urls_with(&self, tenant: &TenantId, label: &str, after: Option<&str>, limit: usize) -> Vec<UrlView> {
        let own = self.urls.iter().filter(|(owner, url)| owner == tenant && url.record.label.as_deref() == Some(label));
        let mut names: Vec<&str> = own.map(|(_, url)| url.url_id.as_str()).collect();
        names.retain(|name| after.is_none_or(|after| *name > after));
        names.sort_unstable();
        names.into_iter().take(limit).filter_map(|name| self.url(tenant, name)).collect()
    }

    pub(super) fn take_use(&mut self, tenant: &TenantId, url_id: &str) -> Taken {
        if self.is_revoked(tenant, url_id) {
            return Taken::Unknown;
        }
        let url = self.urls.iter_mut().find(|(owner, url)| owner == tenant && url.url_id == url_id);
        match url.and_then(|(_, url)| url.record.uses_left.as_mut()) {
            None => Taken::Unknown,
            Some(0) => Taken::Exhausted,
            Some(left) => {
                *left -= 1;
                Taken::Yours
            }
        }
    }

    pub(super) fn revoke_urls(
        &mut self,
        tenant: &TenantId,
        url_ids: &[String],
        audit: &AuditEvent,
        now: Timestamp,
    ) -> Vec<MintedUrl> {
        let mut revoked = Vec::new();
        for url_id in BTreeSet::from_iter(url_ids) {
            let Some(UrlView { url_id, record, .. }) = self.url(tenant, url_id).filter(|url| url.opens(now)) else {
                continue;
            };
            self.put_revoked(tenant, &url_id, record.keep_until);
            self.audit(tenant, audit.clone().asset(record.asset).url(&*url_id));
            revoked.push(MintedUrl { url_id, record });
        }
        revoked
    }

    pub(super) fn raise_generations(
        &mut self,
        tenant: &TenantId,
        ids: &[AssetId],
        durable: &NewDurable,
        audit: &AuditEvent,
    ) -> Vec<AssetRecord> {
        let mut raised = Vec::new();
        for id in BTreeSet::from_iter(ids) {
            raised.extend(self.raise_generation(tenant, *id, durable.clone(), audit.clone().asset(*id)));
        }
        raised
    }

    pub(super) fn epoch(&self, tenant: &TenantId) -> u32 {
        self.epochs.iter().map(|owner| u32::from(owner == tenant)).sum()
    }

    pub(super) fn raise_epoch(&mut self, tenant: &TenantId, audit: AuditEvent) -> u32 {
        self.epochs.push(tenant.clone());
        self.audit(tenant, audit);
        self.owe(tenant, Owed::Epoch(self.epoch(tenant)));
        self.epoch(tenant)
    }

    pub(super) fn revoke_url(&mut self, tenant: &TenantId, url_id: &str, keep_until: Timestamp, audit: AuditEvent) {
        self.put_revoked(tenant, url_id, keep_until);
        self.audit(tenant, audit);
    }

    pub(super) fn put_revoked(&mut self, tenant: &TenantId, url_id: &str, keep_until: Timestamp) {
        let earlier = self.revoked.iter_mut().find(|(owner, id, _)| owner == tenant && id == url_id);
        match earlier {
            Some((_, _, until)) => *until = keep_until.max(*until),
            None => self.revoked.push((tenant.clone(), url_id.to_owned(), keep_until)),
        }
    }

    pub(super) fn is_revoked(&self, tenant: &TenantId, url_id: &str) -> bool {
        self.revoked.iter().any(|(owner, id, _)| owner == tenant && id == url_id)
    }
}
