//! The network with floating-point weights, its gradient and its optimizer.
//!
//! Operations run in a fixed order, and no multiplication is fused with an addition. So training gives the same bits on
//! every processor.

use crate::random::Random;
use hatebeam_game::SimdLevel;
use hatebeam_search::{FEATURES, NetworkWeights, WEIGHT_ONE};

/// Number of lanes, which is the length of a row of weights.
pub(crate) const LANES: usize = 16;
/// Index of the bias row, which follows the rows of the features.
const BIAS: usize = FEATURES;
/// Index of the row of output weights.
const OUTPUT: usize = FEATURES + 1;
pub(crate) const ROWS: usize = FEATURES + 2;
/// Absolute error above which the loss is linear instead of quadratic.
const HUBER: f32 = 0.5;
/// Share of a batch's samples. If a feature is active in a smaller share, its learning rate is reduced.
const RARE: f32 = 0.1;
const BETA: [f32; 2] = [0.9, 0.999];
const EPSILON: f32 = 1e-8;

pub(crate) type Row = [f32; LANES];

/// A batch of samples. Each sample is a list of active features and a target.
#[derive(Default)]
pub(crate) struct Batch {
    features: Vec<u32>,
    ends: Vec<u32>,
    targets: Vec<f32>,
}

impl Batch {
    /// Removes all samples.
    pub(crate) fn clear(&mut self) {
        self.features.clear();
        self.ends.clear();
        self.targets.clear();
    }

    /// Adds a sample with its active features.
    pub(crate) fn push(&mut self, features: &[u32], target: f32) {
        self.features.extend_from_slice(features);
        self.ends.push(self.features.len() as u32);
        self.targets.push(target);
    }

    /// Returns the number of samples.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }

    fn sample(&self, index: usize) -> (&[u32], f32) {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let features = &self.features[start as usize..self.ends[index] as usize];
        (features, self.targets[index])
    }
}

/// Totals of the loss and the prediction error over samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TrainStats {
    /// Number of samples.
    pub(crate) samples: u64,
    /// Sum of the losses.
    pub(crate) loss: f64,
    /// Sum of the prediction errors, each the prediction minus the target.
    pub(crate) bias: f64,
}

impl TrainStats {
    /// Returns the mean loss, or `None` if there are no samples.
    pub(crate) fn mean_loss(&self) -> Option<f64> {
        self.mean(self.loss)
    }

    /// Returns the mean prediction error, or `None` if there are no samples.
    pub(crate) fn mean_bias(&self) -> Option<f64> {
        self.mean(self.bias)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.samples > 0).then(|| sum / self.samples as f64)
    }

    fn add(&mut self, error: f32) {
        self.samples += 1;
        self.loss += f64::from(huber(error));
        self.bias += f64::from(error);
    }
}

fn huber(error: f32) -> f32 {
    let size = error.abs();
    if size <= HUBER {
        0.5 * size * size
    } else {
        HUBER * (size - 0.5 * HUBER)
    }
}

/// A network in training: its weights, and for each weight the two moments of the Adam optimizer.
#[derive(Clone, PartialEq)]
pub(crate) struct Model {
    /// The rows of the features, then the bias and the output weights.
    pub(crate) weights: Vec<Row>,
    pub(crate) moments: Vec<[Row; 2]>,
    /// Number of optimizer steps so far.
    pub(crate) steps: u32,
    gradients: Vec<Row>,
    /// For each row, the number of samples in the batch that use the row.
    counts: Vec<u32>,
    /// Indexes of the rows whose count is above 0.
    touched: Vec<u32>,
}

