//! Conversions of the coordinator's orders.

use super::{MessageError, pack_wells, read_table, unpack_wells};
use crate::messages::{Count, Expand, Order, OrderKind, Peer, Prepare, Secret, Select};
use crate::v1;
use hatebeam_runs::RunSpec;
use hatebeam_search::{CountQuery, DIGITS};

impl TryFrom<v1::Order> for Order {
    type Error = MessageError;

    fn try_from(order: v1::Order) -> Result<Order, MessageError> {
        use v1::order::Kind;
        let kind = match order
            .kind
            .ok_or_else(|| MessageError::missing("order.kind"))?
        {
            Kind::Prepare(prepare) => OrderKind::Prepare(Box::new(prepare.try_into()?)),
            Kind::Expand(expand) => OrderKind::Expand(expand.try_into()?),
            Kind::Count(count) => OrderKind::Count(count.try_into()?),
            Kind::ValidateCut(validate) => OrderKind::ValidateCut(validate),
            Kind::Rescore(select) => OrderKind::Rescore(select.try_into()?),
            Kind::Select(select) => OrderKind::Select(select.try_into()?),
            Kind::WaitCommit(wait) => OrderKind::WaitCommit(wait),
            Kind::Halt(v1::Halt {}) => OrderKind::Halt,
            Kind::ReadBack(read) => OrderKind::ReadBack(read),
        };
        Ok(Order {
            epoch: order.epoch,
            id: order.id,
            kind,
        })
    }
}

impl From<Order> for v1::Order {
    fn from(order: Order) -> v1::Order {
        use v1::order::Kind;
        let kind = match order.kind {
            OrderKind::Prepare(prepare) => Kind::Prepare((*prepare).into()),
            OrderKind::Expand(expand) => Kind::Expand(v1::Expand {
                depth: expand.depth,
                attempt: expand.attempt,
                sigmas: expand.sigmas,
                floor: expand.floor,
                wells: expand.wells,
            }),
            OrderKind::Count(count) => Kind::Count(count.into()),
            OrderKind::ValidateCut(validate) => Kind::ValidateCut(validate),
            OrderKind::Rescore(select) => Kind::Rescore(select.into()),
            OrderKind::Select(select) => Kind::Select(select.into()),
            OrderKind::WaitCommit(wait) => Kind::WaitCommit(wait),
            OrderKind::Halt => Kind::Halt(v1::Halt {}),
            OrderKind::ReadBack(read) => Kind::ReadBack(read),
        };
        v1::Order {
            epoch: order.epoch,
            id: order.id,
            kind: Some(kind),
        }
    }
}

impl TryFrom<v1::Prepare> for Prepare {
    type Error = MessageError;

    fn try_from(prepare: v1::Prepare) -> Result<Prepare, MessageError> {
        let spec: RunSpec = serde_json::from_str(&prepare.spec)
            .map_err(|error| MessageError::new("prepare.spec", error))?;
        Ok(Prepare {
            run: prepare.run,
            spec,
            depth: prepare.depth,
            owners: prepare.owners,
            members: prepare
                .members
                .into_iter()
                .map(Peer::try_from)
                .collect::<Result<_, _>>()?,
            tables: prepare.tables.into_iter().map(read_table).collect(),
            table_shards: prepare.table_shards,
        })
    }
}

impl From<Prepare> for v1::Prepare {
    fn from(prepare: Prepare) -> v1::Prepare {
        v1::Prepare {
            run: prepare.run,
            // Serialization cannot fail: all maps of a specification have string keys.
            spec: serde_json::to_string(&prepare.spec).unwrap_or_default(),
            depth: prepare.depth,
            owners: prepare.owners,
            members: prepare.members.into_iter().map(v1::Member::from).collect(),
            tables: prepare.tables.into_iter().map(v1::Table::from).collect(),
            table_shards: prepare.table_shards,
        }
    }
}

impl TryFrom<v1::Member> for Peer {
    type Error = MessageError;

    fn try_from(member: v1::Member) -> Result<Peer, MessageError> {
        Ok(Peer {
            name: member.name,
            address: member.address,
            send_secret: secret(&member.send_secret)?,
            receive_secret: secret(&member.receive_secret)?,
        })
    }
}

pub(super) fn secret(bytes: &[u8]) -> Result<Secret, MessageError> {
    let secret = bytes.try_into().map(Secret);
    secret.map_err(|_| MessageError::new("secret", "must have 16 bytes"))
}

impl From<Peer> for v1::Member {
    fn from(peer: Peer) -> v1::Member {
        v1::Member {
            name: peer.name,
            address: peer.address,
            send_secret: peer.send_secret.0.to_vec(),
            receive_secret: peer.receive_secret.0.to_vec(),
        }
    }
}

impl TryFrom<v1::Expand> for Expand {
    type Error = MessageError;

    fn try_from(expand: v1::Expand) -> Result<Expand, MessageError> {
        if !(0.0..1e6).contains(&expand.sigmas) {
            let reason = format!("{} is out of range", expand.sigmas);
            return Err(MessageError::new("expand.sigmas", reason));
        }
        Ok(Expand {
            depth: expand.depth,
            attempt: expand.attempt,
            sigmas: expand.sigmas,
            floor: expand.floor,
            wells: expand.wells,
        })
    }
}

impl TryFrom<v1::Count> for Count {
    type Error = MessageError;

    fn try_from(count: v1::Count) -> Result<Count, MessageError> {
        let bad = |reason: &str| MessageError::new("count.prefixes", reason);
        if !(1..=2).contains(&count.prefixes.len()) {
            return Err(bad("there must be one or two prefixes"));
        }
        let query = |prefix: &v1::Prefix| {
            let v1::Prefix { known, prefix } = *prefix;
            let is_valid = known < DIGITS && (prefix >> (16 * known)) == 0;
            is_valid
                .then_some(CountQuery { known, prefix })
                .ok_or_else(|| bad("a prefix has too many digits"))
        };
        Ok(Count {
            depth: count.depth,
            queries: count.prefixes.iter().map(query).collect::<Result<_, _>>()?,
        })
    }
}

impl From<Count> for v1::Count {
    fn from(count: Count) -> v1::Count {
        let prefix = |query: &CountQuery| v1::Prefix {
            known: query.known,
            prefix: query.prefix,
        };
        v1::Count {
            depth: count.depth,
            prefixes: count.queries.iter().map(prefix).collect(),
        }
    }
}

impl TryFrom<v1::Select> for Select {
    type Error = MessageError;

    fn try_from(select: v1::Select) -> Result<Select, MessageError> {
        let ties = unpack_wells("select.ties", &select.ties)?;
        if select.all_ties && !ties.is_empty() {
            return Err(MessageError::new(
                "select.ties",
                "must be empty if all ties survive",
            ));
        }
        Ok(Select {
            depth: select.depth,
            cut: select.cut,
            ties: (!select.all_ties).then_some(ties),
        })
    }
}

impl From<Select> for v1::Select {
    fn from(select: Select) -> v1::Select {
        v1::Select {
            depth: select.depth,
            cut: select.cut,
            all_ties: select.ties.is_none(),
            ties: select.ties.map_or_else(Vec::new, |ties| pack_wells(&ties)),
        }
    }
}
