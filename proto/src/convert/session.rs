//! Conversions of the messages in a worker's session, except orders and answers.

use super::{MAX_REASON, MessageError, cut};
use crate::messages::{
    Answer, AnswerKind, Failed, FailureKind, FromWorker, Hello, Leaving, ToWorker, Welcome,
};
use crate::v1;
use hatebeam_cost::{MAX_PRICE, MAX_TEXT, Machine, Micros};
use std::time::Duration;

impl TryFrom<v1::FromWorker> for FromWorker {
    type Error = MessageError;

    /// Converts the message. An invalid answer becomes [`AnswerKind::Failed`], so that its order fails immediately.
    fn try_from(message: v1::FromWorker) -> Result<FromWorker, MessageError> {
        use v1::from_worker::Message;
        Ok(
            match message
                .message
                .ok_or_else(|| MessageError::missing("message"))?
            {
                Message::Hello(hello) => FromWorker::Hello(Box::new(hello.into())),
                Message::Heartbeat(heartbeat) => FromWorker::Heartbeat(heartbeat),
                Message::Answer(answer) => {
                    let (epoch, id) = (answer.epoch, answer.id);
                    let answer = Answer::try_from(answer);
                    FromWorker::Answer(answer.unwrap_or_else(|error| Answer {
                        epoch,
                        id,
                        kind: AnswerKind::Failed(Failed {
                            reason: error.to_string(),
                            kind: FailureKind::Worker,
                        }),
                    }))
                }
                Message::Leaving(leaving) => FromWorker::Leaving(leaving.into()),
            },
        )
    }
}

impl From<FromWorker> for v1::FromWorker {
    fn from(message: FromWorker) -> v1::FromWorker {
        use v1::from_worker::Message;
        let message = Some(match message {
            FromWorker::Hello(hello) => Message::Hello((*hello).into()),
            FromWorker::Heartbeat(heartbeat) => Message::Heartbeat(heartbeat),
            FromWorker::Answer(answer) => Message::Answer(answer.into()),
            FromWorker::Leaving(leaving) => Message::Leaving(leaving.into()),
        });
        v1::FromWorker { message }
    }
}

impl TryFrom<v1::ToWorker> for ToWorker {
    type Error = MessageError;

    fn try_from(message: v1::ToWorker) -> Result<ToWorker, MessageError> {
        use v1::to_worker::Message;
        let message = message.message;
        Ok(
            match message.ok_or_else(|| MessageError::missing("message"))? {
                Message::Welcome(welcome) => ToWorker::Welcome(welcome.into()),
                Message::Order(order) => ToWorker::Order(order.try_into()?),
                Message::Released(v1::Released {}) => ToWorker::Released,
            },
        )
    }
}

impl From<ToWorker> for v1::ToWorker {
    fn from(message: ToWorker) -> v1::ToWorker {
        use v1::to_worker::Message;
        let message = Some(match message {
            ToWorker::Welcome(welcome) => Message::Welcome(welcome.into()),
            ToWorker::Order(order) => Message::Order(order.into()),
            ToWorker::Released => Message::Released(v1::Released {}),
        });
        v1::ToWorker { message }
    }
}

impl From<v1::Hello> for Hello {
    fn from(hello: v1::Hello) -> Hello {
        Hello {
            name: hello.name,
            address: hello.address,
            threads: hello.threads,
            memory_bytes: hello.memory_bytes,
            disk_free_bytes: hello.disk_free_bytes,
            disk_bytes: hello.disk_bytes,
            version: hello.version,
            machine: hello.machine.map(read_machine).unwrap_or_default(),
            started_ms: hello.started_ms,
            search: cut(&hello.search, MAX_TEXT),
            lease: cut(&hello.lease, MAX_TEXT),
        }
    }
}

impl From<Hello> for v1::Hello {
    fn from(hello: Hello) -> v1::Hello {
        v1::Hello {
            name: hello.name,
            address: hello.address,
            threads: hello.threads,
            memory_bytes: hello.memory_bytes,
            disk_free_bytes: hello.disk_free_bytes,
            disk_bytes: hello.disk_bytes,
            version: hello.version,
            machine: Some(hello.machine.into()),
            started_ms: hello.started_ms,
            search: hello.search,
            lease: hello.lease,
        }
    }
}

/// Converts a machine. Truncates texts to [`MAX_TEXT`] characters and drops a price above [`MAX_PRICE`].
fn read_machine(machine: v1::Machine) -> Machine {
    Machine {
        kind: cut(&machine.kind, MAX_TEXT),
        market: cut(&machine.market, MAX_TEXT),
        region: cut(&machine.region, MAX_TEXT),
        zone: cut(&machine.zone, MAX_TEXT),
        id: cut(&machine.id, MAX_TEXT),
        price_per_hour: machine
            .micros_per_hour
            .map(Micros)
            .filter(|price| *price <= MAX_PRICE),
        price_from: cut(&machine.price_from, MAX_TEXT),
    }
}

impl From<Machine> for v1::Machine {
    fn from(machine: Machine) -> v1::Machine {
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
}

impl From<v1::Leaving> for Leaving {
    fn from(leaving: v1::Leaving) -> Leaving {
        Leaving {
            reason: cut(&leaving.reason, MAX_REASON),
        }
    }
}

impl From<Leaving> for v1::Leaving {
    fn from(leaving: Leaving) -> v1::Leaving {
        v1::Leaving {
            reason: leaving.reason,
        }
    }
}

impl From<v1::Welcome> for Welcome {
    fn from(welcome: v1::Welcome) -> Welcome {
        Welcome {
            heartbeat: Duration::from_millis(welcome.heartbeat_ms),
            lost_after: Duration::from_millis(welcome.lost_after_ms),
        }
    }
}

impl From<Welcome> for v1::Welcome {
    fn from(welcome: Welcome) -> v1::Welcome {
        v1::Welcome {
            heartbeat_ms: millis(welcome.heartbeat),
            lost_after_ms: millis(welcome.lost_after),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
