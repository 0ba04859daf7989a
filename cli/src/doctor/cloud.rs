//! What a worker would find out about its machine, where that is one of AWS: kind, market, price.

use super::check::Check;
use crate::cluster::block_on;
use crate::rent::{Machine, RentArgs, may_be_here};

const NAME: &str = "machine";
const ADVICE: &str = "tell workers --machine, --market and --price-per-hour";

/// Looks, where there is something to look at.
pub(super) fn machine() -> Vec<Check> {
    if !may_be_here() {
        return Vec::new();
    }
    let found = block_on(RentArgs::default().machine());
    vec![match found {
        Ok((machine, Some(_))) => known(&machine),
        Ok((_, None)) => Check::warning(
            NAME,
            "this is a machine of AWS, and its metadata service does not answer",
            format!("let IMDSv2 answer (in a container with a hop limit of 2), or {ADVICE}"),
        ),
        Err(error) => Check::failed(NAME, format!("{error:#}"), ADVICE),
    }]
}

fn known(machine: &Machine) -> Check {
    let Machine {
        kind, market, zone, ..
    } = machine;
    let found = format!("{kind}, {market}, in {zone}");
    match machine.price_per_hour {
        Some(price) => {
            let dollars = price.dollars();
            let from = &machine.price_from;
            Check::ok(NAME, format!("{found}, ${dollars:.2} an hour ({from})"))
        }
        None => Check::warning(
            NAME,
            format!("{found}, of no known price"),
            "tell workers --price-per-hour, or the cost of runs is not known",
        ),
    }
}
