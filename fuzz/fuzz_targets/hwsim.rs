//! What it looks at: `meshpace_emulator::fuzzing::hwsim`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| meshpace_emulator::fuzzing::hwsim(data));
