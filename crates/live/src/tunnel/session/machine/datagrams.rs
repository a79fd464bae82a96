//! Flows of datagrams in a session. They stand in the same lines as streams and take turns with them.
//!
//! A flow is opened by who connects, and needs no answer: its datagrams follow, by the same carrier at first. Either end may say that it is over. The
//! receiver keeps nothing: what has come whole is handed on at once, so that there is no credit.

use super::super::bucket::Bucket;
use super::super::carrier::Carrier;
use super::super::flow::{Class, Flow};
use super::super::frame::{DATAGRAM_HEAD, write_datagram_head};
use super::super::store::Store;
use super::{CONTROLS, Control, Gone, LEAST, Member, Sent, Session, Side, TURN, Violation};
use crate::tunnel::Refusal;
use meshpace_core::Time;
use meshpace_session::budget::Account;
use std::collections::{BTreeMap, BTreeSet};

/// Flows of a session at a time.
pub(in crate::tunnel) const FLOWS: usize = 1024;

/// Datagrams of less than [`SHORT`] bytes that a session brings per second, and at once. Each becomes a packet with 28 bytes of headers, or
/// 48, wherever the far end wants it to go, while hundreds of them share one packet on their way here. A call by voice has 50 a second, a
/// robot's control 1000, and the acknowledgements of a download of 480 Mbit/s by QUIC, one for two packets of 1,200 bytes, 25,000.
const SHORT_RATE: u64 = 25_000;
/// Longer ones are not counted: three share a packet on their way at most, and headers add a twentieth to their bytes.
const SHORT: usize = 512;

/// What flows have carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Datagrams {
    /// Flows open now.
    pub flows: u64,
    /// Datagrams handed to the carriers, and their bytes.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Datagrams that have come from the far end.
    pub received: u64,
    /// Bytes of those.
    pub received_bytes: u64,
    /// Datagrams given up at this end: they waited too long, a later one replaced them, too much waited, their flow ended, or more short ones
    /// came than a session may bring.
    pub dropped: u64,
}

impl std::ops::AddAssign for Datagrams {
    fn add_assign(&mut self, other: Datagrams) {
        self.flows += other.flows;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.received += other.received;
        self.received_bytes += other.received_bytes;
        self.dropped += other.dropped;
    }
}

/// The flows of one end.
#[derive(Debug)]
pub(super) struct Flows {
    all: BTreeMap<u32, Flow>,
    /// The flow opened last.
    latest: u32,
    /// What is left of a datagram whose frame has begun, by carrier: nothing else goes by that before it.
    rest: [Vec<u8>; 2],
    /// Flows that change their carrier once nothing of them is under way.
    changing: BTreeSet<u32>,
    /// Memory for what waits.
    store: Store,
    /// Datagrams that may still come now.
    incoming: Bucket,
    counted: Datagrams,
    /// Flows that the peer has opened, and those that it has ended.
    asked: Vec<(u32, Class, String)>,
    left: Vec<(u32, u8)>,
    /// What has come, by flow.
    arrived: Vec<(u32, Vec<u8>)>,
}

impl Flows {
    /// No flows. What waits in them will be booked in `account`.
    pub(super) fn new(account: Account) -> Flows {
        Flows {
            all: BTreeMap::new(),
            latest: 0,
            rest: Default::default(),
            changing: BTreeSet::new(),
            store: Store::new(account),
            incoming: Bucket::new(Time::ZERO, SHORT_RATE, SHORT_RATE),
            counted: Datagrams::default(),
            asked: Vec::new(),
            left: Vec::new(),
            arrived: Vec::new(),
        }
    }

    /// Whether a datagram has been begun by a carrier and not ended.
    pub(super) fn is_within(&self, carrier: Carrier) -> bool {
        !self.rest[carrier as usize].is_empty()
    }

    /// Appends up to `room` bytes of the datagram that has been begun.
    pub(super) fn go_on(&mut self, carrier: Carrier, room: usize, out: &mut Vec<u8>) {
        let rest = &mut self.rest[carrier as usize];
        out.extend(rest.drain(..room.min(rest.len())));
        if rest.is_empty() {
            *rest = Vec::new();
        }
    }
}

