//! One end of a tunnel's session in virtual time. It does what `tunnel::session::Link` does with
//! threads, and what the ends in `tunnel` do around it.

use super::faults::Moment;
use super::flow::{self, FlowEnd, Over};
use super::plan::{FlowPlan, Plan, StreamPlan};
use super::seat::Seat;
use super::stream::{Application, Ending, Got};
use crate::tunnel::session::{
    self, Carrier, Frame, Handing, MOST, NAME, QUEUE, Reader, Sending, Session, Side, Takes, preamble,
};
use meshpace_core::{Duration, Time};
use meshpace_session::exchange::Exchange;
use meshpace_session::{Party, Port};
use std::collections::BTreeMap;
use std::io;

/// Delay of ACKs of the express carrier, as in `tunnel::session::Link`.
const HOLD: Duration = Duration::from_millis(10);

/// Maximum number of bytes that are read from a carrier at a time.
const BLOCK: usize = 8 << 10;

/// Bit that distinguishes the numbers of flows from those of streams.
const FLOW: u32 = 1 << 31;

/// One end of a tunnel's session.
#[derive(Debug)]
pub(crate) struct Tunnel {
    session: Session,
    handing: Handing,
    /// Connections of the carriers, by [`Carrier`].
    carriers: [u64; 2],
    name: [u8; NAME],
    connects: bool,
    /// True once the preambles have been written.
    has_begun: bool,
    plans: Vec<StreamPlan>,
    /// Applications of the streams, by stream number.
    pub(crate) streams: BTreeMap<u32, Application>,
    flow_plans: Vec<FlowPlan>,
    /// Ends of the flows, by flow number.
    pub(crate) flows: BTreeMap<u32, FlowEnd>,
    /// True once all datagrams of flows have arrived and no more will be sent, so that the session
    /// may end.
    pub(crate) flows_rest: bool,
    /// For each carrier: the reader of the frames that the carrier has taken, and the time at which
    /// the first bytes of the current frame were taken.
    leaving: [(Reader, Time); 2],
    /// Reason why the session has ended; `None` while it is open.
    pub(crate) failure: Option<String>,
    /// Last moment of the session since [`Tunnel::take_noted`] was called.
    noted: Option<Moment>,
}

/// Number that both ends compute for a stream.
fn name_of(name: &[u8; NAME], number: u32) -> u64 {
    name.iter().take(8).fold(u64::from(number), |all, byte| all.rotate_left(8) ^ u64::from(*byte)) << 8
        | u64::from(number)
}

impl Tunnel {
    /// Creates the connecting or the accepting end of a session over these carriers.
    pub(crate) fn new(carriers: [u64; 2], name: [u8; NAME], connects: bool, bbr: bool, plan: &Plan) -> Tunnel {
        let session = Session::new(if connects { Side::Connects } else { Side::Accepts });
        Tunnel {
            session: if bbr { session.over_bbr() } else { session },
            handing: Handing::default(),
            carriers,
            name,
            connects,
            has_begun: !connects,
            plans: plan.streams.clone(),
            streams: BTreeMap::new(),
            flow_plans: plan.flows.clone(),
            flows: BTreeMap::new(),
            flows_rest: plan.flows.is_empty(),
            leaving: Default::default(),
            failure: None,
            noted: None,
        }
    }

    /// Key of a stream of this session, which is the same at both ends.
    pub(crate) fn key(&self, number: u32) -> ([u8; NAME], u32) {
        (self.name, number)
    }

    /// Takes the last moment of the session since the previous call.
    pub(crate) fn take_noted(&mut self) -> Option<Moment> {
        self.noted.take()
    }

    /// Time at which this end opens the next stream.
    pub(crate) fn opens_at(&self) -> Time {
        let next = self.plans.get(self.streams.len()).filter(|_| self.connects && self.failure.is_none());
        next.map_or(Time::NEVER, |plan| plan.at)
    }

    /// Time at which this end opens the next flow.
    fn opens_flow_at(&self) -> Time {
        let next = self.flow_plans.get(self.flows.len()).filter(|_| self.connects && self.failure.is_none());
        next.map_or(Time::NEVER, |plan| plan.at)
    }

