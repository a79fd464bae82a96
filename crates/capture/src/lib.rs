//! Captures for Wireshark: the frames of every node's radio and the packets of every node's
//! transport.
//!
//! Node K writes two files. `nK-radio.pcapng` (radiotap and 802.11) contains every frame that the
//! node transmits, with the time of its beginning, and every frame that it decodes, with the time
//! of its end, whatever its destination. `nK-ip.pcapng` contains the packets that the transport of
//! the node sends and receives, above the queue.
//!
//! Payload is not captured, but the original lengths include it. The heads of `network`, `aodv` and
//! `dot11` say which lengths differ from those that the simulator uses.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod address;
mod aodv;
pub mod datagram;
mod dot11;
pub mod file;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod network;
mod olsr;
mod radiotap;
pub mod rewrite;

use file::{Capture, Direction};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::RadioConfig;
use meshpace_mesh::mac::{Frame, FrameKind, Mpdu};
use meshpace_mesh::radio::plcp::SHORT_PLCP;
use meshpace_mesh::radio::power::dbm;
use meshpace_sim::{Aggregate, Config, Event, Interests, Probe, SimPacket};
use network::FlowFacts;
use pcap_file::DataLink;
use radiotap::{Ht, Radio};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Layers that are captured, one file each per node.
const LAYERS: [&str; 2] = ["radio", "ip"];
/// Bytes of the delimiter before each MPDU of an aggregate.
const DELIMITER: u32 = 4;

fn path(dir: &Path, node: usize, layer: &str) -> PathBuf {
    dir.join(format!("n{node}-{layer}.pcapng"))
}

/// Error when a capture could not be written.
#[derive(Debug)]
pub struct CaptureError {
    /// The file or directory concerned.
    pub path: PathBuf,
    /// Error of the system.
    pub source: io::Error,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        if self.source.kind() == io::ErrorKind::AlreadyExists {
            write!(f, "{path} exists already and is not overwritten unasked")
        } else {
            write!(f, "cannot write the capture {path}: {}", self.source)
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// A probe that captures one run. After the run, [`PcapProbe::finish`] tells whether everything was
/// written.
pub struct PcapProbe {
    radios: Vec<Capture>,
    transports: Vec<Capture>,
    flows: Vec<FlowFacts>,
    config: RadioConfig,
    /// True if the MAC is that of 802.11n, whose data frames have a header with QoS control.
    has_qos: bool,
    /// Number of aggregates in the radio file of each node: the next reference number.
    aggregates: Vec<u32>,
    /// Buffer for the packet being encoded; kept to reuse its memory.
    scratch: Vec<u8>,
    /// First failure; nothing is written after it.
    failure: Option<CaptureError>,
}

impl PcapProbe {
    /// First file in `dir` that captures of `nodes` nodes would overwrite; `None` if there is none.
    pub fn existing(dir: &Path, nodes: usize) -> Option<PathBuf> {
        let all = (0..nodes).flat_map(|node| LAYERS.map(|layer| path(dir, node, layer)));
        all.into_iter().find(|path| path.symlink_metadata().is_ok())
    }

    /// Creates `dir` if it does not exist, and in it the files of every node of `config`. An
    /// existing file is an error unless `replace` is set; the check happens before any file is
    /// created.
    pub fn create(dir: &Path, config: &Config, replace: bool) -> Result<PcapProbe, CaptureError> {
        let nodes = config.positions.len();
        if let Some(path) = PcapProbe::existing(dir, nodes).filter(|_| !replace) {
            return Err(CaptureError { path, source: io::ErrorKind::AlreadyExists.into() });
        }
        std::fs::create_dir_all(dir).map_err(|source| CaptureError { path: dir.to_owned(), source })?;
        let files = |layer: &str, link| {
            let create = |node| {
                let path = path(dir, node, layer);
                Capture::create(&path, link, &format!("n{node}-{layer}"), replace)
                    .map_err(|source| CaptureError { path, source })
            };
            (0..nodes).map(create).collect::<Result<Vec<_>, _>>()
        };
        Ok(PcapProbe {
            radios: files(LAYERS[0], DataLink::IEEE802_11_RADIOTAP)?,
            transports: files(LAYERS[1], DataLink::RAW)?,
            flows: config.flows.iter().map(FlowFacts::new).collect(),
            config: config.mesh.radio.clone(),
            has_qos: config.mesh.mac.ht.is_some(),
            aggregates: vec![0; nodes],
            scratch: Vec::new(),
            failure: None,
        })
    }

    /// Writes what is still buffered, or returns the first failure since the start.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        for capture in self.radios.iter_mut().chain(&mut self.transports) {
            let written = capture.flush();
            note(&mut self.failure, capture, written);
        }
        self.failure.map_or(Ok(()), Err)
    }

