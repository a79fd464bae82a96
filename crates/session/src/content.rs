//! Content of test streams: every byte can be computed, so that any part of a stream can be
//! recognised.

/// First four of every eight bytes of a stream. No other data contain them.
pub(crate) const MARK: [u8; 4] = [0xa5, 0x5a, 0xc3, 0x3c];

/// Byte at offset `at` of a stream.
pub fn byte(stream: u64, at: u64) -> u8 {
    word(stream, at / 8)[(at % 8) as usize]
}

/// The eight bytes of a stream that begin at offset `8 * number`.
fn word(stream: u64, number: u64) -> [u8; 8] {
    let mut word = (stream ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    word[..4].copy_from_slice(&MARK);
    word
}

/// Fills `into` with the bytes of a stream from offset `at` on.
pub fn fill(stream: u64, at: u64, into: &mut [u8]) {
    let before = (at.next_multiple_of(8) - at).min(into.len() as u64) as usize;
    let (head, rest) = into.split_at_mut(before);
    for (at, byte) in (at..).zip(head) {
        *byte = word(stream, at / 8)[(at % 8) as usize];
    }
    let (words, tail) = rest.as_chunks_mut::<8>();
    let first = at.div_ceil(8);
    let end = word(stream, first + words.len() as u64);
    for (number, into) in (first..).zip(words) {
        *into = word(stream, number);
    }
    tail.copy_from_slice(&end[..tail.len()]);
}

/// True if `bytes` contains at least 12 consecutive bytes of a stream in the clear.
pub fn shows_payload(bytes: &[u8]) -> bool {
    bytes.windows(12).any(|window| window[0] == MARK[0] && window[..4] == MARK && window[8..] == MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_filled_with_the_bytes_that_it_has() {
        for (at, length) in [(0, 24), (3, 30), (5, 1), (8, 7), (9, 4), (1 << 40, 17)] {
            let mut bytes = vec![0; length];
            fill(77, at, &mut bytes);
            let expected: Vec<u8> = (at..at + length as u64).map(|at| byte(77, at)).collect();
            assert_eq!(bytes, expected, "{at}");
        }
        // Four bytes of the mark and four of a product, the lowest first.
        assert_eq!(word(0, 1), [0xa5, 0x5a, 0xc3, 0x3c, 0xb9, 0x79, 0x37, 0x9e]);
    }
}
