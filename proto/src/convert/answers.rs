//! Conversions of the workers' answers to orders.

use super::{
    MAX_FAILURE, MAX_REASON, MessageError, cut, pack_pieces, pack_wells, read_table, unpack_pieces,
    unpack_wells,
};
use crate::messages::{
    Answer, AnswerKind, ChangedWell, CutVerdict, DigitCount, Expanded, Failed, FailureKind,
    GameNodes, Histogram, MAX_GAME_NODES,
};
use crate::v1;
use hatebeam_game::Piece;
use hatebeam_runs::{FoundNode, FrontierSummary};
use hatebeam_search::{MAX_SHARDS, Node, NodeWell};

impl TryFrom<v1::Answer> for Answer {
    type Error = MessageError;

    fn try_from(answer: v1::Answer) -> Result<Answer, MessageError> {
        use v1::answer::Kind;
        let kind = match answer
            .kind
            .ok_or_else(|| MessageError::missing("answer.kind"))?
        {
            Kind::Prepared(prepared) => AnswerKind::Prepared(prepared),
            Kind::Expanded(expanded) => AnswerKind::Expanded(expanded.try_into()?),
            Kind::Counted(counted) => {
                let histograms = counted.histograms.into_iter().map(Histogram::try_from);
                AnswerKind::Counted(histograms.collect::<Result<_, _>>()?)
            }
            Kind::CutVerdict(verdict) => AnswerKind::CutVerdict(CutVerdict {
                dropped: verdict.dropped,
                tied: unpack_wells("cut_verdict.tied", &verdict.tied)?,
            }),
            Kind::Rescored(rescored) => AnswerKind::Rescored(rescored),
            Kind::Selected(selected) => AnswerKind::Selected(read_summary(&selected)?),
            Kind::Committed(committed) => {
                AnswerKind::Committed(committed.tables.into_iter().map(read_table).collect())
            }
            Kind::Halted(v1::Halted {}) => AnswerKind::Halted,
            Kind::GameNodes(nodes) => AnswerKind::GameNodes(nodes.try_into()?),
            Kind::Failed(failed) => AnswerKind::Failed(failed.try_into()?),
        };
        Ok(Answer {
            epoch: answer.epoch,
            id: answer.id,
            kind,
        })
    }
}

impl TryFrom<v1::Expanded> for Expanded {
    type Error = MessageError;

    fn try_from(expanded: v1::Expanded) -> Result<Expanded, MessageError> {
        let wells = unpack_wells("expanded.changed_wells", &expanded.changed_wells)?;
        let pieces = unpack_pieces("expanded.changed_pieces", &expanded.changed_pieces)?;
        if wells.len() != pieces.len() {
            return Err(MessageError::new(
                "expanded.changed_pieces",
                "there must be one piece for each well",
            ));
        }
        let changed = wells.into_iter().zip(pieces);
        let changed = changed.map(|(well, piece)| ChangedWell { well, piece });
        Ok(Expanded {
            children: expanded.children,
            sent: expanded.sent,
            sent_bytes: expanded.sent_bytes,
            busy_micros: expanded.busy_micros,
            changed: changed.collect(),
        })
    }
}

impl From<Expanded> for v1::Expanded {
    fn from(expanded: Expanded) -> v1::Expanded {
        let changed = expanded.changed.iter();
        let wells: Vec<NodeWell> = changed.clone().map(|changed| changed.well).collect();
        v1::Expanded {
            children: expanded.children,
            sent: expanded.sent,
            sent_bytes: expanded.sent_bytes,
            busy_micros: expanded.busy_micros,
            changed_wells: pack_wells(&wells),
            changed_pieces: pack_pieces(changed.map(|changed| changed.piece)),
        }
    }
}