impl Model {
    /// Creates a network with small random weights. The output weight of lane 0 is 1, and training never changes it.
    pub(crate) fn new(seed: u64) -> Model {
        let mut random = Random::new(seed, 0, u32::MAX);
        let mut weights = vec![[0.0; LANES]; ROWS];
        for row in &mut weights[..FEATURES] {
            *row = std::array::from_fn(|_| (0.002 * random.normal()) as f32);
        }
        weights[OUTPUT] = std::array::from_fn(|lane| match lane {
            0 => 1.0,
            _ => (0.2 * random.normal()) as f32,
        });
        Model::of(weights, vec![[[0.0; LANES]; 2]; ROWS], 0)
    }

    /// Creates a model from integer weights. Its moments are zero.
    pub(crate) fn from_weights(network: &NetworkWeights) -> Model {
        let lists = [&network.rows, &network.bias, &network.output];
        let all = lists.into_iter().flatten();
        let all: Vec<f32> = all
            .map(|&weight| f32::from(weight) / f32::from(WEIGHT_ONE))
            .collect();
        let (rows, _) = all.as_chunks::<LANES>();
        Model::of(rows.to_vec(), vec![[[0.0; LANES]; 2]; ROWS], 0)
    }

    /// Sets the weights of features to zero. They stay zero if no sample has these features.
    pub(crate) fn clear(&mut self, features: std::ops::Range<usize>) {
        self.weights[features].fill([0.0; LANES]);
    }

    pub(crate) fn of(weights: Vec<Row>, moments: Vec<[Row; 2]>, steps: u32) -> Model {
        Model {
            weights,
            moments,
            steps,
            gradients: vec![[0.0; LANES]; ROWS],
            counts: vec![0; ROWS],
            touched: Vec::new(),
        }
    }

    /// Returns the sum of the bias row and the rows of the given features.
    #[inline(always)]
    fn sum(&self, features: &[u32]) -> Row {
        let mut sum = self.weights[BIAS];
        for &feature in features {
            let row = &self.weights[feature as usize];
            for lane in 0..LANES {
                sum[lane] += row[lane];
            }
        }
        sum
    }

    /// Returns the lanes of a sum, clamped except for lane 0, and the value of the well.
    #[inline(always)]
    fn output(&self, sum: &Row) -> (Row, f32) {
        let mut hidden: Row = std::array::from_fn(|lane| sum[lane].clamp(-1.0, 1.0));
        hidden[0] = sum[0];
        let mut value = 0.0;
        for (hidden, weight) in hidden.iter().zip(&self.weights[OUTPUT]) {
            value += hidden * weight;
        }
        (hidden, value)
    }

    /// Returns the value of a well with the given active features.
    pub(crate) fn value(&self, features: &[u32]) -> f32 {
        self.output(&self.sum(features)).1
    }

    /// Adds the gradient of a batch's mean loss to `gradients`, and the losses to `stats`.
    #[inline(always)]
    fn backward(&mut self, batch: &Batch, stats: &mut TrainStats) {
        let share = 1.0 / batch.len() as f32;
        for index in 0..batch.len() {
            let (features, target) = batch.sample(index);
            let sum = self.sum(features);
            let (hidden, value) = self.output(&sum);
            let error = value - target;
            stats.add(error);
            let slope = error.clamp(-HUBER, HUBER) * share;
            let output = &self.weights[OUTPUT];
            let mut gradient: Row = std::array::from_fn(|lane| {
                if sum[lane].abs() < 1.0 {
                    slope * output[lane]
                } else {
                    0.0
                }
            });
            gradient[0] = slope;
            let output = self.gradients[OUTPUT].iter_mut().zip(hidden);
            for (to, hidden) in output.skip(1) {
                *to += slope * hidden;
            }
            for &feature in features {
                let at = feature as usize;
                if self.counts[at] == 0 {
                    self.touched.push(feature);
                }
                self.counts[at] += 1;
                let row = &mut self.gradients[at];
                for lane in 0..LANES {
                    row[lane] += gradient[lane];
                }
            }
            for (to, gradient) in self.gradients[BIAS].iter_mut().zip(gradient) {
                *to += gradient;
            }
        }
        for at in [BIAS, OUTPUT] {
            self.counts[at] = batch.len() as u32;
            self.touched.push(at as u32);
        }
    }