    /// Time at which this end next opens a flow or sends a datagram on one.
    pub(crate) fn flows_act_at(&self) -> Time {
        self.flows.values().map(FlowEnd::sends_at).fold(self.opens_flow_at(), Time::min)
    }

    /// True if all datagrams that flows had to send by `now` have been sent and have arrived, in
    /// both directions between this end and `other`.
    pub(crate) fn flows_rest_with(&self, now: Time, other: &Tunnel) -> bool {
        let waits = |one: &Tunnel| one.session.kept_datagrams() > 0;
        let pairs = self.flows.iter().map(|(number, one)| other.flows.get(number).map(|other| [one, other]));
        self.opens_flow_at() > now
            && !waits(self)
            && !waits(other)
            && pairs.into_iter().all(|pair| pair.is_some_and(|pair| flow::rests(now, pair)))
    }

    /// True if `other` is the other end of the same session.
    pub(crate) fn is_other_of(&self, other: &Tunnel) -> bool {
        self.name == other.name && self.connects != other.connects
    }

    /// True if the datagrams that wait in each flow are within the limits, and each carrier holds
    /// at most the rest of one datagram.
    pub(crate) fn few_datagrams_wait(&self) -> bool {
        let (bytes, datagrams, begun) = self.session.fullest_flow();
        bytes <= QUEUE && datagrams <= MOST && begun <= Carrier::ALL.len() * usize::from(u16::MAX)
    }

    /// Time at which this end has to act on its own.
    pub(crate) fn next_wakeup(&self, now: Time) -> Time {
        if self.failure.is_some() {
            return Time::NEVER;
        }
        let opens = if self.opens_at() > now { self.opens_at() } else { Time::NEVER };
        let of = |one: &Application| if one.ending == Ending::None { one.habits.after(now) } else { Time::NEVER };
        let flows = if self.flows_act_at() > now { self.flows_act_at() } else { Time::NEVER };
        self.streams.values().map(of).fold(opens.min(flows), Time::min)
    }

    /// Number of incoming bytes kept, of outgoing bytes kept, and of bytes promised to the peer.
    pub(crate) fn kept(&self) -> (u64, u64, u64) {
        let [incoming, outgoing, _] = self.session.kept();
        (incoming as u64, outgoing as u64, self.session.promised())
    }

    /// Ends the session with the reason `why`, and all its streams.
    pub(crate) fn end(&mut self, port: &mut Port<Seat>, why: String) {
        if self.failure.is_some() {
            return;
        }
        for carrier in self.carriers {
            if let Some(Party { exchange, .. }) = port.parties.get_mut(&carrier) {
                exchange.wishes.abort = true;
                exchange.let_go();
            }
        }
        for (number, stream) in &mut self.streams {
            if stream.ending == Ending::None {
                // Data that have arrived completely belong to the application, whatever happens to
                // the session.
                read(stream, &mut self.session, *number);
                stream.ending = Ending::Failed(why.clone());
            }
        }
        self.failure = Some(why);
    }

