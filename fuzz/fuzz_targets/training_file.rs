#![no_main]

#[path = "../src/training.rs"]
mod training;

libfuzzer_sys::fuzz_target!(|data: &[u8]| training::file(data));
