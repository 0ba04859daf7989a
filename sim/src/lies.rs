//! False messages of a worker. Most of them are of the kinds that a check must notice (`docs/security.md`, "What is checked
//! where"), so every result stays that of the single-threaded search. [`result`] and [`children`] are lies that no check
//! notices at once: then the run must still end with a valid game.

use crate::rng::Rng;
use bytes::Bytes;
use hatebeam_cost::MAX_PRICE;
use hatebeam_game::{Geometry, Piece, Well};
use hatebeam_proto::batch;
use hatebeam_proto::messages::{
    AnswerKind, Batch, ChangedWell, Expanded, Failed, FailureKind, GameNodes, Heartbeat, Hello,
    PeerRequest, PeerResponse, ShardFloor,
};
use hatebeam_runs::{FrontierSummary, Table};
use hatebeam_search::NodeWell;

/// Increment of a score or a digest.
const MORE: i32 = 1 << 20;

/// Claims more of everything than a machine can have.
pub(crate) fn hello(hello: &mut Hello) {
    hello.threads = u32::MAX;
    hello.memory_bytes = u64::MAX;
    hello.disk_free_bytes = u64::MAX;
    hello.disk_bytes = 0;
    hello.machine.price_per_hour = Some(MAX_PRICE);
}

/// Replaces counters and sizes by the greatest numbers.
pub(crate) fn heartbeat(rng: &Rng, beat: &mut Heartbeat) {
    match rng.range(0..=3) {
        0 => (beat.expanded, beat.parents) = (u64::MAX, 0),
        1 => (beat.epoch, beat.depth) = (u64::MAX, u32::MAX),
        2 => (beat.store_writes, beat.store_reads) = (u64::MAX, u64::MAX),
        _ => (beat.rss_bytes, beat.uploading_bytes) = (u64::MAX, u64::MAX),
    }
}

/// Replaces an answer by another one, or changes it. `others` are the names of the other workers. Returns the key of the
/// object whose tables the answer describes wrongly in a way that only their next reader can notice.
pub(crate) fn answer(rng: &Rng, kind: &mut AnswerKind, others: &[String]) -> Option<String> {
    match rng.range(0..=7) {
        0 => *kind = AnswerKind::Failed(failure(rng, others)),
        // This is an answer to another order, unless the order was to halt.
        1 => *kind = AnswerKind::Halted,
        _ => return change(rng, kind),
    }
    None
}

fn failure(rng: &Rng, others: &[String]) -> Failed {
    let some = || rng.pick(others).cloned().into_iter().collect();
    let kind = match rng.range(0..=7) {
        0 => FailureKind::BadOrder,
        1 => FailureKind::Damaged { depth: None },
        2 => FailureKind::Damaged {
            depth: Some(rng.range(0..=15) as u32),
        },
        3 => FailureKind::PeersUnreachable { peers: some() },
        4 => FailureKind::WrongChildren { peers: some() },
        5 => FailureKind::Superseded,
        6 => FailureKind::Contradiction {
            depth: rng.range(0..=15) as u32,
            well: "33".to_owned(),
        },
        _ => FailureKind::Worker,
    };
    Failed {
        reason: "a lie".to_owned(),
        kind,
    }
}

fn change(rng: &Rng, kind: &mut AnswerKind) -> Option<String> {
    match kind {
        AnswerKind::Prepared(prepared) => {
            prepared.wells = rng.one_of([prepared.wells + 1, u64::MAX, prepared.wells]);
            prepared.fetched = u32::MAX;
        }
        AnswerKind::Expanded(expanded) => {
            expanded.busy_micros = u64::MAX;
            (expanded.sent, expanded.sent_bytes) = (u64::MAX, u64::MAX);
            let twice = expanded.changed.first().copied();
            expanded.changed.extend(twice);
        }
        AnswerKind::Counted(histograms) => drop(histograms.pop()),
        AnswerKind::CutVerdict(verdict) => verdict.dropped = true,
        AnswerKind::Rescored(rescored) => rescored.busy_micros = u64::MAX,
        AnswerKind::Selected(part) => summary(rng, part),
        AnswerKind::Committed(tables) => return change_tables(rng, tables),
        AnswerKind::GameNodes(game) => game_nodes(rng, game),
        AnswerKind::Halted | AnswerKind::Failed(_) => {}
    }
    None
}

/// Alters the summary of a part of the frontier. The scores are not altered: only the wells themselves show them.
fn summary(rng: &Rng, part: &mut FrontierSummary) {
    match rng.range(0..=4) {
        0 => part.count += 1,
        1 => part.count = u64::MAX,
        2 => part.digest.0 ^= 1,
        3 => part.best = None,
        _ => {
            if let Some(best) = &mut part.best {
                best.lines ^= 1;
            }
        }
    }
}

fn change_tables(rng: &Rng, tables: &mut Vec<Table>) -> Option<String> {
    let last = tables.len().checked_sub(1)?;
    let at = rng.range(0..=last as u64) as usize;
    let table = &mut tables[at];
    match rng.range(0..=8) {
        0 => drop(tables.remove(at)),
        1 => {
            let twice = table.clone();
            tables.push(twice);
        }
        2 => table.shard = u32::MAX,
        3 => table.key = "manifest.json".to_owned(),
        4 => table.bytes = u64::MAX,
        5 => table.count += 1,
        6 => table.digest = "not a digest".to_owned(),
        7 => {
            table.checksum = "0123456789abcdef".to_owned();
            return Some(table.key.clone());
        }
        _ => {
            table.bytes -= 1;
            return Some(table.key.clone());
        }
    }
    None
}

