#![no_main]

#[path = "../src/agents.rs"]
mod agents;

libfuzzer_sys::fuzz_target!(|data: &[u8]| agents::file(data));
