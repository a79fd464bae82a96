//! Keys of encrypted connections, and files of them. Each line of a file has one key of 32 bytes as 64 hexadecimal digits.
//! Lines that begin with `#` are comments.

use super::randomness::random;
use meshpace_session::Security;
use std::io;
use std::path::Path;

fn refused(file: &Path, text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {text}", file.display()))
}

/// Generates a pair of keys for [`Security::Keys`]: the private and the public key.
///
/// # Errors
///
/// The system provides no random numbers.
pub fn generate() -> io::Result<([u8; 32], [u8; 32])> {
    let mut secret = [0; 32];
    random(&mut secret)?;
    Ok((secret, Security::public_key(&secret)))
}

/// Parses a key. `None` if the text is not 64 hexadecimal digits.
pub fn parse(text: &str) -> Option<[u8; 32]> {
    let digits = text.trim().as_bytes();
    let mut key = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(key)
}

/// Formats a key as 64 hexadecimal digits.
pub fn write(key: &[u8; 32]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads all keys of a file, one per line. The rest of the line after a key is a comment.
///
/// # Errors
///
/// The file cannot be read, or a line contains no key. The error names the line.
pub fn read_all(file: &Path) -> io::Result<Vec<[u8; 32]>> {
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(explain)?;
    of_text(&text).map_err(|line| refused(file, &format!("line {line}: expected a key, 64 hexadecimal digits")))
}

/// Parses the keys in the text of a file. The error is the number of the first line that contains
/// no key.
pub(crate) fn of_text(text: &str) -> Result<Vec<[u8; 32]>, usize> {
    // Some editors on Windows write a byte-order mark before the text.
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.trim().starts_with('#'));
    lines.map(|(number, line)| line.split_whitespace().next().and_then(parse).ok_or(number + 1)).collect()
}

/// Reads a file that contains one key.
///
/// # Errors
///
/// The errors of [`read_all`]; also if the file does not contain exactly one key.
pub fn read(file: &Path) -> io::Result<[u8; 32]> {
    match &read_all(file)?[..] {
        [key] => Ok(*key),
        keys => Err(refused(file, &format!("expected one key, 64 hexadecimal digits; there are {}", keys.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let key = "ab".repeat(32);
        for text in [format!("\u{feff}{key}\r\n"), format!("\u{feff}# keys\r\n{key} laptop\r\n")] {
            assert_eq!(of_text(&text), Ok(vec![[0xab; 32]]), "{text:?}");
        }
        assert_eq!(of_text(&format!("{key}\n\u{feff}{key}\n")), Err(2), "a mark within a text is no mark");
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("keys");
        let keys = [[0xab; 32], [0x01; 32]];
        std::fs::write(&file, format!("# ours\n{} home\n\n  {}\n", write(&keys[0]), write(&keys[1]))).unwrap();
        assert_eq!(read_all(&file).unwrap(), keys);
        assert!(read(&file).unwrap_err().to_string().ends_with("there are 2"));
        std::fs::write(&file, "abc\n").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("line 1: expected a key"));
        assert_eq!(parse(&"g".repeat(64)), None);
    }
}
