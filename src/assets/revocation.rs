//! Revoking URLs: one, those of a label, those of an asset or of a run's, or all that a tenant has.
//!
//! A delivery URL is marked by its name. Whatever is wider raises generations: every URL says under which one it was made, so all that
//! are older open nothing, durable ones included, and a new durable string can be made. For `all` that is one write, whatever there is.
//!
//! What was revoked is written beside the bytes before anybody hears of it, so that an index made anew knows it. Should that fail, the
//! caller hears so and asks again; what was raised is then raised twice, which does no harm.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use mediakeep_storage::audit::AuditKind;
use mediakeep_storage::blob::RecordOf;
use mediakeep_storage::index::{AssetQuery, NewDurable};
use mediakeep_storage::record::{Owed, RevokedUrls, UrlView};
use mediakeep_storage::{AssetId, AssetView, AuditEvent, RunId, TenantId, Timestamp, fault};
use serde_json::{Value, json};

use super::fetch::{self, Shut};
use super::library::write_record;
use super::{AssetError, Gone, urls};
use crate::access::Principal;
use crate::app::App;

/// So many assets or URLs are revoked at a time.
const STEP: usize = 256;

/// So many recovery records are written at a time.
const WRITES: usize = 16;

/// So many assets, and so many runs, are named in an answer.
pub const NAMED: usize = 1_000;

/// What is to be revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A delivery URL, by its id.
    Url(String),
    /// A durable URL, which is that generation of the asset.
    Durable(AssetId, u32),
    /// The delivery URLs with this label.
    Label(String),
    /// Every URL of an asset; `None` stands for a name that is no asset's.
    Asset(Option<AssetId>),
    /// Every URL of every asset that a run references; `None` stands for a name that is no run's.
    Run(Option<RunId>),
    /// Every URL of the tenant.
    All,
}

impl Selector {
    /// What a URL's id names.
    pub fn of_url_id(url_id: String) -> Self {
        let durable = url_id.split_once('.').and_then(|(asset, generation)| {
            let (asset, number) = (AssetId::parse(asset).ok()?, generation.parse::<u32>().ok()?);
            // One spelling: neither "+1" nor "01" is an id that anybody was given.
            (number.to_string() == generation).then_some((asset, number))
        });
        match durable {
            Some((asset, generation)) => Self::Durable(asset, generation),
            None => Self::Url(url_id),
        }
    }

    /// Whether it kills durable URLs, which runs' logs quote.
    pub fn is_wide(&self) -> bool {
        !matches!(self, Self::Url(_) | Self::Label(_))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Url(_) | Self::Durable(..) => "urlId",
            Self::Label(_) => "label",
            Self::Asset(_) => "assetId",
            Self::Run(_) => "runId",
            Self::All => "all",
        }
    }
}

/// What was revoked, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    /// By id or label: the delivery URLs that opened until now. Else: the assets whose URLs were revoked.
    pub count: u64,
    /// The assets, the first [`NAMED`] of them.
    pub assets: BTreeSet<AssetId>,
    /// The runs whose logs quote them, without the one that was asked for; at most [`NAMED`].
    pub runs: BTreeSet<RunId>,
    /// Whether there are more assets or runs than are named.
    pub truncated: bool,
}

impl Revoked {
    /// Names the asset and what quotes it.
    fn name(&mut self, view: &AssetView, but: Option<&RunId>) {
        note(&mut self.assets, view.record.id, &mut self.truncated);
        for run in view.references.iter().filter(|run| Some(*run) != but) {
            note(&mut self.runs, run.clone(), &mut self.truncated);
        }
        self.truncated |= view.reference_count > view.references.len() as u64;
    }
}

fn note<T: Ord>(named: &mut BTreeSet<T>, one: T, truncated: &mut bool) {
    if named.len() < NAMED || named.contains(&one) {
        named.insert(one);
    } else {
        *truncated = true;
    }
}

/// A revocation under way.
struct Work<'a> {
    app: &'a App,
    caller: &'a Principal,
    audit: AuditEvent,
    /// Whether it only counts.
    dry: bool,
    told: Revoked,
}

