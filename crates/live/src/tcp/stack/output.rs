//! Output of the stack: encoding segments as packets and sending them.

use super::super::interface::Interface;
use super::super::packet;
use super::conversation::Said;
use super::entry::Entry;
use meshpace_transport::tcp::wire::{Addresses, Header, Options};
use std::io;
use std::net::Ipv4Addr;

/// Output of the stack.
#[derive(Debug)]
pub(super) struct Output<I> {
    pub(super) interface: I,
    pub(super) next_number: u16,
    pub(super) sent: u64,
    pub(super) unsent: u64,
    /// Buffer in which packets are encoded.
    pub(super) buffer: Vec<u8>,
}

impl<I: Interface> Output<I> {
    /// Sends a segment of a connection.
    pub(super) fn send(&mut self, entry: &Entry, said: &Said) -> io::Result<()> {
        let (peer, peer_port, own_port) = entry.key;
        let mut header = entry.connection.header(&entry.numbers, said, (own_port, peer_port));
        if said.is_syn() {
            header.options = Options { timestamps: header.options.timestamps, ..entry.syn_options };
        }
        let (offset, length) = said.range();
        // Options that do not fit beside a full segment are omitted. Otherwise the packet would be
        // longer than the path MTU.
        header.options = header.options.within(usize::from(entry.path_mss).saturating_sub(length));
        let payload = match &entry.buffers {
            Some((ring, _)) if length > 0 => ring.range(offset, length),
            _ => Some((&[][..], &[][..])),
        };
        debug_assert!(payload.is_some(), "what is not acknowledged is kept");
        let Some(payload) = payload else { return Ok(()) };
        self.transmit(peer, &header, payload, said.is_ecn_capable())
    }

    /// Sends a packet.
    pub(super) fn transmit(
        &mut self,
        to: Ipv4Addr,
        header: &Header,
        payload: (&[u8], &[u8]),
        ecn_capable: bool,
    ) -> io::Result<()> {
        let addresses = Addresses { source: self.interface.address().octets(), destination: to.octets() };
        self.next_number = self.next_number.wrapping_add(1);
        let packet = packet::encode(&mut self.buffer, header, addresses, payload, self.next_number, ecn_capable);
        // A packet that the interface refuses is lost, as on any link. The protocols retransmit it,
        // unless it is too long.
        let result = self.interface.send(packet);
        *(if result.is_ok() { &mut self.sent } else { &mut self.unsent }) += 1;
        result
    }
}
