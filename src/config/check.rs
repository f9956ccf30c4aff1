//! What cannot be: each refusal is one sentence that says what to do.

use std::net::{IpAddr, SocketAddr};

use mediakeep_storage::TenantId;

use super::ConfigError;
use super::settings::Settings;
use super::units::Span;

/// The protocol's least window of retention.
const LEAST_RUN_LOG: Span = Span::hours(7 * 24);

/// The shortest time for which an idempotency answer is kept.
const LEAST_KEEP: Span = Span::hours(24);

pub(super) fn check(settings: &Settings) -> Result<(), ConfigError> {
    let refusals =
        [addresses(settings), lengths(settings), bounds(settings), not_here_yet(settings), tenants(settings)];
    match refusals.into_iter().flatten().next() {
        Some(refusal) => Err(ConfigError(refusal)),
        None => Ok(()),
    }
}

fn addresses(settings: &Settings) -> Option<String> {
    let server = &settings.server;
    let Ok(listen) = server.listen.parse::<SocketAddr>() else {
        return Some(format!(
            "server.listen: {:?} is not an address with a port, such as 127.0.0.1:8787",
            server.listen
        ));
    };
    if !server.admin_listen.is_empty() && server.admin_listen.parse::<SocketAddr>().is_err() {
        return Some(format!("server.admin_listen: {:?} is not an address with a port", server.admin_listen));
    }
    if server.public_base_url.is_empty() && !listen.ip().is_loopback() {
        return Some(format!(
            "server.listen is {listen}, which others can reach: set server.public_base_url to the URL by which they do"
        ));
    }
    if !server.public_base_url.is_empty() {
        let url = url::Url::parse(&server.public_base_url);
        let usable = url.is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.query().is_none()
                && url.fragment().is_none()
        });
        if !usable {
            return Some(format!(
                "server.public_base_url: {:?} is not an absolute http or https URL without query and fragment",
                server.public_base_url
            ));
        }
    }
    let proxy = server.trusted_proxies.iter().find(|proxy| proxy.parse::<IpAddr>().is_err());
    proxy.map(|proxy| format!("server.trusted_proxies: {proxy:?} is not an IP address"))
}

fn lengths(settings: &Settings) -> Option<String> {
    let retention = &settings.retention;
    if retention.default_run_log < LEAST_RUN_LOG {
        return Some(format!("retention.default_run_log: {} is under 7 days, the least", retention.default_run_log));
    }
    if settings.idempotency.keep < LEAST_KEEP {
        return Some(format!("idempotency.keep: {} is under 24h, the least", settings.idempotency.keep));
    }
    let zero = Span::seconds(0);
    for (name, span) in [
        ("retention.sweep_interval", retention.sweep_interval),
        ("capabilities.max_delivery", settings.capabilities.max_delivery),
        ("capabilities.revocation_lag", settings.capabilities.revocation_lag),
        ("uploads.expire", settings.uploads.expire),
        ("remote.timeout", settings.remote.timeout),
    ] {
        if span == zero {
            return Some(format!("{name}: must be longer than nothing"));
        }
    }
    None
}

fn bounds(settings: &Settings) -> Option<String> {
    if settings.limits.max_upload_bytes.0 == 0 {
        return Some("limits.max_upload_bytes: 0 would refuse every upload".into());
    }
    if settings.limits.uploads_per_tenant == 0 {
        return Some("limits.uploads_per_tenant: 0 would refuse every upload".into());
    }
    if tracing_subscriber::EnvFilter::try_new(&settings.telemetry.log).is_err() {
        return Some(format!("telemetry.log: {:?} is not a level or a list of directives", settings.telemetry.log));
    }
    None
}

/// Settings of features that this version does not have: only their defaults are true.
fn not_here_yet(settings: &Settings) -> Option<String> {
    let limits = &settings.limits;
    [
        ("delivery.redirect", settings.delivery.redirect),
        ("remote.enabled", settings.remote.enabled),
        ("conformance.seams", settings.conformance.seams),
        ("limits.tenant_bytes", limits.tenant_bytes.0 != 0),
        ("limits.tenant_assets", limits.tenant_assets != 0),
        ("limits.requests_per_second", limits.requests_per_second != 0),
        ("limits.client_requests_per_second", limits.client_requests_per_second != 0),
    ]
    .into_iter()
    .find_map(|(name, set)| {
        set.then(|| format!("{name}: this version has no such feature yet; leave it at its default"))
    })
}

fn tenants(settings: &Settings) -> Option<String> {
    for tenant in &settings.tenants {
        let id = &tenant.id;
        if TenantId::parse(id).is_err() {
            return Some(format!(
                "tenants: {id:?} is not a tenant: 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with a dot"
            ));
        }
        if tenant.max_inline_media_bytes.is_some_and(|cap| cap > settings.limits.max_inline_media_bytes) {
            return Some(format!(
                "tenants: {id}: max_inline_media_bytes is above limits.max_inline_media_bytes, which is advertised"
            ));
        }
        if tenant.default_run_log.is_some_and(|span| span < LEAST_RUN_LOG) {
            return Some(format!("tenants: {id}: default_run_log is under 7 days, the least"));
        }
        if tenant.tenant_bytes.is_some_and(|size| size.0 != 0) || tenant.tenant_assets.is_some_and(|count| count != 0) {
            return Some(format!("tenants: {id}: this version has no quotas yet; leave them at their default"));
        }
    }
    None
}
