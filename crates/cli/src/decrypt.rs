//! `meshpace decrypt`: a capture of encrypted TPA, with the keys, as a capture of plain TPA.

mod datagram;

use crate::output::complain;
use crate::{FAILED, REFUSED};
use clap::Args;
use datagram::Datagram;
use meshpace_lab::record::is_kept;
use meshpace_live::tpa::secrets::Secrets;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace decrypt`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The file that `--keylog` of `send`, `recv` or `tunnel` wrote at either end.
    #[arg(long, value_name = "FILE")]
    keylog: PathBuf,
    /// The capture, pcap or pcapng, that tcpdump, tshark or Wireshark wrote.
    capture: PathBuf,
    /// The capture to write, as pcapng; one that is there is replaced.
    plain: PathBuf,
}

/// Counts of packets and datagrams.
#[derive(Clone, Copy, Default, Debug)]
struct Done {
    packets: u64,
    opened: u64,
    /// Datagrams that there is a key for and that are not whole.
    broken: u64,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let refuse = |error: io::Error| {
        complain(&error.to_string());
        ExitCode::from(REFUSED)
    };
    let mut secrets = match Secrets::read(&arguments.keylog) {
        Ok(secrets) => secrets,
        Err(error) => return refuse(error),
    };
    let capture = match File::open(&arguments.capture) {
        Ok(file) => file,
        Err(error) => return refuse(about(&arguments.capture)(error)),
    };
    match decrypt(&mut secrets, capture, arguments) {
        Ok(Done { packets, opened, broken }) => {
            complain(&format!("{packets} packets, {opened} datagrams opened, {broken} not whole or cut short"));
            if opened > 0 {
                return ExitCode::SUCCESS;
            }
            let (log, capture) = (arguments.keylog.display(), arguments.capture.display());
            complain(&format!("none of the {} keys of {log} opens anything in {capture}", secrets.len()));
            ExitCode::from(FAILED)
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => refuse(error),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(FAILED)
        }
    }
}

fn about(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The system's error for an error of the capture.
fn as_io(error: PcapError) -> io::Error {
    let cut = || io::Error::new(io::ErrorKind::InvalidData, "it ends in the middle of a packet");
    match error {
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => cut(),
        PcapError::IoError(error) => error,
        PcapError::IncompleteBuffer => cut(),
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    }
}

/// Writes the plain capture; it gets its name when all of it is there.
fn decrypt(secrets: &mut Secrets, mut capture: File, arguments: &Arguments) -> io::Result<Done> {
    let (from, to) = (about(&arguments.capture), about(&arguments.plain));
    let mut magic = [0; 4];
    let is_whole = capture.read_exact(&mut magic);
    is_whole.map_err(|_| from(io::Error::new(io::ErrorKind::InvalidData, "neither pcap nor pcapng")))?;
    capture.rewind().map_err(&from)?;
    let beside = arguments.plain.parent().filter(|parent| !parent.as_os_str().is_empty());
    let is_kept = is_kept(&arguments.plain);
    let directory = if is_kept { std::env::temp_dir() } else { beside.unwrap_or(Path::new(".")).to_owned() };
    let file = tempfile::NamedTempFile::new_in(directory).map_err(&to)?;
    let writer = PcapNgWriter::new(BufWriter::new(file)).map_err(as_io).map_err(&to)?;
    let mut plain = Plain { writer, secrets, done: Done::default() };
    let capture = BufReader::new(capture);
    let read = if magic == [0x0a, 0x0d, 0x0d, 0x0a] { plain.pcapng(capture) } else { plain.pcap(capture) };
    read.map_err(from)?;
    let Plain { writer, done, .. } = plain;
    let mut file = writer.into_inner().into_inner().map_err(|error| to(error.into_error()))?;
    if is_kept {
        file.rewind().map_err(&to)?;
        let mut there = File::create(&arguments.plain).map_err(&to)?;
        io::copy(&mut file, &mut there).map_err(to)?;
        return Ok(done);
    }
    file.persist(&arguments.plain).map_err(|error| to(error.error))?;
    Ok(done)
}

/// The capture that is being written.
struct Plain<'a, W: Write> {
    writer: PcapNgWriter<W>,
    secrets: &'a mut Secrets,
    done: Done,
}

impl<W: Write> Plain<'_, W> {
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
            Some(datagram) if whole => opened(self.secrets, datagram.content),
            _ => Vec::new(),
        };
        if opened.is_empty() {
            self.done.broken += u64::from(found.is_some_and(|datagram| self.secrets.know(datagram.content)));
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
fn opened(secrets: &mut Secrets, content: &[u8]) -> Vec<Vec<u8>> {
    if !secrets.know(content) {
        return Vec::new();
    }
    let next = (1..content.len()).filter(|at| secrets.know(&content[*at..]));
    let sizes: Vec<usize> = std::iter::once(content.len()).chain(next).collect();
    for size in sizes {
        // Their authentication says whether this is where one ends and the next begins.
        let all: Option<Vec<_>> = content.chunks(size).map(|datagram| secrets.open(datagram)).collect();
        if let Some(all) = all {
            return all;
        }
    }
    Vec::new()
}
