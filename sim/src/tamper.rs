//! Messages that are altered on their way, for faults that no network or store has.

use crate::links::Here;
use crate::network::spawn;
use crate::plan::{Class, Target};
use crate::world::{Sabotage, World};
use hatebeam_proto::messages::{AnswerKind, FromWorker, OrderKind, PeerRequest, ToWorker};
use hatebeam_search::EvaluatorKind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Depth from which on memory does not suffice.
const TOO_DEEP: u32 = 5;
/// How often the first attempt at a depth finds its tables too small, per mille and worker.
const TOO_SMALL: u64 = 150;

/// The depth and the attempt that a worker's process was last told to expand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt(Arc<Mutex<(u32, u32)>>);

impl Attempt {
    fn get(&self) -> (u32, u32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, depth: u32, number: u32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (depth, number);
    }
}

fn has(world: &World, class: Class) -> bool {
    world.plan.classes.contains(&class)
}

/// Alters what the coordinator tells a worker.
pub(crate) fn order(here: &Here, mut message: ToWorker) -> ToWorker {
    here.log(|| format!("<- {message:?}"));
    let is_first = here.machine.target == Target::Worker(0);
    let ToWorker::Order(order) = &mut message else {
        return message;
    };
    match &mut order.kind {
        OrderKind::Prepare(prepare) if is_first && has(&here.world, Class::VersionSkew) => {
            prepare.spec.evaluator.kind = EvaluatorKind::PlainHoles;
        }
        OrderKind::Expand(expand) => {
            here.attempt.set(expand.depth, expand.attempt);
            let is_too_deep = is_first && expand.depth >= TOO_DEEP;
            if is_too_deep && has(&here.world, Class::OutOfMemory) {
                let machine = Arc::clone(&here.machine);
                // In a moment: what runs now would be dropped while it runs.
                spawn(async move { machine.crash(false, Duration::from_secs(1)) });
            }
        }
        _ => {}
    }
    message
}

/// Alters what a worker tells its coordinator.
pub(crate) fn answer(here: &Here, mut message: FromWorker) -> FromWorker {
    if let FromWorker::Answer(answer) = &mut message
        && let AnswerKind::CutVerdict(verdict) = &mut answer.kind
        && has(&here.world, Class::SmallTables)
        && here.attempt.get().1 <= 1
    {
        verdict.dropped |= here.process.rng().chance(TOO_SMALL);
    }
    here.log(|| format!("-> {message:?}"));
    message
}

/// Alters what a worker receives from another one.
pub(crate) fn request(world: &World, attempt: &Attempt, mut request: PeerRequest) -> PeerRequest {
    if world.options.sabotage == Some(Sabotage::ForgottenAttempts)
        && let PeerRequest::Header(header) = &mut request
    {
        let (depth, number) = attempt.get();
        if header.depth == depth {
            header.attempt = number;
        }
    }
    request
}
