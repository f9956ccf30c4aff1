//! What cannot be: each refusal is one sentence that says what to do.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use mediakeep_storage::TenantId;

use super::settings::Settings;
use super::units::Span;

/// Why a setting cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The setting's name: `section.key`.
    pub(super) key: &'static str,
    /// What is wrong with it, and what to do.
    pub(super) why: String,
}

/// The first setting that cannot be.
pub(super) fn refusal(settings: &Settings) -> Option<Refusal> {
    let refusals = [
        addresses(settings),
        index(settings),
        lengths(settings),
        bounds(settings),
        delivery(settings),
        tenants(settings),
    ];
    refusals.into_iter().flatten().next()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.why)
    }
}

/// The protocol's least window of retention.
const LEAST_RUN_LOG: Span = Span::hours(7 * 24);

/// The shortest time for which an idempotency answer is kept.
const LEAST_KEEP: Span = Span::hours(24);

fn refuse(key: &'static str, why: impl Into<String>) -> Option<Refusal> {
    Some(Refusal { key, why: why.into() })
}

fn addresses(settings: &Settings) -> Option<Refusal> {
    let server = &settings.server;
    let Ok(listen) = server.listen.parse::<SocketAddr>() else {
        let why = format!("{:?} is not an address with a port, such as 127.0.0.1:8787", server.listen);
        return refuse("server.listen", why);
    };
    if !server.admin_listen.is_empty() && server.admin_listen.parse::<SocketAddr>().is_err() {
        return refuse("server.admin_listen", format!("{:?} is not an address with a port", server.admin_listen));
    }
    let base = &server.public_base_url;
    if base.is_empty() && !listen.ip().is_loopback() {
        let why = format!("others can reach {listen}: set server.public_base_url to the URL by which they do");
        return refuse("server.listen", why);
    }
    let url = url::Url::parse(base).ok();
    // Every URL that is given out would tell them, and so would this refusal if it quoted the setting.
    if url.as_ref().is_some_and(|url| !url.username().is_empty() || url.password().is_some()) {
        return refuse(
            "server.public_base_url",
            "has a user or password in it: every URL would tell them, so leave them out",
        );
    }
    let usable = url.is_some_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none() && url.fragment().is_none()
    });
    if !base.is_empty() && !usable {
        let why = format!("{base:?} is not an absolute http or https URL without query and fragment");
        return refuse("server.public_base_url", why);
    }
    let proxy = server.trusted_proxies.iter().find(|proxy| proxy.parse::<IpAddr>().is_err());
    proxy.and_then(|proxy| refuse("server.trusted_proxies", format!("{proxy:?} is not an IP address")))
}

fn index(settings: &Settings) -> Option<Refusal> {
    settings.index.url.place().err().and_then(|why| refuse("index.url", why))
}

fn lengths(settings: &Settings) -> Option<Refusal> {
    let retention = &settings.retention;
    if retention.default_run_log < LEAST_RUN_LOG {
        let why = format!("{} is under 7 days, the least", retention.default_run_log);
        return refuse("retention.default_run_log", why);
    }
    if settings.idempotency.keep < LEAST_KEEP {
        return refuse("idempotency.keep", format!("{} is under 24h, the least", settings.idempotency.keep));
    }
    let needed = [
        ("retention.sweep_interval", retention.sweep_interval),
        ("capabilities.max_delivery", settings.capabilities.max_delivery),
        ("capabilities.revocation_lag", settings.capabilities.revocation_lag),
        ("uploads.expire", settings.uploads.expire),
        ("remote.timeout", settings.remote.timeout),
    ];
    let empty = needed.into_iter().find(|(_, span)| *span == Span::seconds(0));
    empty.and_then(|(name, _)| refuse(name, "must be longer than nothing"))
}

fn bounds(settings: &Settings) -> Option<Refusal> {
    if settings.limits.max_upload_bytes.0 == 0 {
        return refuse("limits.max_upload_bytes", "0 would refuse every upload");
    }
    if settings.limits.max_json_bytes.0 == 0 {
        return refuse("limits.max_json_bytes", "0 would refuse every inline body");
    }
    if settings.limits.uploads_per_tenant == 0 {
        return refuse("limits.uploads_per_tenant", "0 would refuse every upload");
    }
    if TenantId::parse(&settings.conformance.tenant).is_err() {
        return refuse("conformance.tenant", "not a tenant: 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot");
    }
    if tracing_subscriber::EnvFilter::try_new(&settings.telemetry.log).is_err() {
        let why = format!("{:?} is not a level or a list of directives", settings.telemetry.log);
        return refuse("telemetry.log", why);
    }
    None
}

/// Of the stores only S3 signs what an answer says of itself along with its URL.
fn delivery(settings: &Settings) -> Option<Refusal> {
    let signs = url::Url::parse(&settings.store.url).is_ok_and(|url| url.scheme() == "s3");
    if !settings.delivery.redirect || signs {
        return None;
    }
    refuse(
        "delivery.redirect",
        "clients can be sent to an s3: store alone: name one in store.url, or leave this at false",
    )
}

fn tenants(settings: &Settings) -> Option<Refusal> {
    let mut seen = std::collections::HashSet::new();
    for tenant in &settings.tenants {
        let id = &tenant.id;
        let refuse = |why: String| refuse("tenants", format!("{id:?}: {why}"));
        if TenantId::parse(id).is_err() {
            return refuse("not a tenant: 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot".into());
        }
        if !seen.insert(id) {
            return refuse("stands there twice; say all of it in one place".into());
        }
        if tenant.max_inline_media_bytes.is_some_and(|cap| cap > settings.limits.max_inline_media_bytes) {
            return refuse("max_inline_media_bytes is above limits.max_inline_media_bytes, which is advertised".into());
        }
        if tenant.default_run_log.is_some_and(|span| span < LEAST_RUN_LOG) {
            return refuse("default_run_log is under 7 days, the least".into());
        }
    }
    None
}