    /// Applies one Adam step to the touched rows and clears their gradients.
    #[inline(always)]
    fn step(&mut self, batch: &Batch, rate: f32) {
        // A forged checkpoint can begin with the greatest number.
        self.steps = self.steps.saturating_add(1);
        let steps = self.steps.min(1 << 20) as i32;
        let unbias = BETA.map(|beta| 1.0 / (1.0 - power(beta, steps)));
        for &at in &self.touched {
            let at = at as usize;
            let share = self.counts[at] as f32 / batch.len() as f32;
            let rate = rate * (share / RARE).min(1.0).sqrt();
            let (weights, gradients) = (&mut self.weights[at], &mut self.gradients[at]);
            let [first, second] = &mut self.moments[at];
            for lane in 0..LANES {
                let gradient = gradients[lane];
                first[lane] = BETA[0] * first[lane] + (1.0 - BETA[0]) * gradient;
                second[lane] = BETA[1] * second[lane] + (1.0 - BETA[1]) * gradient * gradient;
                let size = (second[lane] * unbias[1]).sqrt() + EPSILON;
                weights[lane] -= rate * (first[lane] * unbias[0]) / size;
            }
            *gradients = [0.0; LANES];
            self.counts[at] = 0;
        }
        self.touched.clear();
    }

    /// Takes one training step on a batch with learning rate `rate`. Adds the losses before the step to `stats`.
    pub(crate) fn train(
        &mut self,
        level: SimdLevel,
        batch: &Batch,
        rate: f32,
        stats: &mut TrainStats,
    ) {
        train(level, self, batch, rate, stats);
    }

    /// Adds the losses of a batch to `stats` without training.
    pub(crate) fn test(&self, batch: &Batch, stats: &mut TrainStats) {
        for index in 0..batch.len() {
            let (features, target) = batch.sample(index);
            stats.add(self.value(features) - target);
        }
    }
}

/// Replaces each weight by `share * weight + (1 - share) * other`.
pub(crate) fn approach(weights: &mut [Row], others: &[Row], share: f32) {
    for (row, other) in weights.iter_mut().zip(others) {
        for (weight, other) in row.iter_mut().zip(other) {
            *weight = share * *weight + (1.0 - share) * other;
        }
    }
}

/// Returns the weights rounded to integers in units of 1/[`WEIGHT_ONE`].
pub(crate) fn quantise(weights: &[Row]) -> NetworkWeights {
    let fixed = |weight: f32| {
        let scaled = (weight * f32::from(WEIGHT_ONE)).round();
        scaled.clamp(f32::from(-i16::MAX), f32::from(i16::MAX)) as i16
    };
    let row = |at: usize| weights[at].map(fixed).to_vec();
    NetworkWeights {
        lanes: LANES,
        bias: row(BIAS),
        output: row(OUTPUT),
        rows: (0..FEATURES).flat_map(row).collect(),
    }
}

/// Returns `base` raised to the power `exponent`, by repeated squaring in a fixed order.
fn power(mut base: f32, mut exponent: i32) -> f32 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[inline(always)]
fn train_any(model: &mut Model, batch: &Batch, rate: f32, stats: &mut TrainStats) {
    model.backward(batch, stats);
    model.step(batch, rate);
}

