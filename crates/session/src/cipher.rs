//! Cipher of an encrypted connection, and how both ends agree on it.
//!
//! AES-256-GCM is several times as fast as ChaCha20-Poly1305 on a processor that has instructions
//! for it. On other processors it is slow, or open to timing attacks. So it is used only where both
//! ends have the instructions.
//!
//! The end that opens a connection says whether it has them; the listener chooses in its challenge.
//! Offer and choice are part of Noise's prologue, and a listener agrees only to a cipher that
//! follows from the offer and from its own processor. So an attacker who changes either of them on
//! the path gets no connection instead of a weaker one.

/// Cipher of an encrypted connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cipher {
    /// ChaCha20-Poly1305 (RFC 8439), which is fast on every processor.
    #[default]
    ChaCha20Poly1305,
    /// AES-256-GCM (NIST SP 800-38D), used where both ends have instructions for it.
    Aes256Gcm,
}

/// Offer and choice of a cipher while a connection is opened. A connection without encryption has
/// the default value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Suite {
    /// True if the opening end offers AES-256-GCM.
    pub offers_aes: bool,
    /// Cipher that the opener asks for, or that the listener has agreed to.
    pub cipher: Cipher,
}

/// Bit in a byte of an opening: the opener offers AES-256-GCM.
const OFFERED: u8 = 0x10;
/// Bit in the same byte as [`OFFERED`]: AES-256-GCM is the chosen cipher.
const CHOSEN: u8 = 0x20;

impl Suite {
    /// Request of an opener. `aes` says whether this end can offer AES-256-GCM.
    pub fn asking(aes: bool) -> Suite {
        Suite { offers_aes: aes, ..Suite::default() }.agreed(aes)
    }

    /// Answer of a listener to this request. `aes` says whether the listener has AES-256-GCM.
    #[must_use]
    pub fn agreed(self, aes: bool) -> Suite {
        let cipher = if self.offers_aes && aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
        Suite { cipher, ..self }
    }

    /// Bits that encode offer and choice.
    pub(crate) fn bits(self) -> u8 {
        let chosen = if self.cipher == Cipher::Aes256Gcm { CHOSEN } else { 0 };
        chosen | if self.offers_aes { OFFERED } else { 0 }
    }

    /// Decodes the bits. Returns `None` if they contradict each other.
    pub(crate) fn of_bits(bits: u8) -> Option<Suite> {
        let offered = Suite { offers_aes: bits & OFFERED != 0, ..Suite::default() };
        let suite = offered.agreed(bits & CHOSEN != 0);
        (suite.bits() == bits).then_some(suite)
    }
}

/// True if this processor has the instructions that make AES-256-GCM fast.
pub fn processor_has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aes_is_chosen_only_where_both_have_it() {
        for (opener, listener, expected) in [
            (true, true, Cipher::Aes256Gcm),
            (true, false, Cipher::ChaCha20Poly1305),
            (false, true, Cipher::ChaCha20Poly1305),
            (false, false, Cipher::ChaCha20Poly1305),
        ] {
            let agreed = Suite::asking(opener).agreed(listener);
            assert_eq!((agreed.cipher, agreed.offers_aes), (expected, opener));
            assert_eq!(Suite::of_bits(agreed.bits()), Some(agreed));
        }
        assert_eq!(Suite::of_bits(CHOSEN), None, "chosen, and not offered");
        assert_eq!(Suite::of_bits(0x40), None);
    }
}
