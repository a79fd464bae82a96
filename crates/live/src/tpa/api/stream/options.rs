//! Options of a stream: how long its calls wait, and when what was written leaves.

use super::{TpaStream, nanoseconds};
use meshpace_core::Duration;
use std::io;

impl TpaStream {
    /// Sets whether calls return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.waiting()?.nonblocking = nonblocking;
        Ok(())
    }

    /// Sets whether a signal ends calls that wait, with [`io::ErrorKind::Interrupted`], by the kernel's rule for sockets: unless its handler has
    /// SA_RESTART and the call no timeout. Default false: calls go on waiting.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_interruptible(&self, interruptible: bool) -> io::Result<()> {
        self.waiting()?.interruptible = interruptible;
        Ok(())
    }

    /// Sets the time for which reading waits before it returns [`io::ErrorKind::WouldBlock`]; none for ever. Zero is refused.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] for zero.
    pub fn set_read_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        self.waiting()?.read = positive(timeout)?;
        Ok(())
    }

    /// Sets the time for which writing waits before it returns [`io::ErrorKind::WouldBlock`]; none for ever. Zero is refused.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] for zero.
    pub fn set_write_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        self.waiting()?.write = positive(timeout)?;
        Ok(())
    }

    /// Sets the time for which closing and dropping wait for what was written to arrive.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_linger(&self, linger: std::time::Duration) -> io::Result<()> {
        self.shared.enter()?.linger = nanoseconds(linger);
        Ok(())
    }

    /// Has the ACK of what the peer says wait up to `delay` for something to be written, on which it then rides: questions and answers take a
    /// packet less. For open connections whose peers do the same; trains acknowledge as before.
    pub fn hold_acks(&self, delay: std::time::Duration) {
        let Ok(mut state) = self.shared.enter() else { return };
        state.exchange.wishes.hold_acks = Some(nanoseconds(delay));
        self.shared.call(&mut state);
    }

    /// Sets whether what is written leaves as soon as the protocol lets it. With true, the default, a write leaves at once while nothing is
    /// unacknowledged; what is written meanwhile is collected until the acknowledgement comes. With false, the rule of TPA's paper, less
    /// than a block of twelve segments waits up to 100 ms for more, or until [`TpaStream::flush`]: a stream of small writes then takes
    /// fewer packets. Trains and BBR do not wait in either case.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        let mut state = self.shared.enter()?;
        state.exchange.waits_to_fill = !nodelay;
        state.exchange.wishes.waits_to_fill = Some(!nodelay);
        self.shared.call(&mut state);
        Ok(())
    }

    /// What [`TpaStream::set_nodelay`] has set.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
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
