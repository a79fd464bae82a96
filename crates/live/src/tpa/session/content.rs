//! Content of streams, made so that every byte of every stream is known and recognised.

/// First four of every eight bytes of a stream: no other data have them.
pub(crate) const MARK: [u8; 4] = [0xa5, 0x5a, 0xc3, 0x3c];

/// Byte `at` of a stream.
pub(crate) fn byte(stream: u64, at: u64) -> u8 {
    match (at % 8) as usize {
        place @ 0..4 => MARK[place],
        place => ((stream ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (8 * place)) as u8,
    }
}

/// True if 12 bytes of a stream, or more, stand in `bytes` as they are.
pub(crate) fn shows_payload(bytes: &[u8]) -> bool {
    bytes.windows(12).any(|window| window[0] == MARK[0] && window[..4] == MARK && window[8..] == MARK)
}
