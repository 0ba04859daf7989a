#![no_main]

#[path = "../src/tetris.rs"]
mod tetris;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tetris::text(data));