/// Alters one of the nodes of a game, or removes it.
pub(crate) fn game_nodes(rng: &Rng, game: &mut GameNodes) {
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

/// Alters a request to another worker.
pub(crate) fn request(rng: &Rng, request: &mut PeerRequest, geometry: Option<Geometry>) {
    match request {
        PeerRequest::Header(header) => match rng.range(0..=2) {
            0 => header.secret.0[0] ^= 1,
            1 => header.run.push('x'),
            _ => header.from.push('x'),
        },
        PeerRequest::Frontier(part) => match rng.range(0..=2) {
            0 => drop((part.wells.pop(), part.parents.pop())),
            1 => part.last = !part.last,
            _ => part.shard = u32::MAX,
        },
        PeerRequest::Batch(batch) => {
            if let Some(geometry) = geometry {
                change_batch(rng, geometry, batch);
            }
        }
    }
}

fn change_batch(rng: &Rng, geometry: Geometry, batch: &mut Batch) {
    let mut nodes = Vec::new();
    let unpacked = batch::unpack(geometry, &batch.children, &mut nodes);
    let best = nodes.iter_mut().max_by_key(|node| node.score);
    let (Ok(()), Some(best)) = (unpacked, best) else {
        return;
    };
    match rng.range(0..=4) {
        // The child with the highest score is always checked.
        0 => best.score = best.score.saturating_add(MORE),
        1 => {
            let lines = best.lines + 1;
            nodes.iter_mut().for_each(|node| node.lines = lines);
        }
        2 => {
            batch.children = Bytes::from_static(b"not children");
            return;
        }
        3 => {
            batch.origins.pop();
            return;
        }
        _ => {
            // Both checked children have a wrong origin if all have.
            for origin in &mut batch.origins {
                origin.parent = u32::MAX;
            }
            return;
        }
    }
    batch.children = batch::pack(geometry, &nodes, false).into();
}

/// Alters a response to another worker. Its floors are for shards that the liar does not own.
pub(crate) fn response(rng: &Rng, response: &mut PeerResponse) {
    match &mut response.received {
        Some(received) => *received += 1,
        None => {
            let shards = response.floors.iter().map(|floor| floor.shard);
            let shards: Vec<u32> = shards.collect();
            let shard = rng.range(0..=9) as u32;
            if !shards.contains(&shard) {
                let floor = u64::MAX;
                response.floors.push(ShardFloor { shard, floor });
            }
        }
    }
}

/// Changes a result in a way that no check notices at once.
pub(crate) fn result(rng: &Rng, kind: &mut AnswerKind, geometry: Option<Geometry>) {
    match kind {
        AnswerKind::Expanded(Expanded { changed, .. }) => change_pieces(rng, changed),
        AnswerKind::Counted(histograms) => {
            let counts = histograms.iter_mut().flat_map(|one| &mut one.counts);
            counts.for_each(|one| one.count += rng.range(0..=1));
        }
        AnswerKind::CutVerdict(verdict) => drop(verdict.tied.pop()),
        AnswerKind::Selected(part) => match (rng.range(0..=1), &mut part.best, geometry) {
            (0, Some(best), Some(geometry)) => best.well = mirrored(geometry, best.well),
            _ => (part.best_eval, part.worst_eval) = (i32::MAX, i32::MIN),
        },
        _ => {}
    }
}

/// Removes a changed piece, replaces it, or adds one in another well.
fn change_pieces(rng: &Rng, changed: &mut Vec<ChangedWell>) {
    let Some(first) = changed.first_mut() else {
        return;
    };
    match rng.range(0..=2) {
        0 => drop(changed.pop()),
        1 => first.piece = Piece::O,
        _ => {
            let mut other = *first;
            other.well.0[0] ^= 1;
            changed.push(other);
        }
    }
}

/// Replaces a random child by its mirror image. It keeps its score and has as many cells.
pub(crate) fn children(rng: &Rng, request: &mut PeerRequest, geometry: Option<Geometry>) {
    let (PeerRequest::Batch(batch), Some(geometry)) = (request, geometry) else {
        return;
    };
    let mut nodes = Vec::new();
    let unpacked = batch::unpack(geometry, &batch.children, &mut nodes);
    let last = nodes.len().saturating_sub(1) as u64;
    if let (Ok(()), Some(child)) = (unpacked, nodes.get_mut(rng.range(0..=last) as usize)) {
        child.well = mirrored(geometry, child.well);
        batch.children = batch::pack(geometry, &nodes, false).into();
    }
}

/// Returns the mirror image of a well, or the well itself if it is invalid.
fn mirrored(geometry: Geometry, well: NodeWell) -> NodeWell {
    let Ok(unpacked) = well.unpack(geometry) else {
        return well;
    };
    let width = geometry.width() as u32;
    let rows = unpacked
        .rows()
        .map(|row| row.reverse_bits() >> (u16::BITS - width));
    NodeWell::pack(geometry, &Well::from_rows(rows))
}
