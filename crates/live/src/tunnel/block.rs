//! Memory through which one direction of a stream is carried.
//!
//! Every open stream has two blocks, and a far end decides how many streams are open. So a block is booked with the connection that brings the
//! stream, begins small, and becomes larger while reads fill it.

use meshpace_session::budget::{Account, Refusal};

/// Bytes of a block at first, and at most.
const LEAST: usize = 4 << 10;
const MOST: usize = 32 << 10;

/// A block of bytes.
#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    account: Account,
}

impl Block {
    /// A block of the least size.
    ///
    /// # Errors
    ///
    /// The far end's connections hold as much as they may.
    pub(super) fn new(account: Account) -> Result<Block, Refusal> {
        account.take(LEAST)?;
        Ok(Block { bytes: vec![0; LEAST], account })
    }

    /// The bytes, to read into.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Fits the size to a read of `length` bytes: twice as large if that has filled the block and there is memory, half as large if three
    /// quarters were left empty. What was read is forgotten.
    pub(super) fn fit(&mut self, length: usize) {
        let size = self.bytes.len();
        if length == size && size < MOST && self.account.take(size).is_ok() {
            self.bytes = vec![0; 2 * size];
        } else if length < size / 4 && size > LEAST {
            self.bytes = vec![0; size / 2];
            self.account.give_back(size / 2);
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.account.give_back(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_session::budget::{Bounds, Budget};
    use meshpace_session::networks::source_of;

    #[test]
    fn a_block_is_as_large_as_reads_need_and_there_is_memory_for() {
        let bytes = 20 << 10;
        let budget = Budget::new(Bounds { port: bytes, source: bytes, key: bytes });
        let account = budget.account(source_of([127, 0, 0, 1].into()), None);
        let mut block = Block::new(account.clone()).unwrap();
        for size in [4, 8, 16, 16] {
            assert_eq!((block.bytes().len(), budget.used()), (size << 10, size << 10));
            block.fit(size << 10);
        }
        // A quarter and more is used.
        block.fit(4 << 10);
        assert_eq!(budget.used(), 16 << 10);
        for size in [8, 4, 4] {
            block.fit(100);
            assert_eq!((block.bytes().len(), budget.used()), (size << 10, size << 10));
        }
        let others: Vec<Block> = std::iter::from_fn(|| Block::new(account.clone()).ok()).collect();
        assert_eq!(others.len(), 4);
        drop((block, others));
        assert_eq!(budget.used(), 0);
    }
}