impl From<Answer> for v1::Answer {
    fn from(answer: Answer) -> v1::Answer {
        use v1::answer::Kind;
        let kind = match answer.kind {
            AnswerKind::Prepared(prepared) => Kind::Prepared(prepared),
            AnswerKind::Expanded(expanded) => Kind::Expanded(expanded.into()),
            AnswerKind::Counted(histograms) => Kind::Counted(v1::Counted {
                histograms: histograms.into_iter().map(v1::Histogram::from).collect(),
            }),
            AnswerKind::CutVerdict(verdict) => Kind::CutVerdict(v1::CutVerdict {
                dropped: verdict.dropped,
                tied: pack_wells(&verdict.tied),
            }),
            AnswerKind::Rescored(rescored) => Kind::Rescored(rescored),
            AnswerKind::Selected(summary) => Kind::Selected(summary.into()),
            AnswerKind::Committed(tables) => Kind::Committed(v1::Committed {
                tables: tables.into_iter().map(v1::Table::from).collect(),
            }),
            AnswerKind::Halted => Kind::Halted(v1::Halted {}),
            AnswerKind::GameNodes(nodes) => Kind::GameNodes(nodes.into()),
            AnswerKind::Failed(failed) => Kind::Failed(failed.into()),
        };
        v1::Answer {
            epoch: answer.epoch,
            id: answer.id,
            kind: Some(kind),
        }
    }
}

impl TryFrom<v1::Histogram> for Histogram {
    type Error = MessageError;

    fn try_from(histogram: v1::Histogram) -> Result<Histogram, MessageError> {
        let bad = |reason: &str| MessageError::new("histogram.digits", reason);
        let v1::Histogram { digits, counts } = histogram;
        if digits.len() != counts.len() {
            return Err(bad("there must be one digit for each count"));
        }
        if !digits.is_sorted_by(|before, after| before < after) {
            return Err(bad("digits must be in ascending order"));
        }
        let count = |(digit, count)| {
            let digit = u16::try_from(digit).map_err(|_| bad("out of range"))?;
            Ok(DigitCount { digit, count })
        };
        let counts = digits.into_iter().zip(counts).map(count);
        Ok(Histogram {
            counts: counts.collect::<Result<_, _>>()?,
        })
    }
}

impl From<Histogram> for v1::Histogram {
    fn from(histogram: Histogram) -> v1::Histogram {
        let counts = histogram.counts.iter();
        let (digits, counts) = counts
            .map(|count| (u32::from(count.digit), count.count))
            .unzip();
        v1::Histogram { digits, counts }
    }
}

fn read_summary(selected: &v1::Selected) -> Result<FrontierSummary, MessageError> {
    let mut best = None;
    if !selected.best_well.is_empty() {
        let well = selected.best_well.as_slice().try_into();
        best = Some(Node {
            score: selected.best_well_eval,
            well: NodeWell(well.map_err(|error| MessageError::new("selected.best_well", error))?),
            lines: u16::try_from(selected.best_lines)
                .map_err(|error| MessageError::new("selected.best_lines", error))?,
            hint: u8::try_from(selected.best_well_hint)
                .map_err(|error| MessageError::new("selected.best_well_hint", error))?,
        });
    }
    Ok(FrontierSummary {
        count: selected.count,
        digest: selected
            .digest
            .parse()
            .map_err(|error| MessageError::new("selected.digest", error))?,
        best_eval: selected.best_eval,
        worst_eval: selected.worst_eval,
        best,
    })
}

impl From<FrontierSummary> for v1::Selected {
    fn from(summary: FrontierSummary) -> v1::Selected {
        let best = summary.best;
        v1::Selected {
            count: summary.count,
            digest: summary.digest.to_string(),
            best_eval: summary.best_eval,
            worst_eval: summary.worst_eval,
            best_lines: best.map_or(0, |node| u32::from(node.lines)),
            best_well_eval: best.map_or(0, |node| node.score),
            best_well_hint: best.map_or(0, |node| u32::from(node.hint)),
            best_well: best.map_or_else(Vec::new, |node| node.well.0.to_vec()),
        }
    }
}

impl TryFrom<v1::GameNodes> for GameNodes {
    type Error = MessageError;

    fn try_from(game: v1::GameNodes) -> Result<GameNodes, MessageError> {
        if game.nodes.len() > MAX_GAME_NODES {
            return Err(MessageError::new("game_nodes.nodes", "too many"));
        }
        Ok(GameNodes {
            nodes: game
                .nodes
                .iter()
                .map(read_found)
                .collect::<Result<_, _>>()?,
            tables: game.tables,
            bytes: game.bytes,
        })
    }
}

