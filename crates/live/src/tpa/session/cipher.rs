//! Which cipher an encrypted connection has, and how both ends agree on it.
//!
//! AES-256-GCM is several times as fast as ChaCha20-Poly1305 where a processor has instructions for it, and slow or open to
//! whoever measures times where it has not. So it is taken only where both ends have them. Who opens a connection says whether it
//! has; the listener chooses in its challenge. What was offered and what was chosen is part of Noise's prologue, and a listener
//! agrees to nothing but what follows from the offer and its own processor: whoever changes either under way gets no weaker
//! connection, but none.

/// The cipher of an encrypted connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cipher {
    /// ChaCha20-Poly1305 (RFC 8439), fast everywhere.
    #[default]
    ChaCha20Poly1305,
    /// AES-256-GCM (NIST SP 800-38D), where both ends have instructions for it.
    Aes256Gcm,
}

/// Offer and choice of ciphers while a connection is opened. Of one that is not encrypted: the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Suite {
    /// True if the end that opens offers AES-256-GCM.
    pub offers_aes: bool,
    /// The cipher that is asked for, or agreed to.
    pub cipher: Cipher,
}

/// In a byte of an opening: AES-256-GCM is offered.
const OFFERED: u8 = 0x10;
/// In the same byte: AES-256-GCM it is.
const CHOSEN: u8 = 0x20;

impl Suite {
    /// The request of an end that has AES-256-GCM to offer, or has not.
    pub fn asking(aes: bool) -> Suite {
        Suite { offers_aes: aes, ..Suite::default() }.agreed(aes)
    }

    /// The answer of a listener that has AES-256-GCM, or has not.
    #[must_use]
    pub fn agreed(self, aes: bool) -> Suite {
        let cipher = if self.offers_aes && aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 };
        Suite { cipher, ..self }
    }

    /// Its bits.
    pub(crate) fn bits(self) -> u8 {
        let chosen = if self.cipher == Cipher::Aes256Gcm { CHOSEN } else { 0 };
        chosen | if self.offers_aes { OFFERED } else { 0 }
    }

    /// From bits; none if they contradict each other.
    pub(crate) fn of_bits(bits: u8) -> Option<Suite> {
        let offered = Suite { offers_aes: bits & OFFERED != 0, ..Suite::default() };
        let suite = offered.agreed(bits & CHOSEN != 0);
        (suite.bits() == bits).then_some(suite)
    }
}

/// True if this processor has the instructions that AES-256-GCM needs to be fast.
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