    /// Runs the session and its applications. Returns true if anything was done.
    ///
    /// # Errors
    ///
    /// The rule of the session that the peer has violated. The peer is honest, so this is an error
    /// of the implementation.
    pub(crate) fn act(
        &mut self,
        now: Time,
        port: &mut Port<Seat>,
        (reads, writes): (bool, bool),
    ) -> Result<bool, String> {
        if self.failure.is_some() || !self.begin(port) {
            return Ok(false);
        }
        let mut acted = false;
        for carrier in Carrier::ALL {
            match receive(port, self.carriers[carrier as usize]) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => {
                    self.session.on_bytes(now, carrier, &bytes).map_err(|violation| violation.to_string())?;
                    acted = true;
                }
                Err(why) => {
                    self.end(port, why);
                    return Ok(true);
                }
            }
        }
        for (number, _) in self.session.take_asked() {
            self.session.answer(number, 0);
            let habits = self.plans.get(number as usize - 1).map(|plan| plan.habits[1].clone()).unwrap_or_default();
            self.streams.insert(number, Application::new(name_of(&self.name, number), false, habits));
            acted = true;
        }
        if self.connects
            && let Some(plan) = self.plans.get(self.streams.len())
            && plan.at <= now
            && let Some(number) = self.session.open(now, "host:80")
        {
            self.noted = Some(Moment::StreamBegins);
            let habits = plan.habits[0].clone();
            self.streams.insert(number, Application::new(name_of(&self.name, number), true, habits));
            acted = true;
        }
        acted |= self.use_flows(now, writes);
        let numbers: Vec<u32> = self.streams.keys().copied().collect();
        for number in numbers {
            acted |= self.use_stream(now, number, reads, writes);
        }
        drop(self.session.take_touched());
        for carrier in Carrier::ALL {
            let Some(Party { exchange, .. }) = port.parties.get_mut(&self.carriers[carrier as usize]) else { continue };
            let (leaving, flows) = (&mut self.leaving[carrier as usize], &mut self.flows);
            let mut watched = Watched { now, exchange, leaving, flows };
            let handed = self.handing.hand_over(now, &mut self.session, carrier, &mut watched);
            // A failure of the carrier is detected when it is read.
            acted |= handed.is_ok_and(|bytes| bytes > 0);
        }
        if self.handing.take_small()
            && let Some(Party { exchange, .. }) = port.parties.get_mut(&self.carriers[Carrier::Bulk as usize])
        {
            exchange.wishes.make_room = true;
        }
        let is_over = self.streams.len() == self.plans.len()
            && self.streams.values().all(|stream| stream.ending != Ending::None)
            && self.flows_rest
            && self.connects;
        if is_over {
            self.end(port, "all is done".to_owned());
            acted = true;
        }
        Ok(acted)
    }

    /// Handles what has arrived on flows, and runs the applications of flows. Returns true if
    /// anything was done.
    fn use_flows(&mut self, now: Time, writes: bool) -> bool {
        let Tunnel { session, flows, flow_plans, name, connects, .. } = self;
        let mut acted = false;
        let end = |number: u32| {
            let plan = flow_plans.get(number as usize - 1)?.clone();
            Some(FlowEnd::new(name_of(name, FLOW | number), *connects, plan))
        };
        for (number, _, _) in session.take_asked_flows() {
            flows.extend(end(number).map(|flow| (number, flow)));
            acted = true;
        }
        for (number, bytes) in session.take_datagrams() {
            flows.get_mut(&number).into_iter().for_each(|flow| flow.on_came(&bytes));
            acted = true;
        }
        for (number, code) in session.take_left() {
            flows.get_mut(&number).into_iter().for_each(|flow| flow.on_peer_left(code));
            acted = true;
        }
        let due = flow_plans.get(flows.len()).filter(|plan| *connects && plan.at <= now);
        if let Some(number) = due.and_then(|plan| session.open_flow(now, plan.class, "host:53")) {
            flows.extend(end(number).map(|flow| (number, flow)));
            acted = true;
        }
        for (number, flow) in flows {
            if writes {
                acted |= flow.send(now, |bytes| {
                    let before = session.datagrams().dropped;
                    session.send_datagram(now, *number, bytes).ok()?;
                    Some(session.datagrams().dropped - before)
                });
            }
            if let Some(code) = flow.leaves() {
                session.leave(*number, code);
                flow.over = Over::Here(code);
                acted = true;
            }
        }
        acted
    }

    /// Returns true if the session has begun. It begins when both carriers are open, and then the
    /// preambles are written.
    fn begin(&mut self, port: &mut Port<Seat>) -> bool {
        if self.has_begun {
            return true;
        }
        for carrier in self.carriers {
            let Some(Party { exchange, .. }) = port.parties.get_mut(&carrier) else {
                self.end(port, "a carrier could not be opened".to_owned());
                return false;
            };
            if let Some(failure) = exchange.failure() {
                let why = failure.message.clone();
                self.end(port, why);
                return false;
            }
            if !exchange.is_open() {
                return false;
            }
        }
        for carrier in Carrier::ALL {
            let Some(Party { exchange, .. }) = port.parties.get_mut(&self.carriers[carrier as usize]) else {
                return false;
            };
            exchange.write(&preamble(carrier, &self.name));
            if carrier == Carrier::Express {
                exchange.wishes.hold_acks = Some(HOLD);
            }
        }
        self.has_begun = true;
        true
    }

    /// Runs the application of a stream. Returns true if anything was done.
    fn use_stream(&mut self, now: Time, number: u32, reads: bool, writes: bool) -> bool {
        let Tunnel { session, streams, plans, connects, noted, .. } = self;
        let Some(stream) = streams.get_mut(&number).filter(|stream| stream.ending == Ending::None) else {
            return false;
        };
        let mut acted = false;
        match session.phase(number) {
            session::Phase::Opening => return false,
            session::Phase::Open => {}
            session::Phase::Refused(_) | session::Phase::Reset => {
                read(stream, session, number);
                stream.ending = Ending::Failed("broken off by the far end".to_owned());
                session.release(number);
                return true;
            }
        }
        if writes {
            acted |= stream.write(now, |bytes| session.write(now, number, bytes).unwrap_or(0));
        }
        if stream.has_written_all() && !stream.closed {
            stream.closed = session.finish(number).is_ok();
            *noted = Some(Moment::StreamEnds);
            acted = true;
        }
        if reads {
            acted |= read(stream, session, number);
        }
        let breaks = plans.get(number as usize - 1).and_then(|plan| plan.breaks);
        if breaks.is_some_and(|(end, after)| (end == 0) == *connects && stream.read >= after) && !stream.saw_end {
            session.reset(number);
            session.release(number);
            (stream.ending, stream.aborted) = (Ending::Failed("broken off here".to_owned()), true);
            *noted = Some(Moment::StreamReset);
            return true;
        }
        if stream.saw_end && stream.closed && session.has_arrived(number) {
            stream.ending = Ending::Well;
            session.release(number);
            acted = true;
        }
        acted
    }
}

