//! A real-valued genetic algorithm.
//!
//! Published crates for such algorithms would add about twenty dependencies, more than all other methods together.

use super::{Function, Plan};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

/// Number of random individuals in a tournament, whose best individual becomes a parent.
const TOURNAMENT: usize = 3;
/// Share of the population that survives into the next generation.
const ELITE: f64 = 0.1;
/// Probability of changing a coordinate of a child.
const MUTATION: f64 = 0.3;
/// Maximum change of a coordinate before the first reduction, as a share of the range.
const FIRST_STEP: f64 = 0.3;
/// Lower limit for the maximum change.
const LEAST_STEP: f64 = 0.01;
/// Factor by which the maximum change is multiplied in each generation. It does not depend on the number of
/// generations, so that a finished search can be continued with more evaluations.
const SHRINK: f64 = 0.95;

struct Individual {
    point: Vec<f64>,
    value: f64,
}

/// Random numbers of a genetic algorithm.
pub(super) struct Random(ChaCha8Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns a random number from 0 (inclusive) to 1 (exclusive).
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        ((self.unit() * count as f64) as usize).min(count - 1)
    }
}

/// Runs all generations of `plan`, or stops early when `function` returns `None`.
pub(super) fn run(plan: &Plan, function: &Function<'_>) {
    let mut random = Random::new(plan.seed);
    let elite = (plan.population as f64 * ELITE).ceil() as usize;
    let first = (0..plan.population).map(|index| match index {
        0 => plan.start.clone(),
        _ => plan.start.iter().map(|_| random.unit()).collect(),
    });
    let Some(mut population) = evaluate(first.collect(), function) else {
        return;
    };
    let mut step = FIRST_STEP;
    for _ in 1..plan.generations() {
        step = (step * SHRINK).max(LEAST_STEP);
        let children = (elite..plan.population)
            .map(|_| child(&population, step, &mut random))
            .collect();
        population.truncate(elite);
        match evaluate(children, function) {
            Some(children) => population.extend(children),
            None => return,
        }
        sort(&mut population);
    }
}

/// Evaluates points and returns them sorted, best first. Returns `None` if the search must stop.
fn evaluate(points: Vec<Vec<f64>>, function: &Function<'_>) -> Option<Vec<Individual>> {
    let evaluate = |point: Vec<f64>| function(&point, 0).map(|value| Individual { point, value });
    let mut found: Vec<Individual> = points
        .into_par_iter()
        .map(evaluate)
        .collect::<Option<_>>()?;
    sort(&mut found);
    Some(found)
}

/// Sorts by value, best first. The sort is stable, so older individuals stay before younger ones with equal values.
fn sort(population: &mut [Individual]) {
    population.sort_by(|one, other| other.value.total_cmp(&one.value));
}

/// Creates a child of two parents. Each coordinate comes from one of the parents. Random coordinates are then changed
/// by at most `step`.
fn child(population: &[Individual], step: f64, random: &mut Random) -> Vec<f64> {
    let [mother, father] = [(); 2].map(|()| {
        // The population is sorted, so the lowest index is the best individual.
        let index = (0..TOURNAMENT)
            .map(|_| random.below(population.len()))
            .min();
        &population[index.unwrap_or(0)].point
    });
    let parents = mother.iter().zip(father);
    let inherit = |(&one, &other): (&f64, &f64)| {
        let inherited = if random.unit() < 0.5 { one } else { other };
        let change = (2.0 * random.unit() - 1.0) * step;
        let is_changed = random.unit() < MUTATION;
        (inherited + if is_changed { change } else { 0.0 }).clamp(0.0, 1.0)
    };
    parents.map(inherit).collect()
}
