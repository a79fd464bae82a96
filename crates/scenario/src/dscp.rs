//! Code points of differentiated services (DSCP) by name.
//!
//! Sources: RFC 2474 (DF, CS0 to CS7), RFC 2597 (AF11 to AF43), RFC 3246 (EF), RFC 5865 (VA), RFC
//! 8622 (LE).

use super::reader::Reader;

/// Names and their code points, spelled as in `tc` and `iperf3`.
const NAMES: [(&str, u8); 24] = [
    ("DF", 0),
    ("LE", 1),
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("VA", 44),
    ("EF", 46),
];

/// Reads the code point at `key`. The default is best effort (0).
pub fn read(keys: &mut Reader<'_>, key: &'static str) -> u8 {
    keys.choice(key, &NAMES, &[]).unwrap_or_default()
}
