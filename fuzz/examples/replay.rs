//! Runs the bodies of the targets on the inputs that are kept, once each, without libFuzzer: `fuzz/coverage` counts the lines that they reach.

use std::fs;
use std::path::Path;

/// A target, and its body.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 25] = [
    ("answers", meshpace_live::fuzzing::answers),
    ("beginnings", meshpace_live::fuzzing::beginnings),
    ("captures", meshpace_capture::fuzzing::captures),
    ("datagram", meshpace_live::fuzzing::datagram),
    ("dumps", meshpace_lab::fuzzing::dumps),
    ("endpoints", meshpace_transport::fuzzing::endpoints),
    ("files", meshpace_scenario::fuzzing::files),
    ("frames", meshpace_emulator::fuzzing::frames),
    ("http", meshpace_tunnel::fuzzing::http),
    ("hwsim", meshpace_emulator::fuzzing::hwsim),
    ("kernel", meshpace_kernel::fuzzing::kernel),
    ("keyfiles", meshpace_live::fuzzing::keyfiles),
    ("kits", meshpace_lab::fuzzing::kits),
    ("listener", meshpace_live::fuzzing::listener),
    ("media", meshpace_emulator::fuzzing::media),
    ("opening", meshpace_live::fuzzing::opening),
    ("packets", meshpace_live::fuzzing::packets),
    ("recordings", meshpace_lab::fuzzing::recordings),
    ("results", meshpace_lab::fuzzing::results),
    ("scenario", meshpace_scenario::fuzzing::scenario),
    ("segments", meshpace_transport::fuzzing::segments),
    ("session", meshpace_live::fuzzing::session),
    ("socks", meshpace_live::fuzzing::socks),
    ("stack", meshpace_live::fuzzing::stack),
    ("tunnelfile", meshpace_tunnel::fuzzing::tunnelfile),
];

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, body) in TARGETS {
        let folder = corpus.join(name);
        let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for file in files {
            let path = file.expect("an entry").path();
            body(&fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        }
    }
}
