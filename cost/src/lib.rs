//! What a run on rented machines costs: the usage of machines, requests and storage, in whole numbers, and the
//! budget that limits it.

mod bill;

pub use bill::{
    Bill, Budget, Charge, MAX_MICROS, MAX_TEXT, Machine, Present, Rates, StoppedBy, once_a_machine,
};
