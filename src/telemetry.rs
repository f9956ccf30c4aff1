//! What the service says of itself: counters for machines, log lines for the person woken up.
//!
//! No label and no line holds a token, a key, a body, a URL's path, or a name that a tenant chose.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The counters of one service; nothing is global.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    ingested: Family<KindLabels, Counter>,
    ingested_bytes: Counter,
    over_quota: Counter,
    sent_bytes: Counter,
    refusals: Family<ReasonLabels, Counter>,
    inspections: Inspections,
    sweeps: Counter,
    expired: Counter,
    removed_blobs: Counter,
    failed_blobs: Counter,
    mended_blobs: Counter,
    left_over: Gauge,
    without_row: Gauge,
    unconfirmed_aborts: Counter<u64, AtomicU64>,
    reads_not_logged: Counter<u64, AtomicU64>,
    denials_not_logged: Counter,
    index_retries: Counter,
    under_way: Family<LaneLabels, Gauge>,
}

/// How looking at bytes has gone.
#[derive(Debug, Clone, Default)]
pub struct Inspections {
    /// Inspections that came to no end.
    pub failed: Counter,
    /// Second opinions that were not heard.
    pub unheard: Counter,
    /// Threads that nobody waits for any more, and that have not ended.
    pub abandoned: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LaneLabels {
    lane: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

impl Metrics {
    /// Counters that stand at zero.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.0005, 4.0, 9))),
            ingested: Family::default(),
            ingested_bytes: Counter::default(),
            over_quota: Counter::default(),
            sent_bytes: Counter::default(),
            refusals: Family::default(),
            inspections: Inspections::default(),
            sweeps: Counter::default(),
            expired: Counter::default(),
            removed_blobs: Counter::default(),
            failed_blobs: Counter::default(),
            mended_blobs: Counter::default(),
            left_over: Gauge::default(),
            without_row: Gauge::default(),
            unconfirmed_aborts: Counter::default(),
            reads_not_logged: Counter::default(),
            denials_not_logged: Counter::default(),
            index_retries: Counter::default(),
            under_way: Family::default(),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("mediakeep_http_requests", "Requests by route, method and status", self.requests.clone());
        registry.register(
            "mediakeep_http_request_duration_seconds",
            "Time to the first byte of the answer, by route",
            self.durations.clone(),
        );
        registry.register("mediakeep_assets_stored", "Assets stored, by kind", self.ingested.clone());
        registry.register("mediakeep_stored_bytes", "Bytes of the assets stored", self.ingested_bytes.clone());
        registry.register("mediakeep_over_quota", "Uploads refused by a tenant's quota", self.over_quota.clone());
        registry.register("mediakeep_sent_bytes", "Bytes of assets promised to readers", self.sent_bytes.clone());
        registry.register(
            "mediakeep_capability_refusals",
            "Capabilities that opened nothing, by reason",
            self.refusals.clone(),
        );
        registry.register(
            "mediakeep_inspections_failed",
            "Inspections that came to no end",
            self.inspections.failed.clone(),
        );
        registry.register(
            "mediakeep_second_opinions_missed",
            "Libraries that were not asked, or came to no end, about what our own rules left open",
            self.inspections.unheard.clone(),
        );
        registry.register(
            "mediakeep_inspections_abandoned",
            "Threads that still look at media for which nobody waits any more",
            self.inspections.abandoned.clone(),
        );
        registry.register("mediakeep_sweeps", "Sweeps that came to their end", self.sweeps.clone());
        registry.register("mediakeep_assets_expired", "Assets that ended", self.expired.clone());
        registry.register("mediakeep_blobs_removed", "Blobs whose bytes were removed", self.removed_blobs.clone());
        registry.register(
            "mediakeep_blob_removals_failed",
            "Blobs whose bytes could not be removed and will be tried again",
            self.failed_blobs.clone(),
        );
        registry.register(
            "mediakeep_blobs_mended",
            "Blobs whose bytes the store had lost and an upload of the same bytes put back",
            self.mended_blobs.clone(),
        );
        registry.register(
            "mediakeep_uploads_left_over",
            "Uploads to the store, begun more than a day ago, that the last sweep found neither complete nor aborted",
            self.left_over.clone(),
        );
        registry.register(
            "mediakeep_blobs_without_row",
            "Blobs older than a day without a row in the index, which stay since a recovery record names them or does not read",
            self.without_row.clone(),
        );
        registry.register(
            "mediakeep_store_aborts_unconfirmed",
            "Aborts of uploads in parts that the store did not confirm and that will be tried again",
            self.unconfirmed_aborts.clone(),
        );
        registry.register(
            "mediakeep_reads_not_logged",
            "Reads that the sampled audit log only counts",
            self.reads_not_logged.clone(),
        );
        registry.register(
            "mediakeep_denials_not_logged",
            "Refusals of so many principals at a time that the audit log does not tell of them",
            self.denials_not_logged.clone(),
        );
        registry.register(
            "mediakeep_index_retries",
            "Transitions that the database refused because of others beside them, and that were done again",
            self.index_retries.clone(),
        );
        registry.register(
            "mediakeep_requests_under_way",
            "Requests that have a place now, by lane: upload, body, read; in each so many at a time, and beyond it 503",
            self.under_way.clone(),
        );
        self
    }

    /// A request was answered.
    pub fn request(&self, route: &'static str, method: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&RequestLabels { route, method, status }).inc();
        self.durations.get_or_create(&RouteLabels { route }).observe(took.as_secs_f64());
    }

    /// An asset was stored.
    pub fn ingested(&self, kind: &str, bytes: u64) {
        self.ingested.get_or_create(&KindLabels { kind: kind.to_owned() }).inc();
        self.ingested_bytes.inc_by(bytes);
    }

    /// An upload was refused by its tenant's quota.
    pub fn over_quota(&self) {
        self.over_quota.inc();
    }

    /// Bytes of an asset were promised to a reader.
    pub fn sent(&self, bytes: u64) {
        self.sent_bytes.inc_by(bytes);
    }

    /// A capability opened nothing.
    pub fn capability_refused(&self, reason: &'static str) {
        self.refusals.get_or_create(&ReasonLabels { reason }).inc();
    }

    /// The counters of those who look at bytes.
    pub fn inspections(&self) -> Inspections {
        self.inspections.clone()
    }

    /// A sweep came to its end.
    pub fn swept(&self) {
        self.sweeps.inc();
    }

    /// Assets ended.
    pub fn expired(&self, assets: u64) {
        self.expired.inc_by(assets);
    }

    /// Blobs' bytes were removed, or not.
    pub fn blobs_removed(&self, removed: u64, failed: u64) {
        self.removed_blobs.inc_by(removed);
        self.failed_blobs.inc_by(failed);
    }

    /// Bytes that the store had lost came again.
    pub fn blob_mended(&self) {
        self.mended_blobs.inc();
    }

    /// So many uploads that were begun long ago were left after a sweep.
    pub fn left_over(&self, uploads: u64) {
        self.left_over.set(i64::try_from(uploads).unwrap_or(i64::MAX));
    }

    /// So many blobs have no row and stay.
    pub fn blobs_without_row(&self, blobs: u64) {
        self.without_row.set(i64::try_from(blobs).unwrap_or(i64::MAX));
    }

    /// So many aborts were not confirmed since the start.
    pub fn aborts_unconfirmed(&self, total: u64) {
        self.unconfirmed_aborts.inner().store(total, Ordering::Relaxed);
    }

    /// Reads were only counted.
    pub fn reads_not_logged(&self, reads: u64) {
        self.reads_not_logged.inc_by(reads);
    }

    /// A refusal left no row.
    pub fn denial_not_logged(&self) {
        self.denials_not_logged.inc();
    }

    /// So many transitions were done again since the start.
    pub fn index_retried(&self, total: u64) {
        self.index_retries.inner().store(total, Ordering::Relaxed);
    }

    /// So many requests have a place in the lane now.
    pub fn under_way(&self, lane: &'static str, requests: usize) {
        self.under_way.get_or_create(&LaneLabels { lane }).set(i64::try_from(requests).unwrap_or(i64::MAX));
    }

    /// All of them, in the text format of OpenMetrics.
    pub fn text(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(_) => String::new(),
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Ids that no two requests share: by what the process is told apart, and a count.
#[derive(Debug)]
pub struct RequestIds {
    process: String,
    count: AtomicU64,
}

impl RequestIds {
    /// Ids of this process.
    pub fn new(process: String) -> Self {
        Self { process, count: AtomicU64::new(0) }
    }

    /// The next one.
    pub fn next(&self) -> String {
        format!("{}-{:x}", self.process, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

/// Starts the log: JSON on stdout unless it is a terminal. `level` has been looked at with the settings.
pub fn start_log(level: &str) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::registry().with(filter);
    let _ = if std::io::stdout().is_terminal() {
        log.with(tracing_subscriber::fmt::layer().with_target(false)).try_init()
    } else {
        log.with(tracing_subscriber::fmt::layer().json().flatten_event(true).with_current_span(false)).try_init()
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_stands_in_the_text() {
        let metrics = Metrics::new();
        metrics.ingested("image", 12);
        metrics.request("/a/{capability}", "GET", 200, Duration::from_millis(1));
        metrics.capability_refused("token");

        let text = metrics.text();
        for line in [
            r#"mediakeep_assets_stored_total{kind="image"} 1"#,
            "mediakeep_stored_bytes_total 12",
            r#"mediakeep_http_requests_total{route="/a/{capability}",method="GET",status="200"} 1"#,
            r#"mediakeep_capability_refusals_total{reason="token"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
