#![no_main]

#[path = "../src/runs.rs"]
mod runs;

libfuzzer_sys::fuzz_target!(|data: &[u8]| runs::object(data));
