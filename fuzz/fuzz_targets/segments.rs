//! What it looks at: `meshpace_transport::fuzzing::segments`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_transport::fuzzing::segments(data));