/// A carrier, and what is needed to observe the datagrams that it takes.
struct Watched<'a> {
    now: Time,
    exchange: &'a mut Exchange,
    leaving: &'a mut (Reader, Time),
    flows: &'a mut BTreeMap<u32, FlowEnd>,
}

impl Takes for Watched<'_> {
    fn sending(&self) -> Sending {
        self.exchange.sending()
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.exchange.take(bytes)?;
        watch(self.now, &bytes[..taken], self.leaving, self.flows);
        Ok(taken)
    }
}

/// Observes the bytes that a carrier takes: which datagrams have been taken completely, and when
/// the carrier took the first byte of each.
fn watch(now: Time, mut bytes: &[u8], (reader, began): &mut (Reader, Time), flows: &mut BTreeMap<u32, FlowEnd>) {
    if reader.kept() == 0 {
        *began = now;
    }
    while let Ok(Some(frame)) = reader.next(&mut bytes) {
        if let Frame::Datagram { flow, bytes } = frame
            && let Some(flow) = flows.get_mut(&flow)
        {
            flow.on_left(&bytes, *began);
        }
        *began = now;
    }
}

/// Lets a stream's application read what has arrived.
fn read(stream: &mut Application, session: &mut Session, number: u32) -> bool {
    stream.read(|into| match session.read(number, into) {
        Ok(session::Got::Bytes(length)) => Got::Bytes(length),
        Ok(session::Got::End) => Got::End,
        Ok(session::Got::Nothing) | Err(_) => Got::Nothing,
    })
}

/// Reads what has arrived on a carrier.
fn receive(port: &mut Port<Seat>, carrier: u64) -> Result<Vec<u8>, String> {
    let Some(Party { exchange, .. }) = port.parties.get_mut(&carrier) else {
        return Err("the carrier is gone".to_owned());
    };
    let mut buffer = vec![0; BLOCK];
    match exchange.read(&mut buffer) {
        None => Ok(Vec::new()),
        Some(Ok(0)) => Err("the far end has left".to_owned()),
        Some(Ok(length)) => {
            buffer.truncate(length);
            Ok(buffer)
        }
        Some(Err(error)) => Err(error.to_string()),
    }
}
