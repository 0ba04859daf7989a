#![no_main]

#[path = "../src/batches.rs"]
#[allow(dead_code)]
mod batches;

libfuzzer_sys::fuzz_target!(|data: &[u8]| batches::batch(data));
