//! Amounts of money.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::str::FromStr;
use thiserror::Error;

/// An amount of money in millionths of a US dollar. Sums saturate.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Micros(pub u64);

impl Micros {
    /// The amount zero.
    pub const ZERO: Micros = Micros(0);
    /// Maximum amount that users can enter: a billion dollars.
    pub const MAX: Micros = Micros(1_000_000_000_000_000);

    /// Converts dollars, rounding to the nearest millionth. A positive amount becomes at least one millionth, because a
    /// limit of zero means "no limit".
    pub fn from_dollars(dollars: f64) -> Micros {
        let micros = (dollars * 1e6).round() as u64;
        Micros(micros.max(u64::from(dollars > 0.0)))
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Adds two amounts.
    pub fn saturating_add(self, other: Micros) -> Micros {
        Micros(self.0.saturating_add(other.0))
    }

    /// Subtracts an amount. Returns zero if `other` is larger.
    pub fn saturating_sub(self, other: Micros) -> Micros {
        Micros(self.0.saturating_sub(other.0))
    }

    /// Returns the cost for a duration, where `self` is the price per hour.
    pub fn per_hour_for(self, milliseconds: u64) -> Micros {
        const MILLISECONDS_PER_HOUR: u128 = 3_600_000;
        Micros::saturating(u128::from(self.0) * u128::from(milliseconds) / MILLISECONDS_PER_HOUR)
    }

    pub(crate) fn saturating(micros: u128) -> Micros {
        Micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}

/// Formats the amount in dollars, such as `$1.38`. The precision is the number of decimals; the default is 2.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(2);
        f.pad_integral(true, "", &format!("${:.decimals$}", self.dollars()))
    }
}

impl Sum for Micros {
    fn sum<I: Iterator<Item = Micros>>(amounts: I) -> Micros {
        amounts.fold(Micros::ZERO, Micros::saturating_add)
    }
}

/// Error for text that is not an amount in dollars.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not an amount in dollars: give a number from 0 to 1000000000, such as 20 or 0.5")]
pub struct NotDollars(String);

/// Parses dollars, such as `20` or `0.5`.
impl FromStr for Micros {
    type Err = NotDollars;

    fn from_str(text: &str) -> Result<Micros, NotDollars> {
        match text.parse() {
            Ok(dollars) if (0.0..=Micros::MAX.dollars()).contains(&dollars) => {
                Ok(Micros::from_dollars(dollars))
            }
            _ => Err(NotDollars(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_rounded_to_millionths() {
        for (dollars, micros) in [
            (0.0, 0),
            (1.38, 1_380_000),
            (0.085, 85_000),
            (1e-7, 1),
            (1e9, 1_000_000_000_000_000),
        ] {
            assert_eq!(Micros::from_dollars(dollars), Micros(micros), "{dollars}");
        }
        assert_eq!(Micros(1_500_000).dollars(), 1.5);
    }

    #[test]
    fn dollars_are_parsed_and_formatted() {
        assert_eq!("20".parse(), Ok(Micros(20_000_000)));
        assert_eq!("0.0000001".parse(), Ok(Micros(1)));
        for text in ["", "-1", "nan", "inf", "1e10", "$5", "five"] {
            assert!(text.parse::<Micros>().is_err(), "{text}");
        }
        assert_eq!(Micros(1_384_999).to_string(), "$1.38");
        assert_eq!(format!("{:.4}", Micros(1_384_999)), "$1.3850");
        assert_eq!(format!("{:>8.0}", Micros(12_000_000)), "     $12");
    }

    #[test]
    fn sums_saturate() {
        let most = Micros(u64::MAX);
        assert_eq!([most, Micros(1)].into_iter().sum::<Micros>(), most);
        assert_eq!(Micros(1).saturating_sub(most), Micros::ZERO);
        assert_eq!(most.per_hour_for(7_200_000), most);
        assert_eq!(Micros(3_600_000).per_hour_for(1000), Micros(1000));
    }
}
