//! Protection of datagrams, and against whom.

use super::handshake::Protection;
use curve25519_dalek::montgomery::MontgomeryPoint;

/// Protection of datagrams, and against whom.
#[derive(Clone, PartialEq, Eq)]
pub enum Security {
    /// A random tag of 64 bits in every datagram: whoever cannot read the packets can forge nothing. Whoever can read them can
    /// forge them. For experiments.
    Plain,
    /// Encrypted, with whoever answers: whoever reads packets learns nothing and can forge nothing. Somebody who stands
    /// between the two ends while they connect can pose as each to the other.
    Opportunistic,
    /// Encrypted, with whoever knows this secret.
    Shared([u8; 32]),
    /// Encrypted, with the holders of known keys (X25519). Whoever opens a connection knows exactly one peer.
    Keys {
        /// Our own private key.
        own: [u8; 32],
        /// Public keys of the peers.
        peers: Vec<[u8; 32]>,
    },
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys are not for logs.
        write!(f, "Security({:?})", self.protection())
    }
}

impl Security {
    /// Checks that the keys are usable: no secret that everybody knows, and no public key with which everybody gets the same secret, whoever has
    /// the private one (RFC 7748, section 6.1: the points of small order, zero among them).
    ///
    /// # Errors
    ///
    /// Which of them is none.
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

    /// True if everybody gets the same secret with this public key, whoever has the private one: it is nobody's.
    pub fn is_weak(key: &[u8; 32]) -> bool {
        // A clamped scalar is a multiple of the cofactor: what is of small order becomes zero by any of them.
        MontgomeryPoint(*key).mul_clamped([9; 32]).0 == [0; 32]
    }

    /// As it stands in a request.
    pub fn protection(&self) -> Protection {
        match self {
            Security::Plain => Protection::Plain,
            Security::Opportunistic => Protection::Nn,
            Security::Shared(_) => Protection::NnPsk0,
            Security::Keys { .. } => Protection::Ik,
        }
    }

    /// True if the peer proves that it is the one that is meant: by a secret, or by known keys.
    pub fn knows_peer(&self) -> bool {
        matches!(self, Security::Shared(_) | Security::Keys { .. })
    }

    /// The public key of the only peer there can be: that of a connection that is opened from here.
    pub fn only_peer(&self) -> Option<[u8; 32]> {
        match self {
            Security::Keys { peers, .. } if peers.len() == 1 => peers.first().copied(),
            _ => None,
        }
    }

    /// The public key of a private one.
    pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point by its u coordinate, least byte first.
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
