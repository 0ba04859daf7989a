//! Runs the fuzz target of this crate's parsers a limited number of times on valid, damaged and random inputs. For longer
//! runs, see `fuzz/README.md`.

#[path = "../../fuzz/src/agents.rs"]
mod agents;
#[path = "../../fuzz/src/mutate.rs"]
mod mutate;

use hatebeam_agents::drop::AGENTS;
use hatebeam_agents::nes::{SEARCHES, built_in_patterns, write_patterns};
use hatebeam_agents::pc::BoardTable;
use hatebeam_agents::{DropPlayer, WeightsFile};
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks};
use mutate::seed;

#[test]
fn table_reader_handles_any_input() {
    let kicks = KickTable::built_in(Kicks::Srs);
    let tables = [1, 2].map(|lines| {
        let table = BoardTable::build(lines, "srs", &kicks, DropMode::Soft, 1, |_| ());
        table.unwrap().bytes()
    });
    let without_first_line = |table: &Vec<u8>| {
        let end = table.iter().position(|&byte| byte == b'\n').unwrap();
        seed(1, &table[end + 1..])
    };
    let mut seeds: Vec<_> = tables.iter().map(without_first_line).collect();
    seeds.extend(tables.iter().map(|table| seed(0, table)));
    mutate::run(agents::file, &seeds, 10_000);
}

#[test]
fn weights_readers_handle_any_input() {
    let drop = AGENTS.iter().map(|agent| {
        let player = DropPlayer::find(agent.name).unwrap();
        seed(2, player.file().text())
    });
    let nes = SEARCHES.iter().map(|search| {
        let names = search.weight_names.iter().map(|&name| name.to_owned());
        let weights = WeightsFile {
            player: search.name.to_owned(),
            weights: names.zip(search.weights.iter().copied()).collect(),
        };
        seed(2, weights.text())
    });
    let seeds: Vec<_> = drop.chain(nes).collect();
    mutate::run(agents::file, &seeds, 2_000);
    let patterns = write_patterns(&built_in_patterns());
    let seeds = [seed(2, &patterns), seed(3, &patterns)];
    mutate::run(agents::file, &seeds, 200);
}
