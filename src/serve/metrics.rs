//! Counters for Prometheus.

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

/// The media type of the text, including its version.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The key by which requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    /// The documented path of the endpoint, so that there are few distinct values.
    path: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Endpoint {
    path: String,
}

/// The counters.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Kind, Counter>,
    seconds: Family<Endpoint, Histogram, fn() -> Histogram>,
    waiting: Gauge,
    trees: Gauge,
    pub(super) nodes: Counter,
    pub(super) evaluations: Counter,
}

impl Metrics {
    pub(super) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("tessera");
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.0005, 4.0, 9));
        let metrics = Metrics {
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            waiting: Gauge::default(),
            trees: Gauge::default(),
            nodes: Counter::default(),
            evaluations: Counter::default(),
            registry: Registry::default(),
        };
        registry.register("requests", "Requests answered", metrics.requests.clone());
        registry.register(
            "request_seconds",
            "Time until the answer began",
            metrics.seconds.clone(),
        );
        registry.register("waiting", "Requests that wait", metrics.waiting.clone());
        registry.register("trees", "Search trees kept", metrics.trees.clone());
        registry.register("nodes", "Nodes searched", metrics.nodes.clone());
        registry.register(
            "evaluations",
            "Positions evaluated for /v1/eval",
            metrics.evaluations.clone(),
        );
        Metrics {
            registry,
            ..metrics
        }
    }

    /// Counts a request.
    pub(super) fn count(&self, path: &str, status: u16, took: Duration) {
        let path = path.to_owned();
        let kind = Kind {
            path: path.clone(),
            status,
        };
        self.requests.get_or_create(&kind).inc();
        let seconds = self.seconds.get_or_create(&Endpoint { path });
        seconds.observe(took.as_secs_f64());
    }

    /// Returns all metrics as text.
    pub(super) fn text(&self, waiting: usize, trees: usize) -> String {
        self.waiting.set(waiting as i64);
        self.trees.set(trees as i64);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
