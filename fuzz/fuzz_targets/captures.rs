//! What it looks at: `meshpace_capture::fuzzing::captures`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_capture::fuzzing::captures(data));
