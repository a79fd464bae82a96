//! Captures of the packets that every node sends and receives, as files for Wireshark:
//! `nK-ip.pcapng`, IP packets with the mesh's time.
//!
//! A separate thread writes the files, so that the mesh's thread never waits for the disk.

use crate::frame::HEADER;
use meshpace_capture::file::{Capture as File, Direction};
use meshpace_core::{NodeId, Time};
use pcap_file::DataLink;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// EtherTypes of IPv4 and IPv6.
const IP: [[u8; 2]; 2] = [[0x08, 0x00], [0x86, 0xdd]];

struct Packet {
    at: Time,
    node: NodeId,
    direction: Direction,
    bytes: Vec<u8>,
}

/// The captures of all nodes.
pub struct Capture {
    packets: Sender<Packet>,
    writer: JoinHandle<io::Result<()>>,
}

impl Capture {
    /// Creates one file per node in `directory`. Existing files are an error unless `replace` is
    /// set.
    pub fn new(directory: &Path, nodes: usize, replace: bool) -> io::Result<Capture> {
        std::fs::create_dir_all(directory)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", directory.display())))?;
        let create = |node: usize| {
            let path = directory.join(format!("n{node}-ip.pcapng"));
            File::create(&path, DataLink::RAW, "mesh0", replace).map_err(|error| {
                let way = if error.kind() == io::ErrorKind::AlreadyExists { "; --force replaces it" } else { "" };
                io::Error::new(error.kind(), format!("{}: {error}{way}", path.display()))
            })
        };
        let mut files: Vec<File> = (0..nodes).map(create).collect::<io::Result<_>>()?;
        let (packets, given) = channel::<Packet>();
        let write = move || {
            for Packet { at, node, direction, bytes } in given {
                files[node.index()].packet(at, direction, &bytes, 0)?;
            }
            files.iter_mut().try_for_each(File::flush)
        };
        Ok(Capture { packets, writer: thread::Builder::new().name("captures".to_owned()).spawn(write)? })
    }

    /// Adds a frame, if it contains an IP packet.
    pub fn packet(&self, at: Time, node: NodeId, direction: Direction, frame: &[u8]) {
        if frame.get(12..HEADER).is_some_and(|kind| IP.iter().any(|ip| kind == ip)) {
            // If the writer has stopped because of an error, `finish` returns that error.
            let _ = self.packets.send(Packet { at, node, direction, bytes: frame[HEADER..].to_vec() });
        }
    }

    /// Writes all remaining packets and closes the files.
    pub fn finish(self) -> io::Result<()> {
        drop(self.packets);
        self.writer.join().map_err(|_| io::Error::other("the thread that writes them failed"))?
    }
}
