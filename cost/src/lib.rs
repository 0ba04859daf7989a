//! The costs of a run. This crate records the usage of machines, requests and storage in whole numbers, and contains
//! their prices. It also contains a model of the speed and cost of a search in a cluster.
//!
//! This crate is pure arithmetic: it uses no clock, no network and no metadata service.

mod estimate;
mod instances;
mod ledger;
mod machine;
mod model;
mod money;
mod plan;
mod prices;
mod table;

pub use estimate::{EarlierRun, Estimate, EstimateInputs, EstimateWorker, estimate};
pub use instances::{InstanceType, Market, PriceTable, S3Prices, UnknownInstance};
pub use ledger::{MAX_HOURS, MachineUsage, UsageLedger};
pub use machine::{ActiveProcess, MAX_PRICE, MAX_TEXT, Machine, one_per_machine};
pub use model::{
    BENCHMARK_NS, Beam, Bottleneck, DepthModel, MAX_WORKERS, MEMORY_OF_PROCESS, MEMORY_PER_WELL,
    MachineProfile, ModelInputs, ProgramConstants, fewest_workers, model_depth,
};
pub use money::{Micros, NotDollars};
pub use plan::{MachineCounts, NotCounts, Plan, PlannedRun, Plans, TooSmall};
pub use prices::ObjectStorePrices;
