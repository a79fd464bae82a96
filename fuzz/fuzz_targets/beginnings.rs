//! What it looks at: `meshpace_live::fuzzing::beginnings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_live::fuzzing::beginnings(data));
