//! The genetic algorithm of Brenman's paper (2014).
//!
//! The paper's values are means of five games. Each generation measures the better half of the population in five more
//! games, which corrects weights that were only lucky, and replaces the other half. The paper uses a population of ten,
//! three generations after the first, and weights from -1 to 1.

use super::genetic::Random;
use super::{Function, Plan};
use rayon::prelude::*;

/// Probability that a child is a survivor of which some coordinates are replaced by random numbers.
const REDRAWN: f64 = 0.15;
/// Probability that such a child's coordinate is replaced.
const COORDINATE: f64 = 0.5;
/// Maximum change of a coordinate's distance from the middle of its range in a mutation, as a share of the distance.
/// The middle of the paper's range is zero, so a mutation multiplies a weight by 0.98 to 1.02.
const MUTATION: f64 = 0.02;

struct Individual {
    point: Vec<f64>,
    /// Sum of the values in all rounds.
    sum: f64,
    rounds: usize,
}

impl Individual {
    fn new(point: Vec<f64>) -> Individual {
        Individual {
            point,
            sum: 0.0,
            rounds: 0,
        }
    }

    fn mean(&self) -> f64 {
        self.sum / self.rounds as f64
    }
}

/// Runs all generations of `plan`, or stops early when `function` returns `None`.
pub(super) fn run(plan: &Plan, function: &Function<'_>) {
    let mut random = Random::new(plan.seed);
    let random_point = |_| plan.start.iter().map(|_| random.unit()).collect();
    let first = (0..plan.population).map(random_point);
    let mut population: Vec<Individual> = first.map(Individual::new).collect();
    let survivors = plan.population.div_ceil(2);
    let mut measured = measure(&mut population, function);
    for _ in 1..plan.generations() {
        population.sort_by(|one, other| other.mean().total_cmp(&one.mean()));
        population.truncate(survivors);
        if measured.is_none() || plan.has_rounds && measure(&mut population, function).is_none() {
            return;
        }
        let children = (survivors..plan.population).map(|_| child(&population, &mut random));
        let mut children: Vec<Individual> = children.map(Individual::new).collect();
        measured = measure(&mut children, function);
        population.append(&mut children);
    }
}

/// Measures each individual in its next round. Returns `None` if the search must stop.
fn measure(population: &mut [Individual], function: &Function<'_>) -> Option<()> {
    population.par_iter_mut().try_for_each(|individual| {
        individual.sum += function(&individual.point, individual.rounds)?;
        individual.rounds += 1;
        Some(())
    })
}

fn child(survivors: &[Individual], random: &mut Random) -> Vec<f64> {
    let parent = &survivors[random.below(survivors.len())].point;
    if random.unit() < REDRAWN {
        let coordinate = |&old: &f64| match random.unit() < COORDINATE {
            true => random.unit(),
            false => old,
        };
        return parent.iter().map(coordinate).collect();
    }
    if random.unit() < 0.5 {
        let coordinate = |&old: &f64| {
            let factor = 1.0 + MUTATION * (2.0 * random.unit() - 1.0);
            (0.5 + (old - 0.5) * factor).clamp(0.0, 1.0)
        };
        return parent.iter().map(coordinate).collect();
    }
    let other = &survivors[random.below(survivors.len())].point;
    let coordinates = parent.iter().zip(other);
    coordinates
        .map(|(&one, &other)| if random.unit() < 0.5 { one } else { other })
        .collect()
}
