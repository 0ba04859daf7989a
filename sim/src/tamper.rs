//! Alteration of messages in transit, for faults that neither the network nor the store can cause.

use crate::lies;
use crate::links::Here;
use crate::network::spawn;
use crate::options::Sabotage;
use crate::plan::{Class, Target};
use crate::serving::LastOrders;
use crate::world::World;
use hatebeam_proto::messages::{
    Answer, AnswerKind, FromWorker, Hello, OrderKind, PeerRequest, PeerResponse, ToWorker,
};
use hatebeam_runs::RUNS;
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
    here.orders.note(&order.kind);
    match &mut order.kind {
        OrderKind::Prepare(prepare) if here.is_skewed => {
            prepare.spec.evaluator.kind = EvaluatorKind::PlainHoles;
        }
        OrderKind::Expand(expand) => {
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
                if has(&here.world, Class::SmallTables) && here.orders.get().attempt <= 1 =>
            {
                verdict.dropped |= here.process.rng().chance(TOO_SMALL);
            }
            AnswerKind::GameNodes(game) if has(&here.world, Class::WrongGame) => {
                lies::game_nodes(here.process.rng(), game);
            }
            _ => {}
        }
    }
    if is_false(&here.world, here.machine.target) {
        lie(here, &mut message);
    }
    here.log(|| format!("-> {message:?}"));
    message
}

/// Decides whether the next message of a worker is false.
fn is_false(world: &World, target: Target) -> bool {
    let liar = world.liar(target);
    let is_false = liar.is_some_and(|liar| world.rng.chance(liar.chance));
    if is_false {
        world.checker.note_lie();
    }
    is_false
}

/// Alters the first message of a session if the worker lies.
pub(crate) fn hello(here: &Here, hello: &mut Hello) {
    if is_false(&here.world, here.machine.target) {
        lies::hello(hello);
    }
}

/// Makes a message to the coordinator false.
fn lie(here: &Here, message: &mut FromWorker) {
    let rng = here.process.rng();
    match message {
        FromWorker::Heartbeat(beat) => lies::heartbeat(rng, beat),
        FromWorker::Answer(answer) if has(&here.world, Class::WrongResults) => {
            lies::result(rng, &mut answer.kind, here.orders.get().geometry);
        }
        FromWorker::Answer(Answer { id, .. }) if rng.chance(50) => *id += 1,
        FromWorker::Answer(answer) => {
            let ordered = here.orders.get();
            let workers = here.world.workers.iter();
            let others = workers.filter(|other| other.target != here.machine.target);
            let others: Vec<String> = others.map(|other| other.name.clone()).collect();
            if let Some(key) = lies::answer(rng, &mut answer.kind, &others) {
                let key = format!("{RUNS}/{}/{key}", ordered.run);
                let checker = &here.world.checker;
                checker.delete_table(&ordered.run, ordered.commit, &key);
            }
        }
        FromWorker::Hello(_) | FromWorker::Leaving(_) => {}
    }
}

/// Alters a message to another worker if the sender lies.
pub(crate) fn sent_request(here: &Here, request: &mut PeerRequest) {
    if is_false(&here.world, here.machine.target) {
        let (rng, geometry) = (here.process.rng(), here.orders.get().geometry);
        match has(&here.world, Class::WrongResults) {
            true => lies::children(rng, request, geometry),
            false => lies::request(rng, request, geometry),
        }
    }
}

/// Alters a response to another worker if its sender, the worker `target`, lies.
pub(crate) fn response(world: &World, target: Target, response: &mut PeerResponse) {
    if is_false(world, target) {
        lies::response(&world.rng, response);
    }
}

/// Alters a message from one worker to another on the receiving side.
pub(crate) fn request(world: &World, orders: &LastOrders, mut request: PeerRequest) -> PeerRequest {
    if world.options.sabotage == Some(Sabotage::ForgottenAttempts)
        && let PeerRequest::Header(header) = &mut request
    {
        let ordered = orders.get();
        if header.depth == ordered.depth {
            header.attempt = ordered.attempt;
        }
    }
    request
}