fn read_found(found: &v1::FoundNode) -> Result<FoundNode, MessageError> {
    let well = found.well.as_slice().try_into();
    Ok(FoundNode {
        depth: found.depth,
        well: NodeWell(well.map_err(|error| MessageError::new("found_node.well", error))?),
        lines: u16::try_from(found.lines)
            .map_err(|error| MessageError::new("found_node.lines", error))?,
        hint: u8::try_from(found.hint)
            .map_err(|error| MessageError::new("found_node.hint", error))?,
        changed: match found.changed.as_str() {
            "" => None,
            changed => Some(read_piece("found_node.changed", changed)?),
        },
    })
}

/// Reads the letter of a piece in the field `field`.
fn read_piece(field: &'static str, text: &str) -> Result<Piece, MessageError> {
    let mut letters = text.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let piece = letter.and_then(Piece::from_letter);
    piece.ok_or_else(|| MessageError::new(field, "not the letter of a piece"))
}

impl From<GameNodes> for v1::GameNodes {
    fn from(game: GameNodes) -> v1::GameNodes {
        let node = |found: FoundNode| v1::FoundNode {
            depth: found.depth,
            well: found.well.0.to_vec(),
            lines: u32::from(found.lines),
            hint: u32::from(found.hint),
            changed: found
                .changed
                .map_or_else(String::new, |piece| piece.letter().into()),
        };
        v1::GameNodes {
            nodes: game.nodes.into_iter().map(node).collect(),
            tables: game.tables,
            bytes: game.bytes,
        }
    }
}

/// Returns the names of at most [`MAX_SHARDS`] peers. An epoch has no more workers.
fn first_peers(mut peers: Vec<String>) -> Vec<String> {
    peers.truncate(MAX_SHARDS);
    peers
}

impl TryFrom<v1::Failed> for Failed {
    type Error = MessageError;

    fn try_from(failed: v1::Failed) -> Result<Failed, MessageError> {
        let kind = match failed.kind() {
            v1::FailureKind::Unspecified => return Err(MessageError::missing("failed.kind")),
            v1::FailureKind::BadOrder => FailureKind::BadOrder,
            v1::FailureKind::Damaged => FailureKind::Damaged {
                depth: failed.depth,
            },
            v1::FailureKind::Contradiction => FailureKind::Contradiction {
                depth: failed
                    .depth
                    .ok_or_else(|| MessageError::missing("failed.depth"))?,
                well: cut(&failed.well, MAX_REASON),
            },
            v1::FailureKind::Unavailable => FailureKind::Unavailable,
            v1::FailureKind::PeerUnreachable => FailureKind::PeersUnreachable {
                peers: first_peers(failed.peers),
            },
            v1::FailureKind::WrongChildren => FailureKind::WrongChildren {
                peers: first_peers(failed.peers),
            },
            v1::FailureKind::Superseded => FailureKind::Superseded,
            v1::FailureKind::Worker => FailureKind::Worker,
        };
        Ok(Failed {
            reason: cut(&failed.reason, MAX_FAILURE),
            kind,
        })
    }
}

impl From<Failed> for v1::Failed {
    fn from(failed: Failed) -> v1::Failed {
        let (mut peers, mut at, mut without_parent) = (Vec::new(), None, String::new());
        let kind = match failed.kind {
            FailureKind::BadOrder => v1::FailureKind::BadOrder,
            FailureKind::Damaged { depth } => {
                at = depth;
                v1::FailureKind::Damaged
            }
            FailureKind::Contradiction { depth, well } => {
                (at, without_parent) = (Some(depth), well);
                v1::FailureKind::Contradiction
            }
            FailureKind::Unavailable => v1::FailureKind::Unavailable,
            FailureKind::PeersUnreachable { peers: unreachable } => {
                peers = unreachable;
                v1::FailureKind::PeerUnreachable
            }
            FailureKind::WrongChildren { peers: senders } => {
                peers = senders;
                v1::FailureKind::WrongChildren
            }
            FailureKind::Superseded => v1::FailureKind::Superseded,
            FailureKind::Worker => v1::FailureKind::Worker,
        };
        v1::Failed {
            reason: cut(&failed.reason, MAX_FAILURE),
            peers,
            kind: kind.into(),
            depth: at,
            well: without_parent,
        }
    }
}
