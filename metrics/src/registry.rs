//! The kinds of metrics, and the registry that contains the metrics of a process.

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

/// Name, unit, kind, labels and meaning of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name without the unit and without a counter's suffix `_total`.
    pub base: &'static str,
    /// Unit: `seconds`, `bytes` or `dollars`, or empty for a plain number.
    pub unit: &'static str,
    /// Kind: `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Names of the labels.
    pub labels: &'static [&'static str],
    /// Values of the label if the metric has only one label and its values are known in advance. Otherwise empty.
    pub values: &'static [&'static str],
    /// Meaning, without a trailing full stop.
    pub help: &'static str,
}

impl Definition {
    /// Returns the name used in queries. The series of a histogram append `_bucket`, `_sum` or `_count` to
    /// this name.
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

/// A type of metric that can be registered with a definition.
pub(crate) trait Metric: Clone {
    const KIND: &'static str;

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Self;
}

fn register_any<M: prometheus_client::registry::Metric>(
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

/// A number that only increases.
#[derive(Clone, Debug, Default)]
pub struct Counter(AnyCounter<u64, AtomicU64>);

impl Counter {
    /// Increases the count by `more`.
    pub fn add(&self, more: u64) {
        self.0.inc_by(more);
    }

    /// Sets the count to a total that is maintained elsewhere.
    pub fn set(&self, count: u64) {
        self.0.inner().store(count, Ordering::Relaxed);
    }
}

impl Metric for Counter {
    const KIND: &'static str = "counter";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Counter {
        let metric = Counter::default();
        register_any(metric.0.clone(), definition, registry);
        metric
    }
}

/// A counter of time, in seconds.
#[derive(Clone, Debug, Default)]
pub struct Seconds(AnyCounter<f64, AtomicU64>);

impl Seconds {
    /// Adds a duration.
    pub fn add(&self, more: Duration) {
        self.0.inc_by(more.as_secs_f64());
    }

    /// Sets the time to a total that is maintained elsewhere.
    pub fn set(&self, seconds: f64) {
        self.0.inner().store(seconds.to_bits(), Ordering::Relaxed);
    }
}

impl Metric for Seconds {
    const KIND: &'static str = "counter";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Seconds {
        let metric = Seconds::default();
        register_any(metric.0.clone(), definition, registry);
        metric
    }
}

/// A number that can increase and decrease.
#[derive(Clone, Debug, Default)]
pub struct Gauge(AnyGauge<f64, AtomicU64>);

impl Gauge {
    /// Sets the value.
    pub fn set(&self, value: u64) {
        self.set_f64(value as f64);
    }

    /// Returns the value without its fractional part.
    pub fn get(&self) -> u64 {
        self.0.get() as u64
    }

    /// Sets the value, which may have a fractional part.
    pub fn set_f64(&self, value: f64) {
        self.0.set(value);
    }
}

impl Metric for Gauge {
    const KIND: &'static str = "gauge";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Gauge {
        let metric = Gauge::default();
        register_any(metric.0.clone(), definition, registry);
        metric
    }
}

/// A distribution of durations.
#[derive(Clone, Debug)]
pub struct Histogram(AnyHistogram);

impl Histogram {
    /// Adds a duration to the distribution.
    pub fn observe(&self, took: Duration) {
        self.observe_seconds(took.as_secs_f64());
    }

    /// Adds a duration in seconds to the distribution.
    pub fn observe_seconds(&self, seconds: f64) {
        self.0.observe(seconds);
    }
}

/// Returns a histogram with 13 buckets from 1 ms (a depth of a narrow beam) to 1000 s. The upper bounds are 1
/// and 3 times powers of ten.
fn durations() -> AnyHistogram {
    let mut bounds: Vec<f64> = exponential_buckets(0.001, 10.0, 6).collect();
    bounds.extend(exponential_buckets(0.003, 10.0, 6));
    bounds.push(1000.0);
    bounds.sort_by(f64::total_cmp);
    // The bounds are rounded, because multiplying floating-point numbers by powers of ten is inexact.
    AnyHistogram::new(bounds.iter().map(|bound| (bound * 1e6).round() / 1e6))
}

impl Metric for Histogram {
    const KIND: &'static str = "histogram";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Histogram {
        let metric = Histogram(durations());
        register_any(metric.0.clone(), definition, registry);
        metric
    }
}

type Label = [(&'static str, &'static str); 1];

/// A group of metrics, one for each value of a label. All values are known in advance.
#[derive(Clone, Debug)]
pub struct Labeled<M> {
    label: &'static str,
    values: &'static [&'static str],
    metrics: Vec<M>,
}

