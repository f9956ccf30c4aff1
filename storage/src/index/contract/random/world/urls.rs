//! What is changed of assets, and the URLs that are handed out of them.

use super::{KEYS, World, pick};
use crate::audit::AuditKind;
use crate::ids::AssetId;
use crate::index::contract::random::step::Act;
use crate::index::contract::stage::{days, event};
use crate::index::contract::urls::url as minted;
use crate::index::{Amendment, AssetIndex, NewDurable};
use crate::retention::after;

impl World {
    pub(super) async fn change(&mut self, act: Act) {
        let audit = event(AuditKind::Amend, self.now);
        match act {
            Act::Amend { asset, expected } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let name = Some(Some(format!("at {}", self.now)));
                let change = Amendment { name, expected, ..Amendment::default() };
                both!(self, index => index.amend(&tenant, id, change.clone(), audit.clone()));
            }
            Act::Raise { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let durable = NewDurable { kid: "k2".into(), issued_at: self.now.as_second() };
                both!(self, index => index.raise_generation(&tenant, id, durable.clone(), audit.clone()));
            }
            Act::Resign { asset } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let durable = NewDurable { kid: "k3".into(), issued_at: self.now.as_second() };
                both!(self, index => index.resign(&tenant, id, durable.clone(), audit.clone()));
            }
            Act::Revoke { tenant, url, keep_days } => {
                let (tenant, until) = (self.tenants[tenant].clone(), after(self.now, days(keep_days)));
                both!(self, index => index.revoke_url(&tenant, KEYS[url], until, audit.clone()));
            }
            _ => {}
        }
    }

    pub(super) async fn share(&mut self, act: Act) {
        let (now, audit) = (self.now, event(AuditKind::Mint, self.now));
        match act {
            Act::Mint { asset, url, label, uses, live_days } => {
                let Some((tenant, id)) = pick(&self.assets, asset) else { return };
                let mut minted = minted(KEYS[url], id, label.map(|label| KEYS[label]), uses);
                minted.record.expires_at = after(now, days(live_days));
                minted.record.keep_until = after(now, days(live_days + 1));
                both!(self, index => index.mint(&tenant, vec![minted.clone()], vec![audit.clone()]));
            }
            Act::TakeUse { tenant, url } => {
                let tenant = self.tenants[tenant].clone();
                both!(self, index => index.take_use(&tenant, KEYS[url]));
            }
            Act::RevokeUrls { tenant } => {
                let (tenant, names) = (self.tenants[tenant].clone(), KEYS.map(str::to_owned));
                both!(self, index => index.revoke_urls(&tenant, &names, audit.clone(), now));
            }
            Act::RaiseAll { asset, epoch } => {
                let Some((tenant, _)) = pick(&self.assets, asset) else { return };
                let durable = NewDurable { kid: "k4".into(), issued_at: now.as_second() };
                let ids: Vec<AssetId> = self.assets.iter().skip(asset % 4).map(|(_, id)| *id).collect();
                both!(self, index => index.raise_generations(&tenant, &ids, durable.clone(), audit.clone()));
                if epoch {
                    both!(self, index => index.raise_epoch(&tenant, audit.clone()));
                }
            }
            _ => {}
        }
    }
}
