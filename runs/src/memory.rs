//! Tables in memory, for tests and simulations.

use crate::archive::ArchiveTables;
use bytes::Bytes;
use hatebeam_search::{Node, NodeWell, WELL_BYTES};
use hatebeam_store::StoreError;
use std::collections::BTreeMap;

/// Size of an encoded node, in bytes.
const NODE: usize = 7 + WELL_BYTES;

/// Encodes nodes (wells with their scores) as a table for [`MemoryArchive`].
pub fn encode_nodes(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(nodes.len() * NODE);
    for node in nodes {
        bytes.extend(node.score.to_le_bytes());
        bytes.extend(node.lines.to_le_bytes());
        bytes.push(node.hint);
        bytes.extend(node.well.0);
    }
    bytes
}

/// Decodes a table that [`encode_nodes`] created. `depth` is used only in the error.
///
/// # Errors
/// Returns [`StoreError::DamagedDepth`] if the length is invalid.
pub fn decode_nodes(depth: u32, bytes: &[u8]) -> Result<Vec<Node>, StoreError> {
    let (nodes, rest) = bytes.as_chunks::<NODE>();
    if !rest.is_empty() {
        return Err(StoreError::DamagedDepth {
            depth,
            file: None,
            reason: "the table is truncated".to_owned(),
        });
    }
    Ok(nodes.iter().map(decode).collect())
}

fn decode(bytes: &[u8; NODE]) -> Node {
    let (number, rest) = bytes.split_at(7);
    let [a, b, c, d, e, f, hint] = std::array::from_fn(|at| number[at]);
    Node {
        score: i32::from_le_bytes([a, b, c, d]),
        lines: u16::from_le_bytes([e, f]),
        hint,
        well: NodeWell(std::array::from_fn(|at| rest[at])),
    }
}

/// Tables in memory, for tests and simulations.
#[derive(Debug, Default)]
pub struct MemoryArchive(BTreeMap<u32, BTreeMap<NodeWell, Node>>);

impl ArchiveTables for MemoryArchive {
    fn add(&mut self, depth: u32, _: u32, table: Bytes) -> Result<(), StoreError> {
        let nodes = decode_nodes(depth, &table)?;
        let of_depth = self.0.entry(depth).or_default();
        of_depth.extend(nodes.into_iter().map(|node| (node.well, node)));
        Ok(())
    }

    fn multi_get(&self, depth: u32, wells: &[NodeWell]) -> Result<Vec<Option<Node>>, StoreError> {
        let nodes = self.0.get(&depth);
        let find = |well| nodes.and_then(|nodes| nodes.get(well)).copied();
        Ok(wells.iter().map(find).collect())
    }

    fn visit(&self, depth: u32, visit: &mut dyn FnMut(&Node)) -> Result<(), StoreError> {
        let nodes = self.0.get(&depth);
        nodes.into_iter().flat_map(BTreeMap::values).for_each(visit);
        Ok(())
    }
}
