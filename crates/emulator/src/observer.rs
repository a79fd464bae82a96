//! Observers of a running mesh, called on the mesh's thread: the recorder, for example.

use crate::packet::CarriedFrame;
use crate::state::State;
use meshpace_core::{Duration, Time};
use meshpace_mesh::Position;
use meshpace_sim::Probe;
use std::io;

/// Time between two samples, in the mesh's time.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// Sees every frame as a probe does, and how things are every [`SAMPLE`]. It must not wait: the mesh waits for it.
pub trait Observer: Probe<CarriedFrame> + Send + 'static {
    /// True if samples are wanted at all; the same whenever it is asked.
    fn is_sampled(&self) -> bool {
        true
    }

    /// Streams that a sample has at most, the first ones: each is copied while the mesh waits.
    fn most_streams(&self) -> usize {
        usize::MAX
    }

    /// The state now, with at most [`Observer::most_streams`] streams; where nodes are.
    fn sample(&mut self, _state: &State, _places: &[Position]) {}

    /// The mesh has ended, after so many frames.
    ///
    /// # Errors
    /// Why what it made of it is not whole.
    fn finish(&mut self, _ended: Time, _frames: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Nobody.
impl Observer for () {
    fn is_sampled(&self) -> bool {
        false
    }
}
