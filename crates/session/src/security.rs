//! Protection of datagrams, and the attackers against whom it protects.

use super::handshake::Protection;
use curve25519_dalek::montgomery::MontgomeryPoint;

/// Protection of datagrams, and the attackers against whom it protects.
#[derive(Clone, PartialEq, Eq)]
pub enum Security {
    /// Every datagram contains a random tag of 64 bits. An attacker who cannot read the packets
    /// cannot forge any; an attacker who can read them can also forge them. This protection is for
    /// experiments.
    Plain,
    /// Encryption with a peer that is not authenticated. An observer learns nothing and cannot
    /// forge anything. An attacker who is between the two ends while they connect can pose as each
    /// to the other.
    Opportunistic,
    /// Encryption with a peer that knows this secret.
    Shared([u8; 32]),
    /// Encryption with the holders of known keys (X25519). An end that opens a connection knows
    /// exactly one peer.
    Keys {
        /// Our private key.
        own: [u8; 32],
        /// Public keys of the peers.
        peers: Vec<[u8; 32]>,
    },
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys must not appear in logs.
        write!(f, "Security({:?})", self.protection())
    }
}

impl Security {
    /// Checks that the keys are usable. A secret must not be zero, which everybody knows. A public
    /// key must not be of small order (RFC 7748, section 6.1: zero is such a point); with such a
    /// key the shared secret is the same for all private keys.
    ///
    /// # Errors
    ///
    /// A text that says which key is unusable.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_zero = |key: &[u8; 32]| *key == [0; 32];
        match self {
            Security::Shared(secret) if is_zero(secret) => Err("the shared secret is zero, which everybody knows"),
            Security::Keys { own, .. } if is_zero(own) => Err("the own private key is zero, which everybody knows"),
            Security::Keys { peers, .. } if peers.iter().any(Security::is_weak) => {
                Err("a peer's public key is of small order: whoever asks would be taken for that peer")
            }
            _ => Ok(()),
        }
    }

    /// True if this public key is of small order. The shared secret is then the same for every
    /// private key, so the key identifies nobody.
    pub fn is_weak(key: &[u8; 32]) -> bool {
        // A clamped scalar is a multiple of the cofactor, so its product with a point of small
        // order is zero.
        MontgomeryPoint(*key).mul_clamped([9; 32]).0 == [0; 32]
    }

    /// Returns the protection as a request names it.
    pub fn protection(&self) -> Protection {
        match self {
            Security::Plain => Protection::Plain,
            Security::Opportunistic => Protection::Nn,
            Security::Shared(_) => Protection::NnPsk0,
            Security::Keys { .. } => Protection::Ik,
        }
    }

    /// True if the peer proves its identity, by a shared secret or by a known key.
    pub fn knows_peer(&self) -> bool {
        matches!(self, Security::Shared(_) | Security::Keys { .. })
    }

    /// Returns the public key of the peer if only one is known. A connection that is opened from
    /// here has this peer.
    pub fn only_peer(&self) -> Option<[u8; 32]> {
        match self {
            Security::Keys { peers, .. } if peers.len() == 1 => peers.first().copied(),
            _ => None,
        }
    }

    /// Returns the public key that belongs to a private key.
    pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a point from its u coordinate in hexadecimal, least significant byte first.
    fn point(hex: &str) -> [u8; 32] {
        let digit = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn(digit)
    }

    #[test]
    fn what_everybody_knows_is_no_key() {
        let own = [7; 32];
        let known = |peer: [u8; 32]| Security::Keys { own, peers: vec![Security::public_key(&[8; 32]), peer] };
        // u = 0, 1 and -1; the two of order 8; p and p + 1, which are 0 and 1 (RFC 7748, sections 5 and 6.1, whose functions make the third to fifth).
        let weak = [
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        ];
        for hex in weak {
            assert!(known(point(hex)).check().is_err(), "{hex}");
        }
        assert_eq!(known(Security::public_key(&[9; 32])).check(), Ok(()));
        assert!(Security::Keys { own: [0; 32], peers: vec![Security::public_key(&own)] }.check().is_err());
        assert!(Security::Shared([0; 32]).check().is_err());
        assert_eq!(Security::Shared([1; 32]).check(), Ok(()));
        assert!(Security::Plain.check().is_ok() && Security::Opportunistic.check().is_ok());
    }
}
