//! Prices of an object store for requests and storage.

use crate::money::Micros;

/// Prices of an object store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectStorePrices {
    /// Billionths of a dollar for a request that writes or lists.
    pub nanos_per_write: u64,
    /// Billionths of a dollar for a request that reads.
    pub nanos_per_read: u64,
    /// Price of storing a gigabyte for a month.
    pub per_gb_month: Micros,
}

impl ObjectStorePrices {
    /// Returns the cost of storing the given number of bytes for a month.
    pub fn storage_per_month(&self, bytes: u64) -> Micros {
        Micros::saturating(u128::from(bytes) * u128::from(self.per_gb_month.0) / 1_000_000_000)
    }
}