    /// Writes a frame that `node` received with the power `heard`, or sent if `heard` is `None`.
    fn frame(&mut self, now: Time, node: NodeId, frame: &Frame<SimPacket>, heard: Option<f64>) {
        // The MPDUs of an aggregate come in a separate event.
        if self.failure.is_none() && !is_aggregate(frame) {
            self.write(now, node, frame, heard, Part { offset: Duration::ZERO, aggregate: None });
        }
    }

    fn write(&mut self, now: Time, node: NodeId, frame: &Frame<SimPacket>, heard: Option<f64>, part: Part) {
        let begins = if heard.is_some() { Time(now.0.saturating_sub(frame.air_time.0)) } else { now };
        let (rate, header) = self.config.rate_and_header(frame.rate);
        self.scratch.clear();
        // The radio's clock refers to the first bit of the MPDU, after the PLCP header.
        let radio = Radio {
            tsft: begins.saturating_add(header + part.offset).0 / 1_000,
            frequency_mhz: (self.config.frequency_hz() / 1e6) as u16,
            short_preamble: header == SHORT_PLCP,
            is_ofdm: self.config.ofdm.is_some(),
            rate,
            ht: self.config.ofdm.and_then(|ofdm| Ht::of(ofdm.rate_of(frame.rate))),
            aggregate: part.aggregate,
            signal: heard.map(|power| dbm(power).round() as i8),
        };
        radiotap::write(&mut self.scratch, radio);
        let left_out = dot11::write(&mut self.scratch, frame, self.has_qos, &self.flows);
        let direction = if heard.is_some() { Direction::Inbound } else { Direction::Outbound };
        let capture = &mut self.radios[node.index()];
        let written = capture.packet(now, direction, &self.scratch, left_out);
        note(&mut self.failure, capture, written);
    }

    fn packet(&mut self, now: Time, node: NodeId, direction: Direction, packet: &SimPacket) {
        if self.failure.is_some() {
            return;
        }
        self.scratch.clear();
        let left_out = network::packet(&mut self.scratch, packet, &self.flows[packet.flow.index()]);
        let capture = &mut self.transports[node.index()];
        let written = capture.packet(now, direction, &self.scratch, left_out);
        note(&mut self.failure, capture, written);
    }
}

/// Radio data of one MPDU in addition to its frame.
struct Part {
    /// Time from the end of the PLCP header to the first bit of the MPDU.
    offset: Duration,
    /// Reference to the aggregate, if the MPDU is part of one.
    aggregate: Option<radiotap::Aggregate>,
}

/// True if a frame stands for the MPDUs of an aggregate.
fn is_aggregate(frame: &Frame<SimPacket>) -> bool {
    frame.kind == FrameKind::Data && frame.body.is_none()
}

fn note(failure: &mut Option<CaptureError>, capture: &Capture, written: io::Result<()>) {
    if let (None, Err(source)) = (&failure, written) {
        *failure = Some(CaptureError { path: capture.path().to_owned(), source });
    }
}

impl Probe<SimPacket> for PcapProbe {
    fn interests(&self) -> Interests {
        Interests::ALL
    }

    fn on(&mut self, now: Time, event: Event<'_, SimPacket>) {
        match event {
            Event::OnAir { frame } => self.frame(now, frame.from, frame, None),
            Event::Decoded { node, frame, power } => self.frame(now, node, frame, Some(power)),
            Event::Inject { node, packet } => self.packet(now, node, Direction::Outbound, packet),
            Event::Deliver { node, packet } => self.packet(now, node, Direction::Inbound, packet),
            _ => {}
        }
    }

    /// Writes the received MPDUs of an aggregate, or at the sender all that it sends.
    fn on_aggregate(&mut self, now: Time, aggregate: Aggregate<'_, SimPacket>) {
        if self.failure.is_some() {
            return;
        }
        let Aggregate { frame, mpdus, reception } = aggregate;
        let (node, which) = reception.map_or((frame.from, u64::MAX), |received| (received.node, received.mpdus));
        let reference = self.aggregates[node.index()];
        self.aggregates[node.index()] = reference.wrapping_add(1);
        let (rate, _) = self.config.rate_and_header(frame.rate);
        let mut before = 0;
        for (place, mpdu) in mpdus.iter().enumerate() {
            let bits = u64::from(before + DELIMITER) * 8;
            before += DELIMITER + mpdu.bytes.next_multiple_of(4);
            if which >> place & 1 == 0 {
                continue;
            }
            let &Mpdu { bytes, sequence, retry, body } = mpdu;
            let alone = Frame { bytes, sequence, retry, body: Some(body), ..*frame };
            let part = Part {
                offset: Duration(bits * 1_000_000_000 / rate.0),
                aggregate: Some(radiotap::Aggregate { reference, is_last: place + 1 == mpdus.len() }),
            };
            self.write(now, node, &alone, reception.map(|received| received.power), part);
        }
    }
}
