//! Alteration of messages in transit, for faults that neither the network nor the store can cause.

use crate::links::Here;
use crate::network::spawn;
use crate::options::Sabotage;
use crate::plan::{Class, Target};
use crate::rng::Rng;
use crate::serving::Attempt;
use crate::world::World;
use hatebeam_proto::messages::{
    AnswerKind, FromWorker, GameNodes, OrderKind, PeerRequest, ToWorker,
};
use hatebeam_search::EvaluatorKind;
use std::sync::Arc;
use std::time::Duration;

/// First depth at which worker 0 crashes if the seed uses [`Class::OutOfMemory`].
const TOO_DEEP: u32 = 5;
/// Probability, per mille, that a worker's first attempt at a depth reports dropped candidates if the seed uses
/// [`Class::SmallTables`].
const TOO_SMALL: u64 = 150;

fn has(world: &World, class: Class) -> bool {
    world.plan.classes.contains(&class)
}

/// Alters a message from the coordinator to a worker.
pub(crate) fn order(here: &Here, mut message: ToWorker) -> ToWorker {
    here.log(|| format!("<- {message:?}"));
    let is_first = here.machine.target == Target::Worker(0);
    let ToWorker::Order(order) = &mut message else {
        return message;
    };
    match &mut order.kind {
        OrderKind::Prepare(prepare) if here.is_skewed => {
            prepare.spec.evaluator.kind = EvaluatorKind::PlainHoles;
        }
        OrderKind::Expand(expand) => {
            here.attempt.set(expand.depth, expand.attempt);
            let is_too_deep = is_first && expand.depth >= TOO_DEEP;
            if is_too_deep && has(&here.world, Class::OutOfMemory) {
                let machine = Arc::clone(&here.machine);
                // The crash drops all tasks of the process, including the current one, so a separate task causes it.
                spawn(async move { machine.crash(false, Duration::from_secs(1)) });
            }
        }
        _ => {}
    }
    message
}

/// Alters a message from a worker to its coordinator.
pub(crate) fn answer(here: &Here, mut message: FromWorker) -> FromWorker {
    if let FromWorker::Answer(answer) = &mut message {
        match &mut answer.kind {
            AnswerKind::CutVerdict(verdict)
                if has(&here.world, Class::SmallTables) && here.attempt.get().1 <= 1 =>
            {
                verdict.dropped |= here.process.rng().chance(TOO_SMALL);
            }
            AnswerKind::GameNodes(game) if has(&here.world, Class::WrongGame) => {
                alter(here.process.rng(), game);
            }
            _ => {}
        }
    }
    here.log(|| format!("-> {message:?}"));
    message
}

/// Alters one of the nodes of a game, or removes it.
fn alter(rng: &Rng, game: &mut GameNodes) {
    let Some(last) = game.nodes.len().checked_sub(1) else {
        return;
    };
    let at = rng.range(0..=last as u64) as usize;
    let node = &mut game.nodes[at];
    match rng.range(0..=4) {
        0 => node.lines = node.lines.wrapping_add(1),
        1 => node.well.0[0] ^= 1,
        2 => node.depth = node.depth.wrapping_sub(1),
        3 => game.nodes.clear(),
        _ => {
            game.nodes.remove(at);
        }
    }
}

/// Alters a message from one worker to another.
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
