//! Conversions between the coordinator's own types and the messages of the protocol.

use hatebeam_cost::{MAX_PRICE, MAX_TEXT, Machine, Micros};
use hatebeam_proto::v1;
use hatebeam_runs::Table;

/// The message that names a table.
pub(crate) fn table_to_wire(table: Table) -> v1::Table {
    v1::Table {
        shard: table.shard,
        key: table.key,
        offset: table.offset,
        bytes: table.bytes,
        checksum: table.checksum,
        count: table.count,
        digest: table.digest,
    }
}

/// The table that a message names.
pub(crate) fn table_from_wire(table: v1::Table) -> Table {
    Table {
        shard: table.shard,
        key: table.key,
        offset: table.offset,
        bytes: table.bytes,
        checksum: table.checksum,
        count: table.count,
        digest: table.digest,
    }
}

/// The message that describes a machine.
pub(crate) fn machine_to_wire(machine: Machine) -> v1::Machine {
    v1::Machine {
        kind: machine.kind,
        market: machine.market,
        region: machine.region,
        zone: machine.zone,
        id: machine.id,
        micros_per_hour: machine.price_per_hour.map(|price| price.0),
        price_from: machine.price_from,
    }
}

/// The machine that a worker describes; text is cut to [`MAX_TEXT`] characters, an impossible price is dropped.
pub(crate) fn machine_from_wire(machine: Option<&v1::Machine>) -> Machine {
    let Some(machine) = machine else {
        return Machine::default();
    };
    let text = |text: &String| text.chars().take(MAX_TEXT).collect();
    Machine {
        kind: text(&machine.kind),
        market: text(&machine.market),
        region: text(&machine.region),
        zone: text(&machine.zone),
        id: text(&machine.id),
        price_per_hour: machine
            .micros_per_hour
            .map(Micros)
            .filter(|price| *price <= MAX_PRICE),
        price_from: text(&machine.price_from),
    }
}
