//! The Internet checksum (RFC 1071).

/// The one's complement sum of the 16-bit words of `bytes`, added to `start`. An odd last byte
/// counts as if a zero byte followed. A packet is sent with the complement of the sum, so that the
/// words of an intact packet sum to 0xffff.
pub fn sum(bytes: &[u8], start: u16) -> u16 {
    let mut sum = u64::from(start);
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut rest = [0; 4];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u64::from(u32::from_be_bytes(rest));
    // 2^16 equals 1 modulo 2^16 - 1, so 32-bit words fold to the same sum as 16-bit words.
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        // 0001 f203 f4f5 f6f7 add up to 2ddf0, folded ddf2.
        assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), 0xddf2);
        // By hand: 0102 + 0304 + 0500 = 0906, and with a start of ffff, which is nothing, 0906.
        assert_eq!(sum(&[1, 2, 3, 4, 5], 0), 0x0906);
        assert_eq!(sum(&[1, 2, 3, 4, 5], 0xffff), 0x0906);
    }
}
