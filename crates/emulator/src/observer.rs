//! Observers of a running mesh, for example the recorder. They are called on the mesh's thread.

use crate::packet::CarriedFrame;
use crate::state::State;
use meshpace_core::{Duration, Time};
use meshpace_mesh::Position;
use meshpace_sim::Probe;
use std::io;

/// Time between two samples, in the mesh's time.
pub const SAMPLE: Duration = Duration::from_millis(100);

/// Observer that sees every frame, like a probe, and the state of the mesh every [`SAMPLE`]. It
/// must not block, because the mesh waits for it.
pub trait Observer: Probe<CarriedFrame> + Send + 'static {
    /// True if the observer wants samples. The answer must always be the same.
    fn is_sampled(&self) -> bool {
        true
    }

    /// Largest number of streams in a sample; the first ones are taken. Each stream is copied while
    /// the mesh waits.
    fn most_streams(&self) -> usize {
        usize::MAX
    }

    /// Takes a sample: the state now, with at most [`Observer::most_streams`] streams, and the
    /// positions of the nodes.
    fn sample(&mut self, _state: &State, _places: &[Position]) {}

    /// Called when the mesh has ended at `_ended`, after `_frames` frames.
    ///
    /// # Errors The reason why the observer's output is not complete.
    fn finish(&mut self, _ended: Time, _frames: u64) -> io::Result<()> {
        Ok(())
    }
}

/// The empty observer.
impl Observer for () {
    fn is_sampled(&self) -> bool {
        false
    }
}
