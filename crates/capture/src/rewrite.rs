//! Copies a capture that some other program has made, with other payloads in its UDP datagrams, for
//! example decrypted ones.
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

/// Number of bytes at the start of a capture that identify its format.
pub const MAGIC: usize = 4;

/// Keys that decrypt datagrams.
pub trait Keys {
    /// True if there is a key for datagrams that begin with these bytes.
    fn know(&self, datagram: &[u8]) -> bool;

    /// Decrypts a datagram. `None` if there is no key for it, or if it is incomplete or was
    /// changed.
    fn open(&mut self, datagram: &[u8]) -> Option<Vec<u8>>;
}

/// Counts of packets and datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Done {
    /// Packets read.
    pub packets: u64,
    /// Datagrams decrypted.
    pub opened: u64,
    /// Datagrams for which there is a key, but which are incomplete or were changed.
    pub broken: u64,
}

/// Copies a pcap or pcapng capture to `out`, as pcapng, with datagrams decrypted by `keys`. `magic`
/// are the first bytes of the capture, which are part of it.
///
/// # Errors
/// Returns [`io::ErrorKind::InvalidData`] if the input is not a capture or is cut short, and the
/// system's errors of reading and writing.
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

/// Converts an error of the capture library to an I/O error.
pub fn as_io(error: PcapError) -> io::Error {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "it ends in the middle of a packet");
    match error {
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => cut(),
        PcapError::IoError(error) => error,
        PcapError::IncompleteBuffer => cut(),
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    }
}

/// State of one copy.
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
                        // The interfaces of the new section are counted from zero again.
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

    /// Writes the packet decrypted; a packet that cannot be decrypted is copied unchanged.
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

/// Decrypts all datagrams in the payload of a packet; empty if any of them cannot be decrypted. A
/// host that captures its own traffic sees several datagrams of one size in one packet, before they
/// are split (UDP GSO).
fn opened(keys: &mut impl Keys, content: &[u8]) -> Vec<Vec<u8>> {
    if !keys.know(content) {
        return Vec::new();
    }
    let next = (1..content.len()).filter(|at| keys.know(&content[*at..]));
    let sizes: Vec<usize> = std::iter::once(content.len()).chain(next).collect();
    for size in sizes {
        // The authentication of the datagrams shows whether one ends here and the next begins.
        let all: Option<Vec<_>> = content.chunks(size).map(|datagram| keys.open(datagram)).collect();
        if let Some(all) = all {
            return all;
        }
    }
    Vec::new()
}
