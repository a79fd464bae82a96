//! Writing to a stream: waiting, without waiting, and from asynchronous tasks.

use super::TpaStream;
use crate::tpa::runtime::shared::State;
use crate::tpa::runtime::wait::Patience;
use meshpace_core::Time;
use std::io::{self, Write};
use std::task::{Context, Poll};

impl TpaStream {
    /// Writes as many bytes as the send buffer has room for. Never waits, whatever the settings
    /// are.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if there is no room, [`io::ErrorKind::BrokenPipe`] once the
    /// stream is closed for writing; the reason if the connection has failed.
    pub fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        self.write_from(from, Time::ZERO.into())
    }

    /// Writes as many bytes as the send buffer has room for. If there is no room, the context's
    /// waker is called when there is.
    ///
    /// # Errors
    /// The errors of a write without waiting, but `Pending` instead of
    /// [`io::ErrorKind::WouldBlock`].
    pub fn poll_write(&self, context: &Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.enter()?;
        let put = self.put(&mut state, from);
        if put.is_none() {
            state.note_writer(context);
        }
        put.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ready if writing would not wait. Otherwise the context's waker is called as soon as writing
    /// would no longer wait.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<()> {
        self.shared.poll_writable(context)
    }

    /// Writes all bytes, as send(2) does on a blocking socket: waits until there has been room for
    /// everything. Returns the number of bytes taken, which is smaller if the write timeout, a
    /// signal or a failure has ended the call.
    ///
    /// # Errors
    ///
    /// The errors of writing, if no byte was taken.
    pub fn send(&self, from: &[u8]) -> io::Result<usize> {
        let patience = self.patience(|waiting| waiting.write)?;
        let mut sent = 0;
        while sent < from.len() {
            match self.write_from(&from[sent..], patience) {
                Ok(more) => sent += more,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Sends written data although they do not fill a block. Does not wait until they have arrived.
    /// Without effect unless [`TpaStream::set_nodelay`] is set to false, because otherwise no data
    /// wait.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn flush(&self) -> io::Result<()> {
        let mut state = self.shared.enter()?;
        if state.exchange.waits_to_fill {
            state.exchange.wishes.flush = true;
            self.shared.call(&mut state);
        }
        Ok(())
    }

    fn write_from(&self, from: &[u8], patience: Patience) -> io::Result<usize> {
        let mut state = self.shared.enter()?;
        loop {
            if let Some(put) = self.put(&mut state, from) {
                return put;
            }
            state = self.shared.wait_writable(state, patience)?;
        }
    }

    /// Writes as many bytes as the send buffer has room for. `None` if the caller has to wait for
    /// room.
    fn put(&self, state: &mut State, from: &[u8]) -> Option<io::Result<usize>> {
        let put = state.exchange.write(from);
        let is_news = !state.exchange.busy && matches!(put, Some(Ok(_)));
        // If there is no memory, the connection ends and the peer has to be informed.
        if is_news || (state.exchange.wishes.abort && matches!(put, Some(Err(_)))) {
            self.shared.call(state);
        }
        put
    }

    /// Number of written bytes that have not been sent, and the number that should be waiting so
    /// that no chance to send is missed. `None` if the connection does not use BBR.
    pub(crate) fn unsent(&self) -> Option<(usize, usize)> {
        self.shared.enter().ok()?.exchange.unsent()
    }

    /// Number of written bytes that are not acknowledged yet.
    pub fn unacknowledged(&self) -> usize {
        self.shared.enter().map_or(0, |state| state.exchange.send.len())
    }
}

impl Write for TpaStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_from(from, self.patience(|waiting| waiting.write)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        TpaStream::flush(self)
    }
}

impl Write for &TpaStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_from(from, self.patience(|waiting| waiting.write)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        TpaStream::flush(self)
    }
}