impl<M> Labeled<M> {
    /// Returns the metric for a label value, or `None` if the label does not have this value.
    pub fn get(&self, value: &str) -> Option<&M> {
        let mut all = self.iter();
        all.find_map(|(known, metric)| (known == value).then_some(metric))
    }

    /// Returns an iterator over all label values and their metrics.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &M)> {
        self.values.iter().copied().zip(&self.metrics)
    }
}

impl Labeled<Counter> {
    /// Increases the counter for a label value.
    pub fn add(&self, value: &str, more: u64) {
        debug_assert!(self.get(value).is_some(), "unknown {}: {value}", self.label);
        if let Some(counter) = self.get(value) {
            counter.add(more);
        }
    }
}

impl Labeled<Histogram> {
    /// Adds a duration to the histogram for a label value.
    pub fn observe(&self, value: &str, took: Duration) {
        debug_assert!(self.get(value).is_some(), "unknown {}: {value}", self.label);
        if let Some(histogram) = self.get(value) {
            histogram.observe(took);
        }
    }
}

/// A metric that [`Labeled`] can contain.
pub(crate) trait Series: Metric {
    type Raw: Clone + EncodeMetric + TypedMetric + fmt::Debug + Send + Sync + 'static;

    fn new_raw() -> Self::Raw;

    fn from_raw(raw: Self::Raw) -> Self;
}

impl Series for Counter {
    type Raw = AnyCounter<u64, AtomicU64>;

    fn new_raw() -> Self::Raw {
        AnyCounter::default()
    }

    fn from_raw(raw: Self::Raw) -> Counter {
        Counter(raw)
    }
}

impl Series for Gauge {
    type Raw = AnyGauge<f64, AtomicU64>;

    fn new_raw() -> Self::Raw {
        AnyGauge::default()
    }

    fn from_raw(raw: Self::Raw) -> Gauge {
        Gauge(raw)
    }
}

impl Series for Histogram {
    type Raw = AnyHistogram;

    fn new_raw() -> Self::Raw {
        durations()
    }

    fn from_raw(raw: Self::Raw) -> Histogram {
        Histogram(raw)
    }
}

impl<M: Series> Metric for Labeled<M> {
    const KIND: &'static str = M::KIND;

    /// Creates all series immediately. If a series were created only when its first event happens, rates
    /// would miss that event.
    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Labeled<M> {
        let label = definition.labels.first().copied().unwrap_or("kind");
        let family: Family<Label, M::Raw, fn() -> M::Raw> =
            Family::new_with_constructor(M::new_raw);
        let metrics = definition.values.iter();
        let metrics =
            metrics.map(|value| M::from_raw(family.get_or_create_owned(&[(label, value)])));
        let labeled = Labeled {
            label,
            values: definition.values,
            metrics: metrics.collect(),
        };
        register_any(family, definition, registry);
        labeled
    }
}

/// Texts, such as a version or the name of a run, exported as the labels of a series whose value is 1.
#[derive(Clone, Debug, Default)]
pub struct Info(Family<Vec<(&'static str, String)>, AnyGauge<f64, AtomicU64>>);

impl Info {
    /// Replaces the labels. Call this method from a [`Registry::before_scrape`] callback when updating
    /// labels. Otherwise, a scrape between the removal of the old series and the creation of the new one
    /// would find neither.
    pub fn set(&self, labels: Vec<(&'static str, String)>) {
        self.0.clear();
        self.0.get_or_create(&labels).set(1.0);
    }
}

impl Metric for Info {
    const KIND: &'static str = "gauge";

    fn register(definition: &Definition, registry: &mut AnyRegistry) -> Info {
        let metric = Info::default();
        register_any(metric.0.clone(), definition, registry);
        metric
    }
}

type Refresh = Box<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct Registered {
    metrics: AnyRegistry,
    refresh: Vec<Refresh>,
}

/// The metrics of a process. Clones share the same metrics.
#[derive(Clone, Default)]
pub struct Registry {
    registered: Arc<Mutex<Registered>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.registered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn register<M: Metric>(&self, definition: &Definition) -> M {
        M::register(definition, &mut self.lock().metrics)
    }

    /// Registers a callback that runs before each scrape. It can update metrics whose values are maintained
    /// elsewhere, and must neither block nor scrape.
    pub fn before_scrape(&self, refresh: impl Fn() + Send + Sync + 'static) {
        self.lock().refresh.push(Box::new(refresh));
    }

    /// Returns all metrics as text in the OpenMetrics format, which extends Prometheus's own format with
    /// units.
    ///
    /// # Errors
    /// Returns an error if the library cannot encode a metric. No metric in this crate is known to cause one.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let registered = self.lock();
        registered.refresh.iter().for_each(|refresh| refresh());
        let mut text = String::new();
        encode(&mut text, &registered.metrics)?;
        Ok(text)
    }
}
