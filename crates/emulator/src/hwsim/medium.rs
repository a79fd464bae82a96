//! The mesh between radios of mac80211_hwsim: each has a station of the engine, whose DCF sends its frames at the rates that come with them.

use super::config::Config;
use super::message::{self, Received, Transmission};
use crate::address::Mac;
use crate::frame;
use crate::medium::{Losses, Watch};
use crate::observer::Observer;
use crate::packet::CarriedFrame;
use meshpace_core::{FlowId, NodeId, Rate, Time};
use meshpace_mesh::mac::FrameKind;
use meshpace_mesh::radio::Band;
use meshpace_mesh::radio::links::Links;
use meshpace_mesh::radio::ofdm::{Ofdm, OfdmRate};
use meshpace_mesh::{
    Body, LinkConfig, MacConfig, MacProfile, MeshConfig, Packet, Position, Propagation, RadioConfig, Reception,
    RoutingConfig, RtsPolicy,
};
use meshpace_sim::{Engine, Event, Indication, Interests, Probe};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Noise over the channel, receiver included, dBm: what ratios of signal to noise refer to.
const NOISE_DBM: f64 = -94.0;
/// The FCS, which the kernel leaves out.
const FCS: u32 = 4;
/// Frames that wait in a station. The kernel holds back more than some hundred itself.
const QUEUE: usize = 10_000;
/// A unicast frame for a radio that is not in the file goes to this node, which is none.
const NOBODY: NodeId = NodeId(u16::MAX - 1);
/// The bit by which a radio's own address differs from that of its interface.
const OWN_ADDRESS: u8 = 0x40;

/// A message to the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// When it is due, by the medium's clock.
    pub due: Time,
    /// The message of netlink.
    pub message: Vec<u8>,
}

/// What crossed the medium.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Frames of radios that are in the file.
    pub frames: u64,
    /// Frames of others, which nobody gets.
    pub strangers: u64,
    /// Unicast frames that were acknowledged, and broadcasts that were sent.
    pub sent: u64,
    /// Frames that were given up.
    pub failed: u64,
    /// Attempts with data.
    pub attempts: u64,
    /// Receptions that were handed to the kernel.
    pub received: u64,
}

/// A frame in the hands of the MAC, or what has become of it.
#[derive(Clone, Copy, Debug)]
struct Done {
    at: Time,
    /// The number of its packet.
    id: u32,
    attempts: u32,
    acknowledged: bool,
}

/// What the probe notes.
#[derive(Debug, Default)]
struct Notes {
    /// The packet that each station has on the air, or had last, and the attempts at it.
    current: BTreeMap<NodeId, (u32, u32)>,
    done: Vec<Done>,
    attempts: u64,
}

impl Notes {
    fn finish(&mut self, at: Time, node: NodeId, acknowledged: bool) {
        if let Some((id, attempts)) = self.current.remove(&node) {
            self.done.push(Done { at, id, attempts, acknowledged });
        }
    }
}

/// The probe, which lives in the engine.
struct Notary(Arc<Mutex<Notes>>);

impl Probe<CarriedFrame> for Notary {
    fn interests(&self) -> Interests {
        Interests::NONE
    }

    fn on(&mut self, now: Time, event: Event<'_, CarriedFrame>) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::OnAir { frame } if frame.kind == FrameKind::Data => {
                let Some(Body::Data(packet)) = &frame.body else { return };
                notes.attempts += 1;
                match notes.current.get_mut(&frame.from) {
                    Some((id, attempts)) if *id == packet.id() => *attempts += 1,
                    _ => {
                        notes.current.insert(frame.from, (packet.id(), 1));
                    }
                }
            }
            Event::Sent { node, .. } => notes.finish(now, node, true),
            Event::LinkFailure { node, .. } => notes.finish(now, node, false),
            _ => {}
        }
    }
}

impl Observer for Notary {
    fn is_sampled(&self) -> bool {
        false
    }
}

/// The mesh between the radios.
pub struct Medium {
    engine: Engine<CarriedFrame, Watch>,
    radios: Vec<Mac>,
    snr: Vec<Vec<f64>>,
    /// Bytes that the MAC adds to a packet.
    overhead: u32,
    /// The number of the family in messages to the kernel.
    family: u16,
    notes: Arc<Mutex<Notes>>,
    /// The frames that the kernel waits to be told of, by the numbers of their packets.
    owed: BTreeMap<u32, CarriedFrame>,
    next_id: u32,
    totals: Totals,
}

impl Medium {
    /// A medium for the radios of `config`, whose messages carry the number `family`. The radio is that of 802.11a at 5 GHz.
    pub fn new(config: &Config, family: u16, seed: u64) -> Medium {
        let mesh = mesh(config);
        // Links are given; places only say how long a frame is under way.
        let positions: Vec<Position> =
            (0..config.radios.len()).map(|place| Position { x: place as f64, y: 0.0 }).collect();
        let notes = Arc::new(Mutex::new(Notes::default()));
        let watch = Watch { losses: Losses::default(), observer: Box::new(Notary(Arc::clone(&notes))) };
        let overhead = mesh.mac.rules(true).data_overhead;
        Medium {
            engine: Engine::new(&positions, &mesh, [], seed, watch),
            radios: config.radios.clone(),
            snr: config.snr.clone(),
            overhead,
            family,
            notes,
            owed: BTreeMap::new(),
            next_id: 0,
            totals: Totals::default(),
        }
    }

    /// When something happens next.
    pub fn next_event(&self) -> Time {
        self.engine.next_event()
    }

