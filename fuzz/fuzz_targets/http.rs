//! What it looks at: `meshpace_tunnel::fuzzing::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_tunnel::fuzzing::http(data));
