//! A capture that somebody else has made, written again with other contents of its UDP datagrams, such as those without encryption.
//!
//! Sources: IETF draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap.

use crate::datagram::Datagram;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::io::{self, Read, Write};

/// Bytes that a capture begins with, which say of which kind it is.
pub const MAGIC: usize = 4;

/// Keys of datagrams.
pub trait Keys {
    /// True if there is a key for datagrams that begin like this.
    fn know(&self, datagram: &[u8]) -> bool;

    /// The datagram without encryption; none if there is no key for it or it is not whole.
    fn open(&mut self, datagram: &[u8]) -> Option<Vec<u8>>;
}

/// Counts of packets and datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Done {
    /// Packets read.
    pub packets: u64,
    /// Datagrams opened.
    pub opened: u64,
    /// Datagrams that there is a key for and that are not whole.
    pub broken: u64,
}

/// Writes a capture, pcap or pcapng, that begins with `magic` (those bytes included in it) to `out`, as pcapng, with datagrams opened by `keys`.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for a capture that is none or is cut short, and the system's for reading and writing.
pub fn rewrite<W: Write>(
    magic: [u8; MAGIC],
    capture: impl Read,
    keys: &mut impl Keys,
    out: &mut PcapNgWriter<W>,
) -> io::Result<Done> {
    let mut plain = Plain { writer: out, keys, done: Done::default() };
    if magic == [0x0a, 0x0d, 0x0d, 0x0a] {
        plain.pcapng(capture)?
    } else {
        plain.pcap(capture)?
    }
    Ok(plain.done)
}

/// The system's error for an error of the capture.
pub fn as_io(error: PcapError) -> io::Error {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "it ends in the middle of a packet");
    match error {
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => cut(),
        PcapError::IoError(error) => error,
        PcapError::IncompleteBuffer => cut(),
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    }
}

/// The capture that is being written.
struct Plain<'a, W: Write, K: Keys> {
    writer: &'a mut PcapNgWriter<W>,
    keys: &'a mut K,
    done: Done,
}

impl<W: Write, K: Keys> Plain<'_, W, K> {
    fn pcapng(&mut self, capture: impl Read) -> io::Result<()> {
        let mut reader = PcapNgReader::new(capture).map_err(as_io)?;
        let mut links = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.map_err(as_io)? {
                Block::EnhancedPacket(packet) => {
                    let link = links.get(packet.interface_id as usize).copied();
                    self.packet(link.unwrap_or(DataLink::NULL), &packet)?;
                }
                block => {
                    if let Block::InterfaceDescription(interface) = &block {
                        links.push(interface.linktype);
                    } else if let Block::SectionHeader(_) = &block {
                        // Its interfaces are counted from zero again.
                        links.clear();
                    }
                    self.writer.write_block(&block).map_err(as_io)?;
                }
            }
        }
        Ok(())
    }

    fn pcap(&mut self, capture: impl Read) -> io::Result<()> {
        let mut reader = PcapReader::new(capture).map_err(as_io)?;
        let linktype = reader.header().datalink;
        let options = vec![InterfaceDescriptionOption::IfTsResol(9)];
        self.writer.write_pcapng_block(InterfaceDescriptionBlock { linktype, snaplen: 0, options }).map_err(as_io)?;
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(as_io)?;
            let block = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: packet.timestamp,
                original_len: packet.orig_len,
                data: packet.data,
                options: Vec::new(),
            };
            self.packet(linktype, &block)?;
        }
        Ok(())
    }

    /// Writes what a packet is without encryption; a packet of anything else as it is.
    fn packet(&mut self, link: DataLink, packet: &EnhancedPacketBlock<'_>) -> io::Result<()> {
        self.done.packets += 1;
        let whole = packet.data.len() == packet.original_len as usize;
        let found = Datagram::find(link, &packet.data);
        let opened = match &found {
            Some(datagram) if whole => opened(self.keys, datagram.content),
            _ => Vec::new(),
        };
        if opened.is_empty() {
            self.done.broken += u64::from(found.is_some_and(|datagram| self.keys.know(datagram.content)));
            self.writer.write_pcapng_block(packet.clone()).map_err(as_io)?;
            return Ok(());
        }
        let Some(datagram) = found else { return Ok(()) };
        for content in opened {
            let data = datagram.with(&content);
            self.done.opened += 1;
            let (original_len, data) = (data.len() as u32, Cow::Owned(data));
            let block = EnhancedPacketBlock { original_len, data, ..packet.clone() };
            self.writer.write_pcapng_block(block).map_err(as_io)?;
        }
        Ok(())
    }
}

/// The datagrams of a packet without encryption; none if it is not all of them. A host that captures what it sends sees several datagrams of one
/// size in one packet, before they are cut (UDP GSO).
fn opened(keys: &mut impl Keys, content: &[u8]) -> Vec<Vec<u8>> {
    if !keys.know(content) {
        return Vec::new();
    }
    let next = (1..content.len()).filter(|at| keys.know(&content[*at..]));
    let sizes: Vec<usize> = std::iter::once(content.len()).chain(next).collect();
    for size in sizes {
        // Their authentication says whether this is where one ends and the next begins.
        let all: Option<Vec<_>> = content.chunks(size).map(|datagram| keys.open(datagram)).collect();
        if let Some(all) = all {
            return all;
        }
    }
    Vec::new()
}
