//! For each position in a file, computes the best move and the chance of a perfect clear after every first move, and
//! prints how long this takes. Times are processor times with one thread on Linux, and elapsed times otherwise.
//!
//! Arguments, with defaults in parentheses: a JSON file in the format of `pc_adaptive.json`, the number of threads
//! (1), and a file made by `hatebeam pc table` (none). If the environment variable `PC_BEST` is set, computes only
//! the best move.

#![allow(clippy::unwrap_used)]

use hatebeam_agents::json::pc_position;
use hatebeam_agents::pc::{BoardTable, PcFinder, best_move, chances};
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks};
use std::time::{Duration, Instant};

/// Prints the median, the 95th percentile and the maximum.
fn print_times(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |percent| times[(times.len() - 1) * percent / 100];
    println!(
        "{name}: median {:.1?}, p95 {:.1?}, max {:.1?}",
        at(50),
        at(95),
        at(100)
    );
}

/// Returns the time since `start`. With one thread, this is the calling thread's processor time, if it is available,
/// because this thread does all the work.
fn elapsed(threads: usize, start: &(Instant, Option<u64>)) -> Duration {
    match (threads, start.1, processor_nanos()) {
        (1, Some(before), Some(now)) => Duration::from_nanos(now - before),
        _ => start.0.elapsed(),
    }
}

fn processor_nanos() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let threads = std::env::args()
        .nth(2)
        .map_or(1, |text| text.parse().unwrap());
    let now = || (Instant::now(), processor_nanos());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let finder = PcFinder::new(&KickTable::built_in(Kicks::Srs), DropMode::Soft);
    let finder = match std::env::args().nth(3) {
        Some(path) => {
            let start = now();
            let table = BoardTable::read(std::fs::File::open(path).unwrap()).unwrap();
            let finder = finder.with_table(table);
            println!("table read in {:.2?}", elapsed(1, &start));
            finder
        }
        None => finder,
    };
    let mut times: [Vec<Duration>; 2] = Default::default();
    for case in json["cases"].as_array().unwrap() {
        let position = pc_position(&case.to_string()).unwrap();
        let start = now();
        let best = best_move(&position, &finder, threads, |_| ())
            .unwrap()
            .unwrap();
        times[0].push(elapsed(threads, &start));
        if std::env::var_os("PC_BEST").is_some() {
            println!("{} {:.1?}", case["seen"], times[0].last().unwrap());
            continue;
        }
        let start = now();
        let moves = chances(&position, &finder, threads).unwrap();
        times[1].push(elapsed(threads, &start));
        assert_eq!(best.adaptive, moves[0].adaptive);
        println!(
            "{} {}: {}/{}, expected {}/{}, best move {:.1?}, {} moves {:.1?}",
            case["seen"],
            case["left_in_bag"],
            best.adaptive.count,
            best.adaptive.all,
            case["success"],
            case["all"],
            times[0].last().unwrap(),
            moves.len(),
            times[1].last().unwrap(),
        );
    }
    print_times("best move", &mut times[0]);
    if !times[1].is_empty() {
        print_times("all moves", &mut times[1]);
    }
}
