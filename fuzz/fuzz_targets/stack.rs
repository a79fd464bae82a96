//! What it looks at: `meshpace_live::fuzzing::stack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_live::fuzzing::stack(data));
