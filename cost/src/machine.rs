//! Rented machines, and the processes that run on them.

use crate::money::Micros;
use serde::{Deserialize, Serialize};

/// Maximum length of each text that describes a machine, in characters.
pub const MAX_TEXT: usize = 128;
/// Maximum price of a machine per hour: a million dollars.
pub const MAX_PRICE: Micros = Micros(1_000_000_000_000);

/// A rented machine. Unknown texts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Machine type, such as `c5d.18xlarge`.
    pub kind: String,
    /// Price model: `spot` or `on-demand`.
    pub market: String,
    /// Region of the provider, such as `us-east-1`.
    pub region: String,
    /// Availability zone.
    pub zone: String,
    /// Identifier that the provider gave the machine.
    pub id: String,
    /// Price per hour; `None` if unknown.
    #[serde(rename = "micros_per_hour")]
    pub price_per_hour: Option<Micros>,
    /// Human-readable source of the price.
    pub price_from: String,
}

/// A process that currently works on a run, and its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveProcess {
    /// Name of the process.
    pub name: String,
    /// Time at which the process started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Machine on which the process runs.
    pub machine: Machine,
}

/// Returns the first item of each machine, so that two workers on one machine are not charged twice. `id` returns the
/// identifier of an item's machine. An item whose identifier is empty counts as a separate machine.
pub fn one_per_machine<T>(items: &[T], id: impl Fn(&T) -> &str) -> Vec<&T> {
    let mut chosen: Vec<&T> = Vec::new();
    for item in items {
        if id(item).is_empty() || chosen.iter().all(|other| id(other) != id(item)) {
            chosen.push(item);
        }
    }
    chosen
}
