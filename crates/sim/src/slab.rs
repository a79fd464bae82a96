//! Slab: numbered entries that are reused. It allocates only if more entries are in use than ever
//! before.

use alloc::vec::Vec;

/// Slab of values.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Number that the next value will get.
    #[inline]
    pub fn next(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.entries.len() as u32)
    }

    /// Stores `value` and returns its number.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.entries[number as usize] = Some(value);
                number
            }
            None => {
                self.entries.push(Some(value));
                (self.entries.len() - 1) as u32
            }
        }
    }

    /// Removes and returns entry `number`.
    #[inline]
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.entries[number as usize].take();
        if value.is_some() {
            self.free.push(number);
        }
        value
    }

    /// Value of entry `number`.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        self.entries[number as usize].as_ref()
    }

    /// Mutable value of entry `number`.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.entries[number as usize].as_mut()
    }
}