impl Session {
    /// Opens a flow of datagrams to a target of 1 to 255 bytes; its number. None if there are too many.
    pub(crate) fn open_flow(&mut self, now: Time, class: Class, target: &str) -> Option<u32> {
        let room = self.flows.all.len() < FLOWS && self.controls.len() < CONTROLS;
        let number = self.flows.latest.checked_add(1).filter(|_| room)?;
        self.flows.latest = number;
        self.flows.all.insert(number, Flow::new(now, class, false, TURN, self.flows.store.clone()));
        self.controls.push_back(Control::Flow(number, class, target.to_owned()));
        Some(number)
    }

    /// A datagram of a flow, of 65,535 bytes at most, is to go to the far end.
    pub(crate) fn send_datagram(&mut self, now: Time, number: u32, bytes: &[u8]) -> Result<(), Gone> {
        let flow = self.flows.all.get_mut(&number).ok_or(Gone)?;
        self.flows.counted.dropped += flow.put(now, bytes);
        self.line_up_flow(now, number);
        Ok(())
    }

    /// Nobody here needs a flow any more, and what waits of it is given up. The peer is told why: 0, or the code of a refusal.
    pub(crate) fn leave(&mut self, number: u32, code: u8) {
        if self.forget_flow(number) {
            self.controls.push_back(Control::Leave(number, code));
        }
    }

    fn forget_flow(&mut self, number: u32) -> bool {
        self.flows.changing.remove(&number);
        let Some(mut flow) = self.flows.all.remove(&number) else { return false };
        self.flows.counted.dropped += flow.forget();
        true
    }

    /// Memory for datagrams that wait.
    pub(in super::super) fn store(&self) -> Store {
        self.flows.store.clone()
    }

    /// Whether a flow is open.
    pub(in super::super) fn has_flow(&self, number: u32) -> bool {
        self.flows.all.contains_key(&number)
    }

    /// What flows have carried.
    pub(crate) fn datagrams(&self) -> Datagrams {
        Datagrams { flows: self.flows.all.len() as u64, ..self.flows.counted }
    }

    /// Flows that the peer has opened.
    pub(crate) fn take_asked_flows(&mut self) -> Vec<(u32, Class, String)> {
        std::mem::take(&mut self.flows.asked)
    }

