//! The mesh between radios of mac80211_hwsim. Each radio has a station of the engine, whose DCF
//! sends its frames at the rates that come with them.

use super::config::Config;
use super::message::{self, Received, Transmission};
use crate::address::Mac;
use crate::frame;
use crate::medium::Watch;
use crate::observer::Observer;
use crate::packet::CarriedFrame;
use crate::state::Losses;
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

/// Noise over the channel, receiver included, dBm. Signal-to-noise ratios refer to it.
const NOISE_DBM: f64 = -94.0;
/// Length of the FCS in bytes. The kernel's frames do not contain it.
const FCS: u32 = 4;
/// Limit of the queue of a station, in frames. The kernel itself stops after some hundred.
const QUEUE: usize = 10_000;
/// Receiver of a unicast frame for a radio that is not in the file. No node has this number.
const NOBODY: NodeId = NodeId(u16::MAX - 1);
/// Bit by which a radio's own address differs from the address of its interface.
const OWN_ADDRESS: u8 = 0x40;

/// A message to the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Time at which it is due, by the medium's clock.
    pub due: Time,
    /// The netlink message.
    pub message: Vec<u8>,
}

/// Counts of the frames that crossed the medium.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Frames of radios that are in the file.
    pub frames: u64,
    /// Frames of other radios, which are not delivered.
    pub strangers: u64,
    /// Unicast frames that were acknowledged, and broadcasts that were sent.
    pub sent: u64,
    /// Frames that the MAC gave up.
    pub failed: u64,
    /// Attempts to send data frames.
    pub attempts: u64,
    /// Largest number of attempts that the kernel requested for a unicast frame.
    pub most_wanted: u32,
    /// Receptions that were reported to the kernel.
    pub received: u64,
}

/// Result of a frame that the MAC has finished with.
#[derive(Clone, Copy, Debug)]
struct Done {
    at: Time,
    /// Number of its packet.
    id: u32,
    attempts: u32,
    acknowledged: bool,
}

/// Notes of the probe.
#[derive(Debug, Default)]
struct Notes {
    /// Packet that each station has on the air, or had last, and the number of attempts so far.
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

/// The probe, which is owned by the engine.
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
    /// Length of the headers that the MAC adds to a packet, bytes.
    overhead: u32,
    /// Number of the netlink family in messages to the kernel.
    family: u16,
    notes: Arc<Mutex<Notes>>,
    /// Frames whose status has not been reported to the kernel yet, by the number of their packet.
    owed: BTreeMap<u32, CarriedFrame>,
    next_id: u32,
    totals: Totals,
}

