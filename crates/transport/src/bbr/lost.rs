//! Lost pieces that wait for their retransmission, in the order of their loss.
//!
//! A piece that was only late is removed from the queue, wherever it is. This takes time in the
//! logarithm of the length of the queue. A peer that reports late pieces by the thousand must not
//! cause a search of the whole queue for each of them.

use super::piece::Piece;
use crate::work::step;
use alloc::collections::{BTreeMap, BTreeSet};

/// Queue of lost pieces.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// Lost pieces by the order of their loss.
    queue: BTreeMap<u64, Piece>,
    /// Positions of each piece in the queue.
    places: BTreeSet<(Piece, u64)>,
    /// Position of the next piece.
    next: u64,
}

impl Lost {
    /// True if no piece waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Number of pieces in the queue.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, piece: Piece) {
        step();
        self.queue.insert(self.next, piece);
        self.places.insert((piece, self.next));
        self.next += 1;
    }

    /// Takes the first piece.
    pub fn pop(&mut self) -> Option<Piece> {
        step();
        let (place, piece) = self.queue.pop_first()?;
        self.places.remove(&(piece, place));
        Some(piece)
    }

    /// Removes a piece, which has arrived, from all its positions.
    pub fn remove(&mut self, piece: Piece) {
        step();
        while let Some((_, place)) = self.places.range((piece, 0)..=(piece, u64::MAX)).next().copied() {
            step();
            self.places.remove(&(piece, place));
            self.queue.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64) -> Piece {
        Piece { offset, payload: 10, fin: false }
    }

    #[test]
    fn pieces_leave_in_the_order_of_their_loss_unless_they_have_arrived() {
        let mut lost = Lost::default();
        [3, 1, 2, 1].into_iter().for_each(|offset| lost.push(piece(offset)));
        lost.remove(piece(1));
        lost.remove(piece(7));
        lost.push(piece(1));
        let order: [_; 4] = core::array::from_fn(|_| lost.pop().map(|piece| piece.offset));
        assert_eq!(order, [Some(3), Some(2), Some(1), None]);
        assert!(lost.is_empty() && lost.places.is_empty());
    }
}
