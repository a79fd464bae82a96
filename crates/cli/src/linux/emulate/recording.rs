//! `--record`: writes a stream of lines about the events in the mesh during the emulation, in the
//! format of `run --record`. A reader that follows the file is some tenths of a second behind.
//!
//! A separate thread writes the file, so that the thread of the mesh never waits for the disk.

use meshpace_core::Time;
use meshpace_emulator::frame::Conversation;
use meshpace_emulator::observer::{Observer, SAMPLE};
use meshpace_emulator::packet::CarriedFrame;
use meshpace_emulator::state::State;
use meshpace_lab::stream::{Changes, FlowHeader, Header, Writer};
use meshpace_mesh::Position;
use meshpace_sim::{Config, Event, Interests, Probe};
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// Largest number of streams that have samples. A stream is one direction of a conversation. Frames
/// of further streams are recorded, too.
const MOST_FLOWS: usize = 32;

/// Lines that are passed to the writing thread at each flush.
#[derive(Debug)]
struct Lines {
    text: Vec<u8>,
    to: Sender<Vec<u8>>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // If the writing thread has ended with an error, `finish` reports it.
        let _ = self.to.send(std::mem::take(&mut self.text));
        Ok(())
    }
}

/// Recording of an emulation.
pub struct Recording {
    out: Option<Writer<Lines>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    changes: Changes,
    /// Number of flows that were announced in the stream.
    flows: usize,
}

impl Recording {
    /// Starts a recording into `file`, which must be empty.
    pub fn new(file: File, scenario: &str, seed: u64, config: &Config) -> io::Result<Recording> {
        let header = Header::of_emulation(scenario, seed, config, SAMPLE);
        let (to, given) = channel::<Vec<u8>>();
        let write = move || {
            let mut file = file;
            given.into_iter().try_for_each(|text| file.write_all(&text))
        };
        let writer = thread::Builder::new().name("recording".to_owned()).spawn(write)?;
        let mut out = Writer::new(Lines { text: Vec::new(), to }, config.positions.len());
        out.header(&header);
        out.flush();
        Ok(Recording { out: Some(out), writer: Some(writer), changes: Changes::new(header.nodes), flows: 0 })
    }
}

impl Probe<CarriedFrame> for Recording {
    fn interests(&self) -> Interests {
        Interests::ALL
    }

    fn on(&mut self, now: Time, event: Event<'_, CarriedFrame>) {
        self.out.iter_mut().for_each(|out| out.on(now, event));
    }
}

impl Observer for Recording {
    fn most_streams(&self) -> usize {
        MOST_FLOWS
    }

    fn sample(&mut self, state: &State, places: &[Position]) {
        let (Some(out), now) = (&mut self.out, state.now) else { return };
        for (node, queue) in state.queues.iter().enumerate() {
            self.changes.queue(out, now, node, *queue);
        }
        for (node, place) in places.iter().enumerate() {
            self.changes.place(out, now, node, *place);
        }
        let streams = state.traffic.streams().iter().zip(&state.paths).enumerate();
        for (id, (stream, path)) in streams {
            if id >= self.flows {
                let (from, to) = (stream.from.0, stream.to.0);
                out.begin(now, &FlowHeader { id, name: None, from, to, transport: name(&stream.conversation) });
                self.flows = id + 1;
            }
            let route = (!path.is_empty()).then(|| path.iter().map(|node| node.0).collect());
            self.changes.route(out, now, id, route);
            let counted = &stream.whole;
            out.counted(now, id, counted.delivered_bytes, counted.segments_sent, counted.retransmissions);
        }
        out.flush();
    }

    fn finish(&mut self, ended: Time, frames: u64) -> io::Result<()> {
        // An emulation has no fingerprint, because its seed does not determine its events.
        let made = self.out.take().map_or(Ok(()), |mut out| out.end(ended, frames, ""));
        let written = self.writer.take().map_or(Ok(Ok(())), JoinHandle::join);
        written.map_err(|_| io::Error::other("the thread that writes it failed"))?.and(made)
    }
}

/// Protocol and ports of a conversation (IANA's protocol numbers).
fn name(conversation: &Conversation) -> String {
    let [from, to] = conversation.ports;
    match conversation.protocol {
        Some(1) => "icmp".to_owned(),
        Some(6) => format!("tcp {from} to {to}"),
        Some(17) => format!("udp {from} to {to}"),
        Some(other) => format!("protocol {other}"),
        None => "not ipv4".to_owned(),
    }
}
