#![no_main]

#[path = "../src/messages.rs"]
#[allow(dead_code)]
mod messages;

libfuzzer_sys::fuzz_target!(|data: &[u8]| messages::batch(data));