impl Medium {
    /// Creates a medium for the radios of `config`. `family` is the number of the netlink family in
    /// its messages. The radio is that of 802.11a at 5 GHz.
    pub fn new(config: &Config, family: u16, seed: u64) -> Medium {
        let mesh = mesh(config);
        // Links are given, so positions only determine propagation delays.
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

    /// Time of the next event.
    pub fn next_event(&self) -> Time {
        self.engine.next_event()
    }

    /// Counts of the frames that crossed the medium so far.
    pub fn totals(&self) -> Totals {
        let attempts = self.notes.lock().unwrap_or_else(PoisonError::into_inner).attempts;
        Totals { attempts, ..self.totals }
    }

    fn node_of(&self, address: &Mac) -> Option<NodeId> {
        let is_it = |radio: &Mac| radio[0] | OWN_ADDRESS == address[0] | OWN_ADDRESS && radio[1..] == address[1..];
        self.radios.iter().position(is_it).map(|place| NodeId(place as u16))
    }

    /// Handles a datagram of the kernel now, that is at the time to which the mesh was advanced.
    pub fn on_datagram(&mut self, datagram: &[u8]) {
        let mut rest = datagram;
        for message in message::read(datagram) {
            // Bytes of the same message, which are kept.
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
        let series = sent.series();
        if !is_for_all {
            let wanted = series.iter().map(|&(_, attempts)| u32::from(attempts)).sum();
            self.totals.most_wanted = self.totals.most_wanted.max(wanted);
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let size = (sent.frame.len() as u32 + FCS).saturating_sub(self.overhead);
        // The whole message crosses the mesh, including the data by which the kernel identifies the
        // frame.
        let packet =
            CarriedFrame::new(bytes, frame::facts(&[]), node, next_hop, FlowId(0), id).with_series(size, series);
        self.owed.insert(id, packet.clone());
        self.engine.inject_to_neighbour(node, next_hop, packet);
    }

    /// Advances the mesh until `until` and adds the messages for the kernel to `out`, in the order
    /// of time.
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

    /// Reports the frames that stations have finished with to the kernel.
    fn settle(&mut self, out: &mut Vec<Outgoing>) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let done = std::mem::take(&mut notes.done);
        drop(notes);
        for Done { at, id, attempts, acknowledged } in done {
            let Some(packet) = self.owed.remove(&id) else { continue };
            let Some(Received::Transmission(sent)) = message::read(packet.sent()).pop() else { continue };
            // Power of the ACK.
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

/// The mesh of the radios: 802.11a without RTS, with the given links.
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
            // Threshold of OFDM, as in scenarios.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hwsim::message::transmission_of;

    const ALL: Mac = [0xff; 6];

    fn radio(number: u8) -> Mac {
        [2, 0, 0, 0, number, 0]
    }

    fn own(number: u8) -> Mac {
        [0x42, 0, 0, 0, number, 0]
    }

    /// Radios in a row, each of which receives its neighbours.
    fn row(radios: u8, seed: u64) -> Medium {
        let snr = |from: u8, to: u8| if from.abs_diff(to) == 1 { 30.0 } else { -40.0 };
        let snr = (0..radios).map(|from| (0..radios).map(|to| snr(from, to)).collect()).collect();
        Medium::new(&Config { radios: (0..radios).map(radio).collect(), snr }, 28, seed)
    }

    /// A frame of 100 bytes, which is 104 with its FCS.
    fn frame(from: u8, to: Mac) -> Vec<u8> {
        let mut frame = vec![0x08, 0, 0, 0];
        frame.extend(to);
        frame.extend(radio(from));
        frame.resize(100, 0);
        transmission_of(own(from), &frame)
    }

    fn advance(medium: &mut Medium, us: u64) -> Vec<Outgoing> {
        let mut out = Vec::new();
        medium.advance(Time(us * 1_000), &mut out);
        out
    }

    #[test]
    fn a_frame_arrives_and_its_sender_is_told() {
        let mut medium = row(3, 1);
        assert_eq!(advance(&mut medium, 1_000), []);
        medium.on_datagram(&frame(0, radio(1)));
        let out = advance(&mut medium, 2_000);
        // At 54 Mbit/s the frame takes 20 us and 4 symbols of 4 us for 854 bits, plus 25 us in the
        // link layer at each end. The ACK is sent at 24 Mbit/s: 28 us after a SIFS of 16 us.
        let [received, told] = &out[..] else { panic!("{out:?}") };
        assert_eq!(received.due.0 / 1_000, 1_000 + 25 + 36 + 25);
        assert_eq!(told.due.0 / 1_000, 1_000 + 25 + 36 + 16 + 28);
        let bytes = frame(0, radio(1));
        let Some(Received::Transmission(sent)) = message::read(&bytes).pop() else { panic!() };
        assert_eq!(received.message, message::receive(28, own(1), &sent, -64));
        assert_eq!(told.message, message::status(28, &sent, 1, true, -64));
        let totals = Totals { frames: 1, sent: 1, attempts: 1, most_wanted: 5, received: 1, ..Totals::default() };
        assert_eq!(medium.totals(), totals);
    }

    #[test]
    fn nobody_answers_and_the_attempts_are_those_asked_for() {
        let mut medium = row(3, 1);
        advance(&mut medium, 1_000);
        medium.on_datagram(&frame(0, radio(2)));
        let out = advance(&mut medium, 100_000);
        let [told] = &out[..] else { panic!("{out:?}") };
        let bytes = frame(0, radio(2));
        let Some(Received::Transmission(sent)) = message::read(&bytes).pop() else { panic!() };
        assert_eq!(told.message[4..], message::status(28, &sent, 5, false, -134)[4..]);
        // The attempts take three times 36 us and twice 164 us on the air (854 bits at 6 Mbit/s: 36
        // symbols and 20 us). After each follows the wait for an ACK: 16 us, 9 us, 20 us. Before
        // the first attempt there is a delay of 25 us. The four backoffs have at most 31, 63, 127
        // and 255 slots, each after 34 us.
        let least = 25 + 3 * 36 + 2 * 164 + 5 * 45;
        let spent = told.due.0 / 1_000 - 1_000;
        assert!((least..=least + 4 * 34 + 9 * (31 + 63 + 127 + 255)).contains(&spent), "{spent} us, {least} at least");
        assert_eq!(medium.totals(), Totals { frames: 1, failed: 1, attempts: 5, most_wanted: 5, ..Totals::default() });
    }

    #[test]
    fn a_broadcast_comes_to_all_that_hear_it() {
        let mut medium = row(4, 1);
        advance(&mut medium, 1_000);
        medium.on_datagram(&[frame(1, ALL), frame(9, ALL)].concat());
        let out = advance(&mut medium, 10_000);
        let bytes = frame(1, ALL);
        let Some(Received::Transmission(sent)) = message::read(&bytes).pop() else { panic!() };
        let received: Vec<_> = out.iter().map(|out| &out.message).collect();
        for to in [0, 2] {
            assert!(received.contains(&&message::receive(28, own(to), &sent, -64)), "{to}: {received:?}");
        }
        assert_eq!(received.len(), 3, "and the status");
        let totals = Totals { frames: 1, strangers: 1, sent: 1, attempts: 1, received: 2, ..Totals::default() };
        assert_eq!(medium.totals(), totals);
    }

    #[test]
    fn hidden_senders_collide_and_the_seed_decides_when() {
        let run = |seed| {
            let mut medium = row(3, seed);
            advance(&mut medium, 1_000);
            for _ in 0..200 {
                medium.on_datagram(&frame(0, radio(1)));
                medium.on_datagram(&frame(2, radio(1)));
            }
            (advance(&mut medium, 1_000_000), medium.totals())
        };
        let (out, totals) = run(1);
        assert_eq!(run(1), (out.clone(), totals));
        assert_ne!(run(2).0, out);
        assert_eq!((totals.frames, totals.sent + totals.failed), (400, 400));
        assert!(totals.attempts > 420, "{totals:?}");
        assert!(out.is_sorted_by_key(|out| out.due));
    }
}
