//! A piece of the stream, as one segment carries it.

/// A piece of the stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Piece {
    /// Offset of its first byte.
    pub offset: u64,
    /// Payload bytes.
    pub payload: u16,
    /// True if the FIN follows.
    pub fin: bool,
}

impl Piece {
    /// The offset after it; a FIN counts as one byte.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.payload) + u64::from(self.fin)
    }
}
