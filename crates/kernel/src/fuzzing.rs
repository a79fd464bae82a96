//! Entry point for fuzzers: a function that decodes arbitrary bytes as contents of the eBPF
//! programs' maps and as command-line arguments. It panics if a check fails.
//!
//! This module is built by fuzzers (`--cfg fuzzing`, as `cargo fuzz` does; `fuzz/` has the target) and by
//! this crate's tests. The tests run it on the inputs in `fuzz/corpus` and on mutations of them.

use crate::{Connection, Destination, Path, check_name};

/// Decodes reports about connections, values and keys of the map of paths, a destination in text
/// form and a name. Checks that a decoded value is the same after it has been encoded and decoded
/// again.
///
/// # Panics
///
/// If a value is not the same.
pub fn kernel(data: &[u8]) {
    for connection in Connection::decode(data) {
        assert!(connection.cov >= 0.0 && connection.cov.is_finite());
        let shown = [connection.local, connection.remote].map(|end| end.to_string());
        assert_eq!(shown.map(|end| end.parse()), [Ok(connection.local), Ok(connection.remote)]);
    }
    if let Some(path) = Path::decode(data) {
        assert_eq!(Path::decode(&path.encode()), Some(path));
        let _ = path.check();
    }
    if let Some(destination) = Destination::decode(data) {
        assert_eq!(Destination::decode(&destination.encode()), Some(destination));
        let _ = destination.to_string();
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(destination) = text.parse::<Destination>() {
        assert_eq!(destination.to_string().parse(), Ok(destination));
        assert_eq!(Destination::decode(&destination.encode()), Some(destination));
    }
    assert!(check_name(text).is_err() || text.len() < 16);
}

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_report_path_or_destination_is_read_as_it_would_be_written() {
        drive("kernel", super::kernel);
    }
}