/// Revokes what is selected, or only counts it. What is unknown or another tenant's is nothing.
pub async fn revoke(app: &App, caller: &Principal, selector: &Selector, dry: bool) -> Result<Revoked, AssetError> {
    let audit = AuditEvent::new(AuditKind::Revoke, &*caller.id, app.now()).details(json!({"by": selector.name()}));
    let mut work = Work { app, caller, audit, dry, told: Revoked::default() };
    match selector {
        Selector::Url(url_id) => work.url(url_id).await?,
        Selector::Label(label) => work.label(label).await?,
        Selector::Durable(asset, generation) => work.asset(*asset, Some(*generation)).await?,
        Selector::Asset(Some(asset)) => work.asset(*asset, None).await?,
        Selector::Run(Some(run)) => work.run(run).await?,
        Selector::Asset(None) | Selector::Run(None) => {}
        Selector::All => work.all().await?,
    }
    Ok(work.told)
}

impl Work<'_> {
    async fn url(&mut self, url_id: &str) -> Result<(), AssetError> {
        let found = self.app.index.url(&self.caller.tenant, url_id).await?;
        self.urls(found.into_iter().collect()).await
    }

    async fn label(&mut self, label: &str) -> Result<(), AssetError> {
        self.audit.details = Some(json!({"by": "label", "label": label}));
        let mut after: Option<String> = None;
        loop {
            let page = self.app.index.urls_with(&self.caller.tenant, label, after.as_deref(), STEP).await?;
            after = page.last().map(|url| url.url_id.clone());
            if after.is_none() {
                return Ok(());
            }
            self.urls(page).await?;
        }
    }

    /// Revokes those of the delivery URLs that open.
    async fn urls(&mut self, mut urls: Vec<UrlView>) -> Result<(), AssetError> {
        let (app, tenant, now) = (self.app, &self.caller.tenant, self.app.now());
        urls.retain(|url| url.opens(now));
        let named: BTreeSet<AssetId> = urls.iter().map(|url| url.record.asset).collect();
        let mut views: BTreeMap<AssetId, AssetView> = BTreeMap::new();
        for asset in named {
            views.extend(app.index.view(tenant, asset, &app.terms(tenant)).await?.map(|view| (asset, view)));
        }
        // Those of an older generation, or of an asset that is over, open nothing already.
        let opening = |url: &UrlView| {
            let view = views.get(&url.record.asset)?;
            (view.generation() == url.record.generation && view.record.is_live()).then_some(view)
        };
        urls.retain(|url| opening(url).is_some());
        let mut revoked: BTreeSet<String> = urls.iter().map(|url| url.url_id.clone()).collect();
        if !self.dry && !urls.is_empty() {
            let named = urls.iter().map(|url| (url.url_id.clone(), url.record.keep_until)).collect();
            app.blobs.put_revoked(tenant, &RevokedUrls { urls: named }, now).await?;
            let url_ids: Vec<String> = revoked.into_iter().collect();
            let done = app.index.revoke_urls(tenant, &url_ids, self.audit.clone(), now).await?;
            revoked = done.into_iter().map(|url| url.url_id).collect();
        }
        for view in urls.iter().filter(|url| revoked.contains(&url.url_id)).filter_map(opening) {
            self.told.name(view, None);
        }
        self.told.count += revoked.len() as u64;
        Ok(())
    }

    async fn asset(&mut self, asset: AssetId, generation: Option<u32>) -> Result<(), AssetError> {
        let tenant = &self.caller.tenant;
        let view = self.app.index.view(tenant, asset, &self.app.terms(tenant)).await?;
        match view.filter(|view| generation.is_none_or(|generation| view.generation() == generation)) {
            Some(view) => self.assets(vec![view], None).await,
            None => Ok(()),
        }
    }

    async fn run(&mut self, run: &RunId) -> Result<(), AssetError> {
        let tenant = &self.caller.tenant;
        self.audit = self.audit.clone().run(run);
        let terms = self.app.terms(tenant);
        let mut query = AssetQuery { run: Some(run.clone()), limit: STEP, ..AssetQuery::default() };
        loop {
            let page = self.app.index.page(tenant, &query, &terms).await?;
            query.after = page.last().map(|view| view.record.id);
            if query.after.is_none() {
                return Ok(());
            }
            self.assets(page, Some(run)).await?;
        }
    }

    /// Raises the generation of these assets.
    async fn assets(&mut self, views: Vec<AssetView>, but: Option<&RunId>) -> Result<(), AssetError> {
        let app = self.app;
        if self.dry {
            self.told.count += views.len() as u64;
        } else {
            let now = app.now().as_second();
            let durable = NewDurable { kid: app.live().ring.signing_kid(now).to_owned(), issued_at: now };
            let ids: Vec<AssetId> = views.iter().map(|view| view.record.id).collect();
            let raised = app.index.raise_generations(&self.caller.tenant, &ids, durable, self.audit.clone()).await;
            fault::held("change.answered").await;
            // Whatever the answer: one that was lost may have been that it is done.
            ids.into_iter().for_each(|id| app.rows.changed(id));
            let raised = raised?;
            self.told.count += raised.len() as u64;
            stream::iter(&raised)
                .map(|record| write_record(app, record))
                .buffer_unordered(WRITES)
                .try_collect::<()>()
                .await?;
        }
        views.iter().for_each(|view| self.told.name(view, but));
        Ok(())
    }

    async fn all(&mut self) -> Result<(), AssetError> {
        let (app, tenant) = (self.app, &self.caller.tenant);
        if !self.dry {
            let epoch = app.index.raise_epoch(tenant, self.audit.clone()).await;
            fault::held("change.answered").await;
            app.rows.floors_changed(tenant);
            let epoch = epoch?;
            fault::point("epoch.raised");
            put_epoch(app, tenant, epoch).await?;
        }
        self.told.count = app.index.count_assets(tenant).await?;
        let terms = app.terms(tenant);
        let mut query = AssetQuery { limit: STEP, ..AssetQuery::default() };
        while self.told.assets.len() < NAMED {
            let page = app.index.page(tenant, &query, &terms).await?;
            page.iter().for_each(|view| self.told.name(view, None));
            query.after = page.last().map(|view| view.record.id);
            if query.after.is_none() {
                break;
            }
        }
        self.told.truncated |= self.told.count > self.told.assets.len() as u64;
        Ok(())
    }
}

