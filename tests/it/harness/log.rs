//! What the whole process logs, from the moment on in which somebody first listens.

use std::fmt::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// Every line and span at every level, of every crate but those in [`OTHERS`].
#[derive(Clone, Default)]
pub struct Everything(Arc<Mutex<String>>);

/// The tests' own client, who says what it sends, and the machinery below that has no words of ours.
const OTHERS: [&str; 7] = ["h2", "hyper", "mio", "reqwest", "rustls", "sled", "tokio"];

/// Listens. The service's threads are many, so there is one log for all of them and for all tests.
pub fn listen() -> Everything {
    static HEARD: OnceLock<Everything> = OnceLock::new();
    let heard = HEARD.get_or_init(|| {
        let heard = Everything::default();
        let log = tracing_subscriber::registry().with(heard.clone());
        tracing::subscriber::set_global_default(log).expect("nobody else listens");
        heard
    });
    heard.clone()
}

/// The lines that hold it, shortened.
pub fn lines_with<'a>(log: &'a str, hidden: &'a str) -> impl Iterator<Item = &'a str> {
    log.lines().filter(move |line| line.contains(hidden)).map(|line| &line[..line.len().min(200)])
}

impl Everything {
    fn add(&self, target: &str, record: impl FnOnce(&mut dyn Visit)) {
        if OTHERS.iter().any(|other| target.starts_with(other)) {
            return;
        }
        let mut line = Line(format!("{target}:"));
        record(&mut line);
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&line.0);
        text.push('\n');
    }

    /// All that was heard.
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl<S: tracing::Subscriber> Layer<S> for Everything {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.add(event.metadata().target(), |line| event.record(line));
    }

    fn on_new_span(&self, span: &tracing::span::Attributes<'_>, _: &tracing::span::Id, _: Context<'_, S>) {
        self.add(span.metadata().target(), |line| span.record(line));
    }
}