#[cfg(not(target_arch = "x86_64"))]
fn train(_: SimdLevel, model: &mut Model, batch: &Batch, rate: f32, stats: &mut TrainStats) {
    train_any(model, batch, rate, stats);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn train(level: SimdLevel, model: &mut Model, batch: &Batch, rate: f32, stats: &mut TrainStats) {
    #[target_feature(enable = "avx2")]
    fn avx2(model: &mut Model, batch: &Batch, rate: f32, stats: &mut TrainStats) {
        train_any(model, batch, rate, stats);
    }
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    fn avx512(model: &mut Model, batch: &Batch, rate: f32, stats: &mut TrainStats) {
        train_any(model, batch, rate, stats);
    }
    assert!(
        SimdLevel::available().any(|has| has == level),
        "the processor does not support {level}"
    );
    match level {
        SimdLevel::Portable => train_any(model, batch, rate, stats),
        // SAFETY: the level is available, so the processor has these instructions.
        SimdLevel::Avx2 => unsafe { avx2(model, batch, rate, stats) },
        // SAFETY: as above.
        SimdLevel::Avx512 | SimdLevel::Avx512Vbmi2 => unsafe { avx512(model, batch, rate, stats) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 24 samples with nine random features each. The features are below 40, so that samples share rows.
    fn batch() -> Batch {
        let mut random = Random::new(7, 0, 0);
        let mut batch = Batch::default();
        for _ in 0..24 {
            let features: Vec<u32> = (0..9).map(|_| random.below(40) as u32).collect();
            batch.push(&features, (4.0 * random.unit()) as f32);
        }
        batch
    }

    /// Returns a model whose weights are large enough to clamp some lanes.
    fn model() -> Model {
        let mut random = Random::new(8, 0, 0);
        let mut model = Model::new(1);
        for row in &mut model.weights[..40] {
            *row = std::array::from_fn(|_| (0.3 * random.normal()) as f32);
        }
        model
    }

    fn loss(model: &Model, batch: &Batch) -> f64 {
        let mut stats = TrainStats::default();
        model.test(batch, &mut stats);
        stats.mean_loss().unwrap()
    }

    #[test]
    fn gradient_matches_finite_differences() {
        let (batch, mut model) = (batch(), model());
        let mut learning = model.clone();
        learning.backward(&batch, &mut TrainStats::default());
        let mut checked = 0;
        for at in (0..40).chain([BIAS, OUTPUT]) {
            for lane in 0..LANES {
                if (at, lane) == (OUTPUT, 0) {
                    continue; // Training does not change this weight.
                }
                let weight = model.weights[at][lane];
                let mut moved = |by: f32| {
                    model.weights[at][lane] = weight + by;
                    let moved = loss(&model, &batch);
                    model.weights[at][lane] = weight;
                    moved
                };
                let step = 1e-3;
                let slope = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
                let gradient = f64::from(learning.gradients[at][lane]);
                assert!(
                    (slope - gradient).abs() < 2e-3 + 0.05 * slope.abs(),
                    "row {at}, lane {lane}: gradient {gradient} instead of {slope}"
                );
                checked += usize::from(gradient.abs() > 1e-2);
            }
        }
        assert!(
            checked > 100,
            "only {checked} gradients differ clearly from 0"
        );
    }

    #[test]
    fn training_gives_same_bits_at_every_simd_level() {
        let batch = batch();
        let trained = |level| {
            let mut model = model();
            let mut stats = TrainStats::default();
            for _ in 0..20 {
                model.train(level, &batch, 1e-2, &mut stats);
            }
            (model.weights, model.moments, stats)
        };
        let expected = trained(SimdLevel::Portable);
        assert!(expected.2.mean_loss() > Some(0.0));
        for level in SimdLevel::available() {
            assert!(trained(level) == expected, "{level}");
        }
    }

    #[test]
    fn training_reduces_loss() {
        let (batch, mut model) = (batch(), model());
        let before = loss(&model, &batch);
        for _ in 0..200 {
            model.train(
                SimdLevel::Portable,
                &batch,
                1e-2,
                &mut TrainStats::default(),
            );
        }
        assert!(loss(&model, &batch) < 0.1 * before);
    }

    #[test]
    fn greatest_number_of_steps_stays() {
        let mut model = Model {
            steps: u32::MAX,
            ..model()
        };
        let mut stats = TrainStats::default();
        model.train(SimdLevel::Portable, &batch(), 1e-2, &mut stats);
        assert_eq!(model.steps, u32::MAX);
    }
}