/// Writes beside the bytes how often all of the tenant's URLs were revoked at once. Of several such records the highest counts.
pub async fn put_epoch(app: &App, tenant: &TenantId, epoch: u32) -> Result<(), AssetError> {
    let of = RecordOf::Epoch;
    app.blobs.put_record(tenant, of, epoch.into(), epoch.to_string().into_bytes()).await?;
    app.blobs.remove_records(tenant, of, Some(epoch.into())).await?;
    app.paid.note(tenant, &Owed::Epoch(epoch));
    Ok(())
}

/// What a URL of the caller's own tenant is worth now.
pub async fn introspect(app: &App, caller: &Principal, url: &str) -> Result<Value, AssetError> {
    let live = app.live();
    let capability = urls::tokens(url).find_map(|token| live.open(token).ok());
    let Some(capability) = capability.filter(|capability| capability.tenant == caller.tenant) else {
        return Ok(json!({"active": false}));
    };
    let refused = match fetch::judge(app, &capability).await {
        Ok(row) => Gone::of(&row.view.record).map(|gone| gone.reason()),
        Err(Shut::Refused("unknown")) => return Ok(json!({"active": false})),
        Err(Shut::Refused(reason)) => Some(reason),
        Err(Shut::Over(AssetError::UrlExpired)) => Some("url_expired"),
        Err(Shut::Over(AssetError::UrlUsed)) => Some("url_used"),
        Err(Shut::Over(error)) => return Err(error),
    };
    let claims = &capability.claims;
    let expires_at = claims.expires_at().and_then(|at| Timestamp::from_second(at).ok());
    let mut told = json!({
        "active": refused.is_none(),
        "assetId": capability.asset,
        "class": if claims.expires_at().is_some() { "delivery" } else { "durable" },
        "expiresAt": expires_at,
        "urlId": claims.url_id(),
    });
    if let Some(reason) = refused {
        told["reason"] = reason.into();
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_with_its_generation_is_a_durable_url_and_any_other_id_is_not() {
        let asset = AssetId::parse("ast_01jc0000000000000000000000").expect("an asset");
        let of = |url_id: String| Selector::of_url_id(url_id);

        assert_eq!(of(format!("{asset}.7")), Selector::Durable(asset, 7));
        for other in ["url_1", "url_1.7", "", &format!("{asset}"), &format!("{asset}.07"), &format!("{asset}.+7")] {
            assert_eq!(of(other.to_owned()), Selector::Url(other.to_owned()));
        }
    }
}