    /// What crossed it so far.
    pub fn totals(&self) -> Totals {
        let attempts = self.notes.lock().unwrap_or_else(PoisonError::into_inner).attempts;
        Totals { attempts, ..self.totals }
    }

    fn node_of(&self, address: &Mac) -> Option<NodeId> {
        let is_it = |radio: &Mac| radio[0] | OWN_ADDRESS == address[0] | OWN_ADDRESS && radio[1..] == address[1..];
        self.radios.iter().position(is_it).map(|place| NodeId(place as u16))
    }

    /// A datagram of the kernel has come, now: at the time to which the mesh was advanced.
    pub fn on_datagram(&mut self, datagram: &[u8]) {
        let mut rest = datagram;
        for message in message::read(datagram) {
            // The same message, to be kept.
            let length = rest.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes) as usize).min(rest.len());
            let (bytes, behind) = rest.split_at(length);
            rest = behind.get(length.next_multiple_of(4) - length..).unwrap_or_default();
            if let Received::Transmission(sent) = message {
                self.send(&sent, bytes);
            }
        }
    }

    fn send(&mut self, sent: &Transmission<'_>, bytes: &[u8]) {
        let receiver: Option<&Mac> = sent.frame.get(4..10).and_then(|address| address.first_chunk());
        let (Some(node), Some(receiver)) = (self.node_of(&sent.radio), receiver) else {
            self.totals.strangers += 1;
            return;
        };
        self.totals.frames += 1;
        let is_for_all = receiver[0] & 1 != 0;
        let next_hop = if is_for_all { NodeId::BROADCAST } else { self.node_of(receiver).unwrap_or(NOBODY) };
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let size = (sent.frame.len() as u32 + FCS).saturating_sub(self.overhead);
        // The whole message goes over the mesh, with what the kernel knows the frame by.
        let packet =
            CarriedFrame::new(bytes, frame::facts(&[]), node, next_hop, FlowId(0), id).with_series(size, sent.series());
        self.owed.insert(id, packet.clone());
        self.engine.inject_to_neighbour(node, next_hop, packet);
    }

    /// Lets time pass until `until` and puts what the kernel is to be told into `out`, in the order of time.
    pub fn advance(&mut self, until: Time, out: &mut Vec<Outgoing>) {
        loop {
            let indication = self.engine.advance(until);
            self.settle(out);
            match indication {
                None => return,
                Some(Indication::Delivered { node, previous_hop, packet }) => {
                    self.deliver(node, previous_hop, &packet, out)
                }
                Some(_) => {}
            }
        }
    }

    fn deliver(&mut self, node: NodeId, from: NodeId, packet: &CarriedFrame, out: &mut Vec<Outgoing>) {
        let signal = self.signal(from, node);
        let Some(Received::Transmission(sent)) = message::read(packet.sent()).pop() else { return };
        let message = message::receive(self.family, self.own_address(node), &sent, signal);
        self.totals.received += 1;
        out.push(Outgoing { due: self.engine.now(), message });
    }

    /// Tells the kernel of what stations are done with.
    fn settle(&mut self, out: &mut Vec<Outgoing>) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let done = std::mem::take(&mut notes.done);
        drop(notes);
        for Done { at, id, attempts, acknowledged } in done {
            let Some(packet) = self.owed.remove(&id) else { continue };
            let Some(Received::Transmission(sent)) = message::read(packet.sent()).pop() else { continue };
            // Of the ACK.
            let signal = self.signal(packet.destination(), packet.source());
            out.push(Outgoing {
                due: at,
                message: message::status(self.family, &sent, attempts, acknowledged, signal),
            });
            let counter = if acknowledged { &mut self.totals.sent } else { &mut self.totals.failed };
            *counter += 1;
        }
    }

    fn signal(&self, from: NodeId, to: NodeId) -> i32 {
        let snr = self.snr.get(from.index()).and_then(|to_all| to_all.get(to.index()));
        (NOISE_DBM + snr.copied().unwrap_or_default()) as i32
    }

    fn own_address(&self, node: NodeId) -> Mac {
        let mut address = self.radios[node.index()];
        address[0] |= OWN_ADDRESS;
        address
    }
}

/// The mesh of the radios: 802.11a without RTS, links as given.
fn mesh(config: &Config) -> MeshConfig {
    let ofdm = Ofdm { band: Band::Five, data: OfdmRate::NonHt(0), basic: OfdmRate::NonHt(0) };
    let nodes = || (0..config.radios.len()).map(|place| NodeId(place as u16));
    let links = nodes().flat_map(|from| nodes().map(move |to| (from, to))).filter(|(from, to)| from != to);
    let received = links.map(|(from, to)| (from, to, NOISE_DBM + config.snr[from.index()][to.index()])).collect();
    MeshConfig {
        radio: RadioConfig {
            rate: Rate::from_mbps(6),
            basic_rate: Rate::from_mbps(6),
            ofdm: Some(ofdm),
            noise_dbm: NOISE_DBM,
            // That of OFDM, as scenarios have it.
            carrier_sense_dbm: -62.0,
            reception: Reception::Sinr,
            propagation: Propagation::Links(Links::new(received)),
            ..RadioConfig::default()
        },
        mac: MacConfig { profile: MacProfile::Ieee, rts: RtsPolicy::Never, ..MacConfig::default() },
        routing: RoutingConfig::Static,
        link: LinkConfig { limit: QUEUE, ..LinkConfig::default() },
    }
}
