//! Conversions between a worker's own types and the messages of the protocol.

use hatebeam_cost::Machine;
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
        micros_per_hour: machine.micros_per_hour,
        price_from: machine.price_from,
    }
}
