//! What it looks at: `meshpace_lab::fuzzing::results`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_lab::fuzzing::results(data));
