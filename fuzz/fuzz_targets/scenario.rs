//! What it looks at: `meshpace_scenario::fuzzing::scenario`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_scenario::fuzzing::scenario(data));
