#![no_main]

#[path = "../src/networks.rs"]
mod networks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| networks::network(data));
