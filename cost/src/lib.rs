//! Costs of a run on rented machines: the usage of machines, requests and storage, in whole numbers, and prices.

mod ledger;
mod machine;
mod money;
mod prices;

pub use ledger::{MachineUsage, UsageLedger};
pub use machine::{ActiveProcess, MAX_PRICE, MAX_TEXT, Machine, one_per_machine};
pub use money::{Micros, NotDollars};
pub use prices::ObjectStorePrices;