    /// Datagrams that have come, by flow. They are to be taken after every [`Session::on_bytes`].
    pub(crate) fn take_datagrams(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.flows.arrived)
    }

    /// Flows that the peer has ended, and why: 0, or the code of a refusal.
    pub(crate) fn take_left(&mut self) -> Vec<(u32, u8)> {
        std::mem::take(&mut self.flows.left)
    }

    /// Puts a flow in line if it has something to send.
    fn line_up_flow(&mut self, now: Time, number: u32) {
        let Some(flow) = self.flows.all.get_mut(&number) else { return };
        if flow.listed.is_some() || !flow.is_known || flow.next().is_none() {
            return;
        }
        match flow.choose(now, &self.acknowledged) {
            None => drop(self.flows.changing.insert(number)),
            Some(carrier) => {
                flow.listed = Some(carrier);
                flow.turn = TURN;
                self.flows.changing.remove(&number);
                self.lines[carrier as usize].push_back(Member::Flow(number));
            }
        }
    }

    /// The peer has been told of a flow, by the express carrier up to `position`.
    pub(super) fn on_flow_told(&mut self, now: Time, number: u32, position: u64) {
        if let Some(flow) = self.flows.all.get_mut(&number) {
            flow.is_known = true;
            flow.handed[Carrier::Express as usize] = position;
            self.line_up_flow(now, number);
        }
    }

    /// More has arrived: flows that have waited for that may change their carrier.
    pub(super) fn line_up_changing(&mut self, now: Time) {
        let changing: Vec<u32> = self.flows.changing.iter().copied().collect();
        changing.into_iter().for_each(|number| self.line_up_flow(now, number));
    }

    /// Appends datagrams of a flow to what is handed over, which begins at `begin`.
    pub(super) fn send_flow(
        &mut self,
        now: Time,
        number: u32,
        carrier: Carrier,
        begin: usize,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Sent {
        let listed = |flow: &&mut Flow| flow.listed == Some(carrier);
        let Some(flow) = self.flows.all.get_mut(&number).filter(listed) else { return Sent::All };
        loop {
            self.flows.counted.dropped += flow.expire(now);
            let Some(length) = flow.next() else {
                flow.listed = None;
                return Sent::All;
            };
            if flow.choose(now, &self.acknowledged) != Some(carrier) {
                // More waits than when it was put in line, or less.
                flow.listed = None;
                self.line_up_flow(now, number);
                return Sent::All;
            }
            if flow.turn == 0 {
                flow.turn = TURN;
                return Sent::Turn;
            }
            let left = room.saturating_sub(out.len() - begin + DATAGRAM_HEAD);
            if left == 0 || left < length.min(LEAST) {
                return Sent::Full;
            }
            let Some(bytes) = flow.leave() else { return Sent::All };
            let (now_goes, later) = bytes.split_at(length.min(left));
            write_datagram_head(out, number, length);
            out.extend_from_slice(now_goes);
            self.flows.rest[carrier as usize].extend_from_slice(later);
            flow.handed[carrier as usize] = self.handed[carrier as usize] + (out.len() - begin + later.len()) as u64;
            flow.turn = flow.turn.saturating_sub(length.max(1));
            self.flows.counted.sent += 1;
            self.flows.counted.sent_bytes += length as u64;
            if !later.is_empty() {
                return Sent::Full;
            }
        }
    }

    pub(super) fn on_flow(&mut self, now: Time, number: u32, class: Class, target: String) -> Result<(), Violation> {
        if self.side == Side::Connects || self.flows.latest.checked_add(1) != Some(number) {
            return Err(Violation("a flow that is not the peer's to open"));
        }
        if self.controls.len() >= CONTROLS {
            return Err(Violation("flows without end, and nobody hears that they are over"));
        }
        self.flows.latest = number;
        if self.flows.all.len() >= FLOWS || !self.openings.take(now) {
            self.controls.push_back(Control::Leave(number, Refusal::Crowded as u8));
            return Ok(());
        }
        self.flows.all.insert(number, Flow::new(now, class, true, TURN, self.flows.store.clone()));
        self.flows.asked.push((number, class, target));
        Ok(())
    }

    pub(super) fn on_datagram(&mut self, now: Time, number: u32, bytes: Vec<u8>) -> Result<(), Violation> {
        // Of one that is over datagrams may still be under way.
        if self.known_flow(number)? {
            if bytes.len() < SHORT && !self.flows.incoming.take(now) {
                self.flows.counted.dropped += 1;
                return Ok(());
            }
            self.flows.counted.received += 1;
            self.flows.counted.received_bytes += bytes.len() as u64;
            self.flows.arrived.push((number, bytes));
        }
        Ok(())
    }

    pub(super) fn on_leave(&mut self, number: u32, code: u8) -> Result<(), Violation> {
        if self.known_flow(number)? {
            self.forget_flow(number);
            self.flows.left.push((number, code));
        }
        Ok(())
    }

    fn known_flow(&self, number: u32) -> Result<bool, Violation> {
        if number == 0 || number > self.flows.latest {
            return Err(Violation("a frame of a flow that nobody has opened"));
        }
        Ok(self.flows.all.contains_key(&number))
    }

    /// The most bytes that wait in a flow, and the most datagrams; and bytes of those that have been begun by a carrier.
    pub(crate) fn fullest_flow(&self) -> (usize, usize, usize) {
        let most = |of: fn(&Flow) -> usize| self.flows.all.values().map(of).max().unwrap_or(0);
        (most(Flow::kept), most(Flow::waiting), self.flows.rest.iter().map(Vec::len).sum())
    }

    /// Bytes that wait in all flows.
    pub(crate) fn kept_datagrams(&self) -> usize {
        let rest: usize = self.flows.rest.iter().map(Vec::len).sum();
        rest + self.flows.all.values().map(Flow::kept).sum::<usize>()
    }
}
