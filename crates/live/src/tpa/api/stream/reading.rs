//! Reading from a stream: waiting, without waiting, and from asynchronous tasks.

use super::TpaStream;
use crate::tpa::runtime::shared::State;
use crate::tpa::runtime::wait::Patience;
use meshpace_core::Time;
use std::io::{self, Read};
use std::task::{Context, Poll};

impl TpaStream {
    /// Reads the data that have arrived. Never waits, whatever the settings are.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if no data have arrived; the reason if the connection has
    /// failed.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.read_into(into, Time::ZERO.into())
    }

    /// Reads the data that have arrived. If there are none, the context's waker is called when
    /// there are.
    ///
    /// # Errors
    /// The errors of a read without waiting, but `Pending` instead of
    /// [`io::ErrorKind::WouldBlock`].
    pub fn poll_read(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.enter()?;
        let got = self.take(&mut state, into);
        if got.is_none() {
            state.note_reader(context);
        }
        got.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ready if reading would not wait. Otherwise the context's waker is called as soon as reading
    /// would no longer wait.
    pub fn poll_readable(&self, context: &Context<'_>) -> Poll<()> {
        self.shared.poll_readable(context)
    }

    fn read_into(&self, into: &mut [u8], patience: Patience) -> io::Result<usize> {
        let mut state = self.shared.enter()?;
        loop {
            if let Some(got) = self.take(&mut state, into) {
                return got;
            }
            state = self.shared.wait_readable(state, patience)?;
        }
    }

    /// Reads the data that have arrived. `None` if the caller has to wait.
    fn take(&self, state: &mut State, into: &mut [u8]) -> Option<io::Result<usize>> {
        let got = state.exchange.read(into);
        if state.exchange.window_closed && matches!(got, Some(Ok(length)) if length > 0) {
            self.shared.call(state);
        }
        got
    }
}

impl Read for TpaStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_into(into, self.patience(|waiting| waiting.read)?)
    }
}

impl Read for &TpaStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_into(into, self.patience(|waiting| waiting.read)?)
    }
}
