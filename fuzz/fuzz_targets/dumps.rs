//! What it looks at: `meshpace_lab::fuzzing::dumps`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_lab::fuzzing::dumps(data));
