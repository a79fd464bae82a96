//! Netlink requests that the kernel answers with a list.

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};
use std::io;

/// A netlink socket for requests.
pub struct Link(Socket);

impl Link {
    /// Opens a socket for one of the kernel's netlink protocols.
    pub fn new(protocol: isize) -> io::Result<Link> {
        let socket = Socket::new(protocol)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Link(socket))
    }

    /// Index of a device, if the device exists.
    pub fn index(&self, device: &str) -> Option<u32> {
        rustix::net::netdevice::name_to_index(&self.0, device).ok()
    }

    /// Returns all answers of the kernel to `question`. Answers that the library cannot parse are
    /// skipped.
    pub fn list<M>(&mut self, question: M) -> io::Result<Vec<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
        NetlinkPayload<M>: From<M>,
    {
        self.ask(question, NLM_F_DUMP)
    }

    /// Returns the only answer to `question`.
    pub fn one<M>(&mut self, question: M) -> io::Result<Option<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
        NetlinkPayload<M>: From<M>,
    {
        Ok(self.ask(question, 0)?.pop())
    }

    fn ask<M>(&mut self, question: M, flags: u16) -> io::Result<Vec<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable,
        NetlinkPayload<M>: From<M>,
    {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(question));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.0.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            let (block, _) = self.0.recv_from_full()?;
            let mut rest = &block[..];
            while let Ok(frame) = NetlinkBuffer::new_checked(rest) {
                let length = frame.length() as usize;
                match NetlinkMessage::<M>::deserialize(&rest[..length]).map(|message| message.payload) {
                    Ok(NetlinkPayload::Done(_)) => return Ok(answers),
                    Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                    Ok(NetlinkPayload::InnerMessage(answer)) => answers.push(answer),
                    Ok(_) | Err(_) => {}
                }
                // Messages begin at multiples of four bytes.
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            }
            if flags & NLM_F_DUMP == 0 {
                return Ok(answers);
            }
        }
    }
}
