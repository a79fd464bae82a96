//! What it looks at: `meshpace_kernel::fuzzing::kernel`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_kernel::fuzzing::kernel(data));
