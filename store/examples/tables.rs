//! Measures the size of a well in a table (a RocksDB file) and the time to write a well, with various
//! RocksDB settings. The first measurement uses the settings of the store.
//!
//! ```text
//! cargo run --release -p hatebeam-store --example tables [WELLS]
//! ```
//!
//! The table contains the wells that a beam search of width WELLS (default: 200,000) keeps after 40
//! pieces.

use hatebeam_game::{Emulator, Geometry, Rules, Well};
use hatebeam_search::{
    EvaluatorKind, EvaluatorSpec, Frontier, Node, Quiescence, ShardLayout, Step,
};
use rocksdb::{BlockBasedOptions, DBCompressionType, Options, SstFileWriter};
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

const DEPTH: u32 = 40;

fn frontier(width: usize) -> Result<Vec<Node>, Box<dyn Error>> {
    let emulator = Emulator::new(Geometry::STANDARD, Rules::default());
    let spec = EvaluatorSpec::new(EvaluatorKind::Patterns, Quiescence::Off);
    let step = Step::new(&emulator, spec, ShardLayout::local(width), 2)?;
    let root = Node::first(Geometry::STANDARD, &Well::EMPTY, 0);
    let mut frontier = Frontier::new(0, [root], ShardLayout::local(width));
    while frontier.depth < DEPTH {
        let next = step.run(&frontier, &AtomicBool::new(false), &AtomicU64::new(0));
        frontier = next.map_err(|_| "the step was cancelled")?.0;
    }
    let mut nodes: Vec<Node> = frontier.nodes().copied().collect();
    nodes.sort_by_key(|node| node.well);
    Ok(nodes)
}

/// The fields to write. Omitting a field shows how much space it takes. The hint is one byte of the hash
/// of a well's parent.
#[derive(Clone, Copy, PartialEq)]
enum Entry {
    Whole,
    NoScore,
    NoHint,
}

/// A filter and its number of bits per well.
#[derive(Clone, Copy)]
enum Filter {
    Ribbon(f64),
    Bloom(f64),
}

struct Setting {
    name: &'static str,
    /// The compression level and the dictionary size in bytes. `None` disables compression.
    zstd: Option<(i32, i32)>,
    block_kib: usize,
    restart: i32,
    filter: Option<Filter>,
    entry: Entry,
}

fn measure(nodes: &[Node], setting: &Setting) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let mut table = BlockBasedOptions::default();
    table.set_block_size(setting.block_kib << 10);
    table.set_block_restart_interval(setting.restart);
    match setting.filter {
        Some(Filter::Ribbon(bits)) => table.set_ribbon_filter(bits),
        Some(Filter::Bloom(bits)) => table.set_bloom_filter(bits, false),
        None => {}
    }
    let mut options = Options::default();
    options.set_block_based_table_factory(&table);
    match setting.zstd {
        None => options.set_compression_type(DBCompressionType::None),
        Some((level, dictionary)) => {
            options.set_compression_type(DBCompressionType::Zstd);
            options.set_compression_options(-14, level, 0, dictionary);
            options.set_zstd_max_train_bytes(64 * dictionary);
        }
    }
    let path = folder.path().join("a.sst");
    let begun = Instant::now();
    let mut writer = SstFileWriter::create(&options);
    writer.open(&path)?;
    for node in nodes {
        let mut key = [0; 24];
        key[..4].copy_from_slice(&DEPTH.to_be_bytes());
        key[4..].copy_from_slice(&node.well.0);
        let mut value = Vec::with_capacity(7);
        if setting.entry != Entry::NoScore {
            value.extend(node.score.to_be_bytes());
        }
        value.extend(node.lines.to_be_bytes());
        if setting.entry != Entry::NoHint {
            value.push(node.hint);
        }
        writer.put(key, value)?;
    }
    writer.finish()?;
    println!(
        "{:<34} {:6.2} bytes/well, {:5.2} us/well",
        setting.name,
        writer.file_size() as f64 / nodes.len() as f64,
        begun.elapsed().as_secs_f64() * 1e6 / nodes.len() as f64,
    );
    Ok(())
}

fn settings() -> Vec<Setting> {
    let own = || Setting {
        name: "store settings",
        zstd: Some((1, 0)),
        block_kib: 32,
        restart: 16,
        filter: Some(Filter::Ribbon(10.0)),
        entry: Entry::Whole,
    };
    vec![
        own(),
        Setting {
            name: "no compression",
            zstd: None,
            ..own()
        },
        Setting {
            name: "zstd level 3",
            zstd: Some((3, 0)),
            ..own()
        },
        Setting {
            name: "zstd level 9",
            zstd: Some((9, 0)),
            ..own()
        },
        Setting {
            name: "zstd level 1, dictionary",
            zstd: Some((1, 64 << 10)),
            ..own()
        },
        Setting {
            name: "blocks of 8 KiB",
            block_kib: 8,
            ..own()
        },
        Setting {
            name: "blocks of 128 KiB",
            block_kib: 128,
            ..own()
        },
        Setting {
            name: "restart interval of 4",
            restart: 4,
            ..own()
        },
        Setting {
            name: "restart interval of 64",
            restart: 64,
            ..own()
        },
        Setting {
            name: "ribbon filter of 6 bits",
            filter: Some(Filter::Ribbon(6.0)),
            ..own()
        },
        Setting {
            name: "bloom filter of 10 bits",
            filter: Some(Filter::Bloom(10.0)),
            ..own()
        },
        Setting {
            name: "no filter",
            filter: None,
            ..own()
        },
        Setting {
            name: "without scores",
            entry: Entry::NoScore,
            ..own()
        },
        Setting {
            name: "without hints",
            entry: Entry::NoHint,
            ..own()
        },
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    let width = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 200_000,
    };
    let nodes = frontier(width)?;
    println!("{} wells at depth {DEPTH}", nodes.len());
    for setting in settings() {
        measure(&nodes, &setting)?;
    }
    Ok(())
}
