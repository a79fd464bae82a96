//! Writing to a stream: waiting, at once, and for executors of futures.

use super::TpaStream;
use crate::tpa::runtime::shared::State;
use crate::tpa::runtime::wait::Patience;
use meshpace_core::Time;
use std::io::{self, Write};
use std::task::{Context, Poll};

impl TpaStream {
    /// Writes what there is room for, whatever else is set.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if there is none, [`io::ErrorKind::BrokenPipe`] once it is closed for writing; the reason if
    /// the connection has failed.
    pub fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        self.write_from(from, Time::ZERO.into())
    }

    /// Writes what there is room for, or has the context's waker called when there is some.
    ///
    /// # Errors
    /// As a write without waiting; that it would block is `Pending`.
    pub fn poll_write(&self, context: &Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.enter()?;
        let put = self.put(&mut state, from);
        if put.is_none() {
            state.note_writer(context);
        }
        put.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ready if writing would not wait; otherwise the context's waker is called when that is so.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<()> {
        self.shared.poll_writable(context)
    }

    /// Writes all, as send(2) does on a blocking socket: it waits until there has been room for everything. Returns how much was taken, which is less
    /// if the write timeout, a signal or a failure has ended it.
    ///
    /// # Errors
    ///
    /// Those of writing, if nothing was taken.
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

    /// Has what was written leave although it does not fill a block. It does not wait for its arrival. Without effect unless
    /// [`TpaStream::set_nodelay`] is false, since nothing waits then.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
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

    /// Writes what there is room for; none if that has to be waited for.
    fn put(&self, state: &mut State, from: &[u8]) -> Option<io::Result<usize>> {
        let put = state.exchange.write(from);
        let is_news = !state.exchange.busy && matches!(put, Some(Ok(_)));
        // Without memory the connection ends, of which the peer is to hear.
        if is_news || (state.exchange.wishes.abort && matches!(put, Some(Err(_)))) {
            self.shared.call(state);
        }
        put
    }

    /// Bytes written that have not left, and as many as are to be; none where BBR does not carry the connection.
    pub(crate) fn unsent(&self) -> Option<(usize, usize)> {
        self.shared.enter().ok()?.exchange.unsent()
    }

    /// Bytes written whose arrival is not known yet.
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
