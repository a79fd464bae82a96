//! Generic netlink socket to mac80211_hwsim.

use super::message::{self, Received};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, setsockopt, socket,
    sockopt,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Size of the socket's receive buffer, bytes. It holds the frames that radios send while the
/// medium handles others.
const BUFFER: usize = 4 << 20;

/// A registered medium. When it is dropped, the kernel uses its own medium again, which loses
/// nothing.
#[derive(Debug)]
pub struct Socket {
    descriptor: OwnedFd,
    family: u16,
}

impl Socket {
    /// Registers with the kernel. From now on every frame of a radio that was created in this
    /// network namespace is passed to this socket.
    ///
    /// # Errors The module is not loaded, another medium is registered, or privileges are missing.
    /// The text says which.
    pub fn register() -> io::Result<Socket> {
        let descriptor =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkGeneric)?;
        bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        // Without the privilege to exceed it, the system's limit applies.
        if setsockopt(&descriptor, sockopt::RcvBufForce, &BUFFER).is_err() {
            setsockopt(&descriptor, sockopt::RcvBuf, &BUFFER)?;
        }
        let mut socket = Socket { descriptor, family: 0 };
        let mut buffer = vec![0; 1 << 16];
        socket.send(&message::get_family())?;
        let length = socket.receive(&mut buffer, MsgFlags::empty())?;
        socket.family = match message::read(&buffer[..length]).first() {
            Some(Received::Family(family)) => *family,
            _ => {
                let text = "mac80211_hwsim is not loaded: load it with `modprobe mac80211_hwsim radios=2`";
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
        };
        // The request asks for an answer (NLM_F_ACK), so that a refusal is noticed.
        let mut register = message::register(socket.family);
        register[6] |= 4;
        socket.send(&register)?;
        let length = socket.receive(&mut buffer, MsgFlags::empty())?;
        match message::read(&buffer[..length]).first() {
            Some(Received::Answer(0)) => Ok(socket),
            Some(Received::Answer(16)) => {
                let text = "another medium is registered with mac80211_hwsim (wmediumd?); stop it first";
                Err(io::Error::new(io::ErrorKind::AddrInUse, text))
            }
            Some(&Received::Answer(number)) => Err(io::Error::from_raw_os_error(number)),
            other => Err(io::Error::other(format!("no answer to the registration but {other:?}"))),
        }
    }

    /// Number of mac80211_hwsim's netlink family.
    pub fn family(&self) -> u16 {
        self.family
    }

    /// Sends a message.
    ///
    /// # Errors Errors of the system.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let kernel = NetlinkAddr::new(0, 0);
        sendto(self.descriptor.as_raw_fd(), message, &kernel, MsgFlags::empty())?;
        Ok(())
    }

    /// Writes the next datagram into `buffer` and returns its length; 0 if there is none.
    ///
    /// # Errors Errors of the system. `ENOBUFS` means that frames were lost because the buffer was
    /// full.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.receive(buffer, MsgFlags::MSG_DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    fn receive(&self, buffer: &mut [u8], flags: MsgFlags) -> io::Result<usize> {
        Ok(recv(self.descriptor.as_raw_fd(), buffer, flags)?)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
