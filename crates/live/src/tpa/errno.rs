//! Numbers of errors (errno) that stand for the reasons of a session, and the reports of the kernel
//! that a session understands.

use meshpace_session::connection::Report;
use meshpace_session::failure::{Reason, TpaError};
use nix::libc;
use std::io;

/// The errno that stands for a reason.
fn errno(reason: Reason) -> i32 {
    match reason {
        Reason::Refused => libc::ECONNREFUSED,
        Reason::Reset => libc::ECONNRESET,
        Reason::Aborted => libc::ECONNABORTED,
        Reason::TimedOut => libc::ETIMEDOUT,
        Reason::TooLong => libc::EMSGSIZE,
        Reason::HostUnreachable => libc::EHOSTUNREACH,
        Reason::NetworkUnreachable => libc::ENETUNREACH,
        Reason::NoMemory => libc::ENOBUFS,
        Reason::Protocol => libc::EPROTO,
        Reason::Closed => libc::EBADF,
        Reason::Internal => libc::EIO,
        Reason::System(errno) => errno,
    }
}

/// The errno that stands for an error of these sockets.
pub fn errno_of(error: &io::Error) -> i32 {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TpaError>());
    inner.map(|inner| errno(inner.reason())).or(error.raw_os_error()).unwrap_or(match error.kind() {
        io::ErrorKind::WouldBlock => libc::EAGAIN,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::Interrupted => libc::EINTR,
        io::ErrorKind::BrokenPipe => libc::EPIPE,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::NotConnected => libc::ENOTCONN,
        _ => libc::EIO,
    })
}

/// The kernel's report of this errno. `mtu` is the longest IP packet that the path carries, bytes;
/// 0 if the kernel does not say.
pub(crate) fn report(errno: i32, mtu: u32) -> Report {
    match errno {
        libc::ECONNREFUSED => Report::Refused,
        libc::EMSGSIZE => Report::TooLong { mtu },
        libc::EHOSTUNREACH => Report::HostUnreachable,
        libc::ENETUNREACH => Report::NetworkUnreachable,
        errno => Report::System(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_session::failure::Failure;

    #[test]
    fn an_error_that_the_kernel_reports_has_the_same_kind_as_the_reason_that_it_becomes() {
        for (errno, reason) in [
            (libc::ECONNREFUSED, Reason::Refused),
            (libc::ECONNRESET, Reason::Reset),
            (libc::ECONNABORTED, Reason::Aborted),
            (libc::ETIMEDOUT, Reason::TimedOut),
            (libc::EHOSTUNREACH, Reason::HostUnreachable),
            (libc::ENETUNREACH, Reason::NetworkUnreachable),
        ] {
            let error = Failure::new(reason, "why").error();
            assert_eq!((error.kind(), errno_of(&error)), (io::Error::from_raw_os_error(errno).kind(), errno));
            assert_eq!(errno_of(&Failure::new(Reason::System(errno), "why").error()), errno);
        }
        assert_eq!(errno_of(&io::Error::from_raw_os_error(libc::EXDEV)), libc::EXDEV);
        assert_eq!(errno_of(&io::ErrorKind::BrokenPipe.into()), libc::EPIPE);
        assert_eq!(report(libc::EACCES, 1280), Report::System(libc::EACCES));
        assert_eq!(report(libc::EMSGSIZE, 1280), Report::TooLong { mtu: 1280 });
    }
}
