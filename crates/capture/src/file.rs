//! A pcapng file that is open only while blocks are written to it.
//!
//! Source: IETF draft-ietf-opsawg-pcapng (section header, interface description with `if_tsresol`,
//! enhanced packet with `epb_flags`). A mesh has two files per node. If all of them stayed open,
//! they would exceed the number of files that a process may open. Each file therefore has a buffer,
//! and is opened only to append it; one file is open at a time.

use meshpace_core::Time;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Number of buffered bytes at which the file is opened and written.
const BUFFER: usize = 16 * 1024;
/// `if_tsresol`: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the node.
    Inbound,
    /// From the node.
    Outbound,
}

/// A capture of one interface.
pub struct Capture {
    writer: PcapNgWriter<Spool>,
}

impl Capture {
    /// Creates the file at `path`. An existing file is an error unless `replace` is set.
    pub fn create(path: &Path, link: DataLink, interface: &str, replace: bool) -> io::Result<Capture> {
        let mut options = OpenOptions::new();
        if replace {
            options.write(true).create(true).truncate(true)
        } else {
            options.write(true).create_new(true)
        };
        options.open(path)?;
        let spool = Spool { path: path.to_owned(), buffer: Vec::new(), failed: false };
        // The byte order is the same on every machine, so that the same run writes the same bytes.
        let mut writer = PcapNgWriter::with_endianness(spool, Endianness::Little).map_err(as_io)?;
        let description = InterfaceDescriptionBlock {
            linktype: link,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(interface)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        writer.write_pcapng_block(description).map_err(as_io)?;
        Ok(Capture { writer })
    }

    /// Adds a packet. `data` is the captured part, and `left_out` the number of bytes that are not
    /// captured.
    pub fn packet(&mut self, now: Time, direction: Direction, data: &[u8], left_out: u32) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: std::time::Duration::from_nanos(now.0),
            original_len: data.len() as u32 + left_out,
            data: Cow::Borrowed(data),
            options: vec![EnhancedPacketOption::Flags(match direction {
                Direction::Inbound => 1,
                Direction::Outbound => 2,
            })],
        };
        self.writer.write_pcapng_block(block).map_err(as_io)?;
        if self.writer.get_ref().buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Writes the buffered blocks to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().append()
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.writer.get_ref().path
    }
}

fn as_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// Buffer of whole blocks for a file.
struct Spool {
    path: PathBuf,
    buffer: Vec<u8>,
    /// True after a failure. The file may then end within a block, and nothing more is appended.
    failed: bool,
}

impl Spool {
    fn append(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() || self.failed {
            return Ok(());
        }
        let done =
            OpenOptions::new().append(true).open(&self.path).and_then(|mut file: File| file.write_all(&self.buffer));
        self.failed = done.is_err();
        self.buffer.clear();
        done
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
