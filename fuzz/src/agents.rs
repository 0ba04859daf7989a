//! Properties of the parsers of board tables and weights files that must hold for any input. The fuzz target and a short
//! test in the test suite (`agents/tests/fuzz.rs`) check these properties.

use hatebeam_agents::nes::{read_patterns, write_patterns};
use hatebeam_agents::pc::{BoardTable, PcFinder};
use hatebeam_agents::{DropPlayer, NesPlayer, WeightsFile};
use hatebeam_tetris::nes::{PATTERN_WEIGHTS, Rows};
use hatebeam_tetris::srs::{DropMode, KickTable, Kicks, LowField, MAX_LOW_ROWS};
use sha2::{Digest, Sha256};
use std::io::Write;

/// Checks the parser that the first byte selects.
pub(crate) fn file(data: &[u8]) {
    let [parser, data @ ..] = data else {
        return;
    };
    match parser % 4 {
        0 => table(data),
        1 => table_with_digest(data),
        2 => weights(data),
        _ => patterns(data),
    }
}

/// Checks that reading a table of boards returns an error, or a table whose bytes give the same table, and which can be
/// used.
fn table(data: &[u8]) {
    let Ok(table) = BoardTable::read(data) else {
        return;
    };
    let bytes = table.bytes();
    let again = BoardTable::read(&*bytes);
    assert!(again.is_ok_and(|again| again.bytes() == bytes));
    for rows in 1..=MAX_LOW_ROWS {
        let empty = LowField::empty(rows).expect("the number of rows is in range");
        let _ = table.contains(&empty);
    }
    let kicks = KickTable::built_in(Kicks::Srs);
    let _ = PcFinder::new(&kicks, DropMode::Soft).with_table(table);
}

/// Checks a table whose header contains the digest of its lists. Without this digest, few damaged tables get to the checks
/// of the boards. `data` is a table without the first line.
fn table_with_digest(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else {
        return;
    };
    let (header, lists) = (&data[..end], &data[end + 1..]);
    let Ok(serde_json::Value::Object(mut header)) = serde_json::from_slice(header) else {
        return;
    };
    let digest = Sha256::digest(lists);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    header.insert("sha256".to_owned(), digest.into());
    let header = serde_json::Value::Object(header).to_string();
    let first = b"hatebeam-pc-table 1\n";
    table(&[first, header.as_bytes(), b"\n", lists].concat());
}

/// Checks that reading a weights file returns an error, or weights whose text gives the same weights, and that players get
/// as many finite weights as they have.
fn weights(data: &[u8]) {
    let mut file =
        tempfile::NamedTempFile::new().expect("the folder for temporary files is writable");
    file.write_all(data).expect("the file is writable");
    if let Ok(player) = DropPlayer::read(file.path()) {
        assert!(player.weights.iter().all(|weight| weight.is_finite()));
        player.agent.with_weights(&player.weights);
    }
    if let Ok(player) = NesPlayer::read(file.path()) {
        assert!(player.weights.iter().all(|weight| weight.is_finite()));
        let search = player.search;
        search.with_weights(Rows::Twenty, None, &player.weights);
    }
    if let Ok(weights) = WeightsFile::read(file.path()) {
        let text = weights.text();
        std::fs::write(file.path(), &text).expect("the file is writable");
        let again = WeightsFile::read(file.path());
        // Compares text instead of weights, because NaN is not equal to itself.
        assert!(again.is_ok_and(|again| again.text() == text), "{text}");
    }
}

/// Checks that reading the weights of the search `learned` returns nothing, or weights that are written as the same bytes.
fn patterns(data: &[u8]) {
    if let Some(weights) = read_patterns(data) {
        assert_eq!(weights.len(), PATTERN_WEIGHTS);
        assert_eq!(write_patterns(&weights), data);
    }
}
