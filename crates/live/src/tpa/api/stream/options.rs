//! Options of a stream: how long its calls wait, and when written data are sent.

use super::{TpaStream, nanoseconds};
use meshpace_core::Duration;
use std::io;

impl TpaStream {
    /// Sets whether calls return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.waiting()?.nonblocking = nonblocking;
        Ok(())
    }

    /// Sets whether a signal ends waiting calls with [`io::ErrorKind::Interrupted`]. The kernel's
    /// rule for sockets applies: the signal does not end the call if its handler has SA_RESTART and
    /// the call has no timeout. Default false: calls continue to wait.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn set_interruptible(&self, interruptible: bool) -> io::Result<()> {
        self.waiting()?.interruptible = interruptible;
        Ok(())
    }

    /// Sets the time for which reading waits before it returns [`io::ErrorKind::WouldBlock`].
    /// `None`: without limit. Zero is refused.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] for zero.
    pub fn set_read_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        self.waiting()?.read = positive(timeout)?;
        Ok(())
    }

    /// Sets the time for which writing waits before it returns [`io::ErrorKind::WouldBlock`].
    /// `None`: without limit. Zero is refused.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] for zero.
    pub fn set_write_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        self.waiting()?.write = positive(timeout)?;
        Ok(())
    }

    /// Sets the time for which closing and dropping wait until all written data have arrived.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn set_linger(&self, linger: std::time::Duration) -> io::Result<()> {
        self.shared.enter()?.linger = nanoseconds(linger);
        Ok(())
    }

    /// Delays ACKs of received data by up to `delay`, so that they can be sent together with data
    /// that the application writes meanwhile. An exchange of request and reply then takes one
    /// packet less. For open connections whose peers do the same; quiet trains do not change their
    /// ACKs.
    pub fn hold_acks(&self, delay: std::time::Duration) {
        let Ok(mut state) = self.shared.enter() else { return };
        state.exchange.wishes.hold_acks = Some(nanoseconds(delay));
        self.shared.call(&mut state);
    }

    /// Sets whether written data are sent as soon as the protocol allows.
    ///
    /// With true, the default, a write is sent at once while nothing is unacknowledged; data that
    /// are written meanwhile are collected until the acknowledgement arrives. With false, the rule
    /// of TPA's paper, less than a block of twelve segments waits for more data for up to 100 ms,
    /// or until [`TpaStream::flush`]. A stream of small writes then takes fewer packets. Quiet
    /// trains and BBR do not wait in either case.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        let mut state = self.shared.enter()?;
        state.exchange.waits_to_fill = !nodelay;
        state.exchange.wishes.waits_to_fill = Some(!nodelay);
        self.shared.call(&mut state);
        Ok(())
    }

    /// The value that [`TpaStream::set_nodelay`] has set.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(!self.shared.enter()?.exchange.waits_to_fill)
    }
}

fn positive(timeout: Option<std::time::Duration>) -> io::Result<Option<Duration>> {
    match timeout {
        Some(std::time::Duration::ZERO) => Err(io::Error::new(io::ErrorKind::InvalidInput, "a timeout of zero")),
        timeout => Ok(timeout.map(nanoseconds)),
    }
}
