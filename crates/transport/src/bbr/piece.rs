//! A piece of the stream, carried by one segment.

/// A piece of the stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Piece {
    /// Offset of the first byte.
    pub offset: u64,
    /// Payload bytes.
    pub payload: u16,
    /// True if the FIN follows the piece.
    pub fin: bool,
}

impl Piece {
    /// Offset after the piece; a FIN counts as one byte.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.payload) + u64::from(self.fin)
    }
}
