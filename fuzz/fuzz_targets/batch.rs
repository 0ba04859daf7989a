#![no_main]

#[path = "../src/batches.rs"]
mod batches;

libfuzzer_sys::fuzz_target!(|data: &[u8]| batches::batch(data));
