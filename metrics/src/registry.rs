//! The kinds of metrics, and where those of a process are kept.

use prometheus_client::encoding::EncodeMetric;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::Counter as AnyCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge as AnyGauge;
use prometheus_client::metrics::histogram::{Histogram as AnyHistogram, exponential_buckets};
use prometheus_client::registry::{Registry as AnyRegistry, Unit};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What there is to say of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name, without the unit and without the `_total` of a counter.
    pub base: &'static str,
    /// `seconds`, `bytes`, or nothing where it counts things.
    pub unit: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The values of its only label, where they are known beforehand.
    pub values: &'static [&'static str],
    /// What it means; no full stop at its end.
    pub help: &'static str,
}

impl Definition {
    /// The name as it stands in queries: of a histogram it is what `_bucket`, `_sum` and `_count` follow.
    pub fn name(&self) -> String {
        let mut name = self.base.to_owned();
        if !self.unit.is_empty() {
            name.push('_');
            name.push_str(self.unit);
        }
        if self.kind == "counter" {
            name.push_str("_total");
        }
        name
    }
}

/// Something that can be registered under a definition.
pub(crate) trait Metric: Clone {
    const KIND: &'static str;

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Self;
}

fn put<M: prometheus_client::registry::Metric>(
    metric: M,
    definition: &Definition,
    registry: &mut AnyRegistry,
) {
    let Definition { base, help, .. } = *definition;
    let unit = match definition.unit {
        "" => return registry.register(base, help, metric),
        "seconds" => Unit::Seconds,
        "bytes" => Unit::Bytes,
        other => Unit::Other(other.to_owned()),
    };
    registry.register_with_unit(base, help, unit, metric);
}

/// A number that only grows.
#[derive(Clone, Debug, Default)]
pub struct Counter(AnyCounter<u64, AtomicU64>);

impl Counter {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.inc_by(more);
    }

    /// Takes over what somebody else has counted.
    pub fn set(&self, count: u64) {
        self.0.inner().store(count, Ordering::Relaxed);
    }
}

impl Metric for Counter {
    const KIND: &'static str = "counter";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Counter {
        let metric = Counter::default();
        put(metric.0.clone(), definition, registry);
        metric
    }
}

/// Time that only grows.
#[derive(Clone, Debug, Default)]
pub struct Seconds(AnyCounter<f64, AtomicU64>);

impl Seconds {
    /// Adds to it.
    pub fn add(&self, more: Duration) {
        self.0.inc_by(more.as_secs_f64());
    }

    /// Takes over what somebody else has counted.
    pub fn set(&self, seconds: f64) {
        self.0.inner().store(seconds.to_bits(), Ordering::Relaxed);
    }
}

impl Metric for Seconds {
    const KIND: &'static str = "counter";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Seconds {
        let metric = Seconds::default();
        put(metric.0.clone(), definition, registry);
        metric
    }
}

/// How much there is of something now.
#[derive(Clone, Debug, Default)]
pub struct Gauge(AnyGauge<f64, AtomicU64>);

impl Gauge {
    /// Says how much there is.
    pub fn set(&self, value: u64) {
        self.set_f64(value as f64);
    }

    /// How much there is, without a fraction.
    pub fn get(&self) -> u64 {
        self.0.get() as u64
    }

    /// Says how much there is, where that is no whole number.
    pub fn set_f64(&self, value: f64) {
        self.0.set(value);
    }
}

impl Metric for Gauge {
    const KIND: &'static str = "gauge";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Gauge {
        let metric = Gauge::default();
        put(metric.0.clone(), definition, registry);
        metric
    }
}

/// How long something took, each time.
#[derive(Clone, Debug)]
pub struct Histogram(AnyHistogram);

impl Histogram {
    /// Takes note of one time.
    pub fn observe(&self, took: Duration) {
        self.observe_seconds(took.as_secs_f64());
    }

    /// Takes note of one time in seconds.
    pub fn observe_seconds(&self, seconds: f64) {
        self.0.observe(seconds);
    }
}

/// From a millisecond, which a narrow beam takes, to a quarter of an hour, by threes or so: thirteen series
/// each.
fn buckets() -> AnyHistogram {
    let mut bounds: Vec<f64> = exponential_buckets(0.001, 10.0, 6).collect();
    bounds.extend(exponential_buckets(0.003, 10.0, 6));
    bounds.push(1000.0);
    bounds.sort_by(f64::total_cmp);
    // What three times a power of ten comes to is no round number.
    AnyHistogram::new(bounds.iter().map(|bound| (bound * 1e6).round() / 1e6))
}

impl Metric for Histogram {
    const KIND: &'static str = "histogram";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Histogram {
        let metric = Histogram(buckets());
        put(metric.0.clone(), definition, registry);
        metric
    }
}

