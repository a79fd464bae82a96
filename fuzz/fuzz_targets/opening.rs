//! What it looks at: `meshpace_session::fuzzing::opening`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_session::fuzzing::opening(data));
