//! A deterministic simulation of coordinators and workers in one process.
//!
//! [`run_seed`] runs one to three real coordinators and one to eight real workers on one thread, with tokio's clock
//! paused. The network, the object store, the disks and the clocks are simulated. A seed determines the cluster, the
//! runs and every fault, so a failing seed can be repeated exactly.
//!
//! A run is a search that proceeds from depth to depth. The coordinator commits each depth to the object store, and
//! lists it in the manifest of the run. The simulation checks the following invariants at every write to the object
//! store, and again after all faults have ended:
//!
//! - each committed depth has the digest that a single-threaded search finds,
//! - a manifest only grows, and no depth is committed twice, unless a fault deletes a table,
//! - every object that a manifest references exists,
//! - every run finishes with its best game, unless a fault makes this impossible,
//! - no run is charged for more time than has passed, apart from the differences between the clocks.
//!
//! `docs/simulation.md` describes what is simulated and how to repeat a seed.
//!
//! # Examples
//!
//! ```no_run
//! use hatebeam_sim::{Options, run_seed};
//!
//! let report = run_seed(17, &Options::default());
//! assert_eq!(report.violations, [""; 0], "{}", report.trace);
//! ```

mod batch;
mod checks;
mod client;
mod coordinator;
mod faults;
mod inbox;
mod learned;
mod lies;
mod links;
mod logging;
mod machine;
mod money;
mod network;
mod options;
mod oracle;
mod panics;
mod plan;
mod process;
mod rng;
mod serving;
mod simulate;
mod store;
mod tamper;
mod trace;
mod worker;
mod world;

pub use batch::{Summary, run_seeds};
pub use checks::Totals;
pub use options::{Options, Sabotage};
pub use plan::{Class, Mix};
pub use rng::Rng;
pub use simulate::Report;
pub use trace::Detail;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Simulates one seed on the current thread. Reports panics of the simulated tasks as violations.
pub fn run_seed(seed: u64, options: &Options) -> Report {
    panics::watch();
    let simulated = catch_unwind(AssertUnwindSafe(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        match runtime {
            Ok(runtime) => runtime.block_on(simulate::simulate(seed, options)),
            Err(error) => panic!("cannot start a tokio runtime: {error}"),
        }
    }));
    let mut report = simulated.unwrap_or_else(|_| Report {
        seed,
        ..Report::default()
    });
    report.violations.extend(panics::take());
    report
}
