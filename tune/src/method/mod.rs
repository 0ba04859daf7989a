//! The optimization methods. Each method maximizes a function on the unit cube.

mod brenman;
mod genetic;

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::particleswarm::ParticleSwarm;
use cmaes::{CMAESOptions, DVector, Mode};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use simplers_optimization::Optimizer;
use std::cell::Cell;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error as ThisError;

/// Initial standard deviation for CMA-ES, as a share of each range.
const SIGMA: f64 = 0.2;
/// A function of a point in the unit cube and a round. It returns `None` when the search must stop.
pub(crate) type Function<'a> = dyn Fn(&[f64], usize) -> Option<f64> + Sync + 'a;

/// An optimization method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Simple(x), which divides the cube into simplices and explores the most promising simplex. It is deterministic,
    /// ignores the start and the seed, and evaluates one point at a time.
    Simplers,
    /// Real-valued genetic algorithm with tournaments, uniform crossover, and decreasing mutations.
    Genetic,
    /// Genetic algorithm from Brenman's paper (2014), in which every generation measures the survivors in one more
    /// round, if there are rounds. It ignores the start.
    Brenman,
    /// Particle swarm with random initial positions.
    Swarm,
    /// CMA-ES. When it converges, it restarts around its best point with twice the population.
    CmaEs,
}

/// Error for an unknown method.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("`{0}` is not a method: use simplers, genetic, brenman, swarm or cma-es")]
pub struct UnknownMethod(String);

impl Method {
    /// All methods.
    pub const ALL: [Method; 5] = [
        Method::Simplers,
        Method::Genetic,
        Method::Brenman,
        Method::Swarm,
        Method::CmaEs,
    ];

    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Method::Simplers => "simplers",
            Method::Genetic => "genetic",
            Method::Brenman => "brenman",
            Method::Swarm => "swarm",
            Method::CmaEs => "cma-es",
        }
    }

    /// Returns a one-line description of the method.
    pub fn description(self) -> &'static str {
        match self {
            Method::Simplers => "Simple(x): global, deterministic, practical for up to six weights",
            Method::Genetic => "real-valued genetic algorithm with decreasing mutations",
            Method::Brenman => "Brenman's genetic algorithm, which measures survivors again",
            Method::Swarm => "particle swarm",
            Method::CmaEs => "CMA-ES with restarts and growing populations",
        }
    }

    /// Runs the method until it has evaluated at least `plan.evaluations` points or `function` returns `None`.
    pub(crate) fn run(self, plan: &Plan, function: &Function<'_>) {
        match self {
            Method::Simplers => simplers(plan, function),
            Method::Genetic => genetic::run(plan, function),
            Method::Brenman => brenman::run(plan, function),
            Method::Swarm => swarm(plan, function),
            Method::CmaEs => cma_es(plan, function),
        }
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Method, UnknownMethod> {
        let found = Method::ALL.into_iter().find(|method| method.name() == name);
        found.ok_or_else(|| UnknownMethod(name.to_owned()))
    }
}

/// Settings of a method.
pub(crate) struct Plan {
    /// Coordinates of the starting point.
    pub(crate) start: Vec<f64>,
    /// Seed of the random numbers.
    pub(crate) seed: u64,
    /// Number of evaluations, which methods with populations round up to whole generations.
    pub(crate) evaluations: usize,
    /// Number of points in a generation.
    pub(crate) population: usize,
    /// Whether values become more accurate if points are measured in several rounds.
    pub(crate) has_rounds: bool,
}

impl Plan {
    fn generations(&self) -> usize {
        self.evaluations.div_ceil(self.population)
    }
}

fn simplers(plan: &Plan, function: &Function<'_>) {
    let cube = vec![(0.0, 1.0); plan.start.len()];
    let is_stopped = Cell::new(false);
    let value = |point: &[f64]| {
        function(point, 0).unwrap_or_else(|| {
            is_stopped.set(true);
            0.0
        })
    };
    // The corners of the first simplex are evaluated before the first iteration.
    let corners = cube.len() + 1;
    let iterations = plan.evaluations.saturating_sub(corners);
    let mut search = Optimizer::new(value, &cube, false).take(iterations);
    while !is_stopped.get() && search.next().is_some() {}
}

/// The function with the opposite sign, because the particle swarm minimizes.
struct SwarmFunction<'a>(&'a Function<'a>);

impl CostFunction for SwarmFunction<'_> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, point: &Vec<f64>) -> Result<f64, Error> {
        let value = (self.0)(point, 0).ok_or_else(|| Error::msg("the search was stopped"))?;
        Ok(-value)
    }
}

fn swarm(plan: &Plan, function: &Function<'_>) {
    let dimension = plan.start.len();
    let bounds = (vec![0.0; dimension], vec![1.0; dimension]);
    let solver = ParticleSwarm::new(bounds, plan.population)
        .with_rng_generator(ChaCha8Rng::seed_from_u64(plan.seed));
    let iterations = plan.generations().saturating_sub(1) as u64;
    let executor = Executor::new(SwarmFunction(function), solver)
        .configure(|state| state.max_iters(iterations));
    // The only possible error means that the search was stopped. The result is not needed, because `function` records
    // every value.
    let _ = executor.run();
}

fn cma_es(plan: &Plan, function: &Function<'_>) {
    let is_stopped = AtomicBool::new(false);
    let (mut best, mut mean) = (f64::NEG_INFINITY, plan.start.clone());
    let mut evaluations = 0;
    for restart in 0u32.. {
        let population = plan.population << restart.min(10);
        let value = |point: &DVector<f64>| {
            function(point.as_slice(), 0).unwrap_or_else(|| {
                is_stopped.store(true, Ordering::Relaxed);
                f64::NAN
            })
        };
        let search = CMAESOptions::new(mean.clone(), SIGMA)
            .mode(Mode::Maximize)
            .population_size(population)
            .seed(plan.seed.wrapping_add(u64::from(restart)))
            .build(value);
        let mut search =
            search.expect("the starting point has coordinates and the population is not empty");
        loop {
            if evaluations >= plan.evaluations || is_stopped.load(Ordering::Relaxed) {
                return;
            }
            let ended = search.next_parallel();
            evaluations += population;
            if let Some(found) = search.overall_best_individual()
                && found.value > best
            {
                best = found.value;
                mean = found.point.as_slice().to_vec();
            }
            if ended.is_some() {
                break;
            }
        }
    }
}