type Label = [(&'static str, &'static str); 1];

/// One metric for each value of a label, all known beforehand.
#[derive(Clone, Debug)]
pub struct By<M> {
    label: &'static str,
    values: &'static [&'static str],
    each: Vec<M>,
}

impl<M> By<M> {
    /// That of a value; none if the value is none of the label's.
    pub fn of(&self, value: &str) -> Option<&M> {
        let mut all = self.iter();
        all.find_map(|(known, metric)| (known == value).then_some(metric))
    }

    /// All of them, with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &M)> {
        self.values.iter().copied().zip(&self.each)
    }
}

impl By<Counter> {
    /// Adds to that of a value.
    pub fn add(&self, value: &str, more: u64) {
        debug_assert!(self.of(value).is_some(), "{value} is no {}", self.label);
        if let Some(counter) = self.of(value) {
            counter.add(more);
        }
    }
}

impl By<Histogram> {
    /// Takes note of a time under a value.
    pub fn observe(&self, value: &str, took: Duration) {
        debug_assert!(self.of(value).is_some(), "{value} is no {}", self.label);
        if let Some(histogram) = self.of(value) {
            histogram.observe(took);
        }
    }
}

/// What there can be one of for each value of a label.
pub(crate) trait Series: Metric {
    /// As the library has it.
    type Inner: Clone + EncodeMetric + TypedMetric + fmt::Debug + Send + Sync + 'static;

    fn inner() -> Self::Inner;

    fn of(inner: Self::Inner) -> Self;
}

impl Series for Counter {
    type Inner = AnyCounter<u64, AtomicU64>;

    fn inner() -> Self::Inner {
        AnyCounter::default()
    }

    fn of(inner: Self::Inner) -> Counter {
        Counter(inner)
    }
}

impl Series for Gauge {
    type Inner = AnyGauge<f64, AtomicU64>;

    fn inner() -> Self::Inner {
        AnyGauge::default()
    }

    fn of(inner: Self::Inner) -> Gauge {
        Gauge(inner)
    }
}

impl Series for Histogram {
    type Inner = AnyHistogram;

    fn inner() -> Self::Inner {
        buckets()
    }

    fn of(inner: Self::Inner) -> Histogram {
        Histogram(inner)
    }
}

impl<M: Series> Metric for By<M> {
    const KIND: &'static str = M::KIND;

    /// All series are there from the start: what has not happened yet is 0 and not missing, so that rates
    /// are right from the first time on.
    fn register(definition: &Definition, registry: &mut AnyRegistry) -> By<M> {
        let label = definition.labels.first().copied().unwrap_or("kind");
        let family: Family<Label, M::Inner, fn() -> M::Inner> =
            Family::new_with_constructor(M::inner);
        let each = definition.values.iter();
        let each = each.map(|value| M::of(family.get_or_create_owned(&[(label, value)])));
        let by = By {
            label,
            values: definition.values,
            each: each.collect(),
        };
        put(family, definition, registry);
        by
    }
}

/// What holds of a process, said in labels; the value is 1.
#[derive(Clone, Debug, Default)]
pub struct Facts(Family<Vec<(&'static str, String)>, AnyGauge<f64, AtomicU64>>);

impl Facts {
    /// Says what holds now, and nothing else does. To be called [before a scrape](Registry::before_scrape), so
    /// that none sees nothing.
    pub fn set(&self, labels: Vec<(&'static str, String)>) {
        self.0.clear();
        self.0.get_or_create(&labels).set(1.0);
    }
}

impl Metric for Facts {
    const KIND: &'static str = "gauge";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Facts {
        let metric = Facts::default();
        put(metric.0.clone(), definition, registry);
        metric
    }
}

type Refresh = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Inner {
    metrics: AnyRegistry,
    refresh: Vec<Refresh>,
}

/// The metrics of a process. Clones are the same.
#[derive(Clone, Default)]
pub struct Registry {
    inner: Arc<Mutex<Inner>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register<M: Metric>(&self, definition: &Definition) -> M {
        M::register(definition, &mut self.inner().metrics)
    }

    /// Has something done before each scrape: what is known anyway is asked for only when somebody wants
    /// to know. It must not wait, nor scrape.
    pub fn before_scrape(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.inner().refresh.push(Box::new(refresh));
    }

    /// All metrics as text, in the format that is called OpenMetrics: Prometheus' own, with units.
    ///
    /// # Errors
    /// None that anybody knows of; the library's type has room for them.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let inner = self.inner();
        inner.refresh.iter().for_each(|refresh| refresh());
        let mut text = String::new();
        encode(&mut text, &inner.metrics)?;
        Ok(text)
    }
}
