//! What a run on rented machines costs: the usage of machines, requests and storage, in whole numbers, and the
//! budget that limits it.

mod ledger;

pub use ledger::{
    ActiveProcess, Budget, MAX_MICROS, MAX_TEXT, Machine, MachineUsage, ObjectStorePrices,
    StoppedBy, UsageLedger, once_a_machine,
};
