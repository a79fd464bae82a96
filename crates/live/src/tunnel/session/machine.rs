//! One end of a session: told the time, what its streams write and read, and what came by its carriers; asked what to hand to a carrier.
//!
//! It knows no socket, clock or thread. What the peer can have it keep is bounded: [`STREAMS`] streams, what they have credit for (all
//! together [`BUDGET`] and [`FIRST`] each), a frame's head and a datagram per carrier, and as many short frames as there may be streams, twice.

mod datagrams;

pub use datagrams::Datagrams;
#[cfg(test)]
pub(super) use datagrams::FLOWS;

use super::Violation;
use super::bucket::Bucket;
use super::carrier::Carrier;
use super::flow::Class;
use super::frame::{DATA_HEAD, Frame, LONGEST, OFFSET, Reader, write_data_head};
use super::incoming::{FIRST, Incoming, Unkept};
use super::outgoing::Outgoing;
use crate::tunnel::Refusal;
use datagrams::Flows;
use meshpace_core::Time;
use meshpace_session::budget::Account;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Streams of a session at a time.
pub(in crate::tunnel) const STREAMS: usize = 4096;
/// Streams and flows that the peer may open per second, besides [`STREAMS`] at once: for each this end has a thread, and looks up a name or asks a
/// target. One host can keep up 471 connections per second to one target: it has 28,232 ports for them, each of which rests for 60 s.
const OPENINGS: u64 = 500;
/// Bytes that all streams together may be promised beyond the first of each.
const BUDGET: u64 = 64 << 20;
/// Bytes that a stream sends before it is another one's turn.
pub(super) const TURN: usize = 4 << 10;
/// The least that is put into a frame although more waits.
const LEAST: usize = 256;
/// Short frames that may wait.
const CONTROLS: usize = 2 * STREAMS;

/// Which end it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    /// Opens streams.
    Connects,
    /// Is asked to connect them.
    Accepts,
}

/// Where a stream stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Its target is not connected yet.
    Opening,
    /// Bytes may flow.
    Open,
    /// The far end does not connect it, for this reason.
    Refused(u8),
    /// It was broken off.
    Reset,
}

/// What reading came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Got {
    /// So many bytes, 1 at least.
    Bytes(usize),
    /// The far end has closed its direction, and everything was read.
    End,
    /// Nothing yet.
    Nothing,
}

/// The stream was broken off, or there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gone;

/// A short frame that waits for the express carrier.
#[derive(Debug)]
enum Control {
    Open(u32, String),
    Answer(u32, u8),
    Credit(u32),
    Fin(u32),
    Reset(u32),
    Flow(u32, Class, String),
    Leave(u32, u8),
}

/// Who stands in line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Member {
    Stream(u32),
    Flow(u32),
}

/// One stream.
#[derive(Debug)]
struct Stream {
    phase: Phase,
    outgoing: Outgoing,
    incoming: Incoming,
    /// A CREDIT waits.
    credits: bool,
    /// A FIN waits.
    ends: bool,
}

/// One end of a session.
#[derive(Debug)]
pub(crate) struct Session {
    side: Side,
    /// Bulk goes by BBR.
    wide: bool,
    /// Memory for what comes, and for what waits to leave.
    account: Account,
    streams: BTreeMap<u32, Stream>,
    /// The stream opened last.
    latest: u32,
    readers: [Reader; 2],
    controls: VecDeque<Control>,
    /// Who has something to send, by carrier.
    lines: [VecDeque<Member>; 2],
    flows: Flows,
    /// Streams and flows that the peer may still open now, and how many streams were refused for that or for [`STREAMS`].
    openings: Bucket,
    refused: u64,
    /// Bytes handed to each carrier, and how many of them have arrived.
    handed: [u64; 2],
    acknowledged: [u64; 2],
    /// Bytes promised to all streams.
    promised: u64,
    /// Streams whose users should look.
    touched: BTreeSet<u32>,
    /// Streams that wait for their ends to arrive.
    ending: BTreeSet<u32>,
    /// Streams that the peer wants to be connected.
    asked: Vec<(u32, String)>,
}

impl Session {
    pub(crate) fn new(side: Side) -> Session {
        Session {
            side,
            wide: false,
            account: Account::default(),
            streams: BTreeMap::new(),
            latest: 0,
            readers: Default::default(),
            controls: VecDeque::new(),
            lines: Default::default(),
            flows: Flows::new(Account::default()),
            openings: Bucket::new(Time::ZERO, STREAMS as u64, OPENINGS),
            refused: 0,
            handed: [0; 2],
            acknowledged: [0; 2],
            promised: 0,
            touched: BTreeSet::new(),
            ending: BTreeSet::new(),
            asked: Vec::new(),
        }
    }

    /// Bulk goes by BBR: credit is for paths of long round trips.
    pub(crate) fn over_bbr(self) -> Session {
        Session { wide: true, ..self }
    }

    /// What comes, and what waits to leave, is booked in `account`.
    pub(crate) fn booked_in(self, account: Account) -> Session {
        Session { flows: Flows::new(account.clone()), account, ..self }
    }

    /// Bytes that may be promised besides those that are; none while memory is scarce.
    fn left(&self) -> u64 {
        if self.account.is_scarce() { 0 } else { BUDGET.saturating_sub(self.promised) }
    }

    /// Opens a stream to a target of 1 to 255 bytes; its number. None if there are too many.
    pub(crate) fn open(&mut self, now: Time, target: &str) -> Option<u32> {
        let number = self.latest.checked_add(1).filter(|_| self.streams.len() < STREAMS)?;
        self.latest = number;
        self.controls.push_back(Control::Open(number, target.to_owned()));
        self.begin(now, number);
        Some(number)
    }

    fn begin(&mut self, now: Time, number: u32) {
        let outgoing = Outgoing::new(now, FIRST, TURN, self.account.clone());
        let incoming = Incoming::new(self.wide, self.account.clone());
        self.promised += incoming.promised();
        let stream = Stream { phase: Phase::Opening, outgoing, incoming, credits: false, ends: false };
        self.streams.insert(number, stream);
    }

    /// Answers what the peer has asked: 0, connected, or why not.
    pub(crate) fn answer(&mut self, number: u32, code: u8) {
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| stream.phase == Phase::Opening) else {
            return;
        };
        stream.phase = if code == 0 { Phase::Open } else { Phase::Refused(code) };
        self.controls.push_back(Control::Answer(number, code));
    }

    /// Where a stream stands; reset if there is none.
    pub(crate) fn phase(&self, number: u32) -> Phase {
        self.streams.get(&number).map_or(Phase::Reset, |stream| stream.phase)
    }

    /// Streams that this end has refused, since the peer had too many or opened them too quickly.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether there is neither a stream nor a flow.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.datagrams().flows == 0
    }

    /// Streams that are open or being opened.
    #[cfg(any(test, fuzzing))]
    pub(super) fn count(&self) -> usize {
        self.streams.len()
    }

    /// The stream that was opened last.
    #[cfg(test)]
    pub(super) fn opened(&self) -> u32 {
        self.latest
    }

    fn usable(&mut self, number: u32) -> Result<&mut Stream, Gone> {
        self.streams.get_mut(&number).filter(|stream| stream.phase == Phase::Open).ok_or(Gone)
    }

    /// A stream writes; how much there is room for, 0 if it has to wait. Where there is no memory for any of it, the stream is broken off.
    pub(crate) fn write(&mut self, now: Time, number: u32, bytes: &[u8]) -> Result<usize, Gone> {
        let stream = self.usable(number)?;
        if stream.outgoing.closing {
            return Err(Gone);
        }
        let Ok(written) = stream.outgoing.write(bytes) else {
            self.reset(number);
            return Err(Gone);
        };
        self.line_up(now, number);
        Ok(written)
    }

    /// A stream will write no more.
    pub(crate) fn finish(&mut self, number: u32) -> Result<(), Gone> {
        let stream = self.usable(number)?;
        if !std::mem::replace(&mut stream.outgoing.closing, true) {
            self.ending.insert(number);
            self.end_if_sent(number);
        }
        Ok(())
    }

    /// The FIN waits once all before it has left.
    fn end_if_sent(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let due = stream.outgoing.closing && !stream.outgoing.ended && stream.outgoing.kept() == 0;
        if due && !std::mem::replace(&mut stream.ends, true) {
            self.controls.push_back(Control::Fin(number));
        }
    }

    /// Whether everything that a stream wrote, and the end of it, have arrived.
    pub(crate) fn has_arrived(&self, number: u32) -> bool {
        self.streams.get(&number).is_some_and(|stream| stream.outgoing.has_arrived(&self.acknowledged))
    }

    /// A stream reads.
    pub(crate) fn read(&mut self, number: u32, into: &mut [u8]) -> Result<Got, Gone> {
        let left = self.left();
        let stream = self.streams.get_mut(&number).ok_or(Gone)?;
        let length = stream.incoming.read(into);
        if length > 0 {
            self.promised -= length as u64;
            let window = stream.incoming.window(left);
            if stream.phase == Phase::Open
                && stream.incoming.is_due(window)
                && !std::mem::replace(&mut stream.credits, true)
            {
                self.controls.push_back(Control::Credit(number));
            }
            return Ok(Got::Bytes(length));
        }
        match stream.phase {
            Phase::Reset | Phase::Refused(_) => Err(Gone),
            _ if stream.incoming.is_over() => Ok(Got::End),
            _ => Ok(Got::Nothing),
        }
    }

    /// Breaks a stream off: here at once, and the peer is told.
    pub(crate) fn reset(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        if matches!(stream.phase, Phase::Opening | Phase::Open) {
            self.controls.push_back(Control::Reset(number));
        }
        self.break_off(number);
    }

    fn break_off(&mut self, number: u32) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        if matches!(stream.phase, Phase::Opening | Phase::Open) {
            stream.phase = Phase::Reset;
        }
        stream.outgoing.forget();
        stream.incoming.forget();
        self.ending.remove(&number);
        self.touched.insert(number);
    }

    /// Nobody here needs a stream any more. What is not over is broken off.
    pub(crate) fn release(&mut self, number: u32) {
        let is_over = self.streams.get(&number).is_some_and(|stream| stream.incoming.is_over());
        if !(is_over && self.has_arrived(number)) {
            self.reset(number);
        }
        if let Some(stream) = self.streams.remove(&number) {
            self.promised -= stream.incoming.promised();
        }
        self.ending.remove(&number);
        self.touched.remove(&number);
    }

    /// Puts a stream in line if it has something to send.
    fn line_up(&mut self, now: Time, number: u32) {
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| stream.phase == Phase::Open) else { return };
        if stream.outgoing.sendable() == 0 {
            return;
        }
        let carrier = stream.outgoing.choose(now, &self.acknowledged);
        match stream.outgoing.listed.replace(carrier) {
            Some(before) if before == carrier => return,
            // It has become bulk before its turn came.
            Some(before) => self.lines[before as usize].retain(|listed| *listed != Member::Stream(number)),
            None => stream.outgoing.turn = TURN,
        }
        self.lines[carrier as usize].push_back(Member::Stream(number));
    }

    /// Appends what is to be handed to a carrier that takes `room` bytes.
    pub(crate) fn fill(&mut self, now: Time, carrier: Carrier, room: usize, out: &mut Vec<u8>) {
        let begin = out.len();
        self.flows.go_on(carrier, room, out);
        if carrier == Carrier::Express && !self.flows.is_within(carrier) {
            while out.len() - begin + LONGEST <= room
                && let Some(control) = self.controls.pop_front()
            {
                let before = self.handed[carrier as usize] + (out.len() - begin) as u64;
                self.tell(now, &control, before, out);
            }
        }
        while !self.flows.is_within(carrier)
            && let Some(member) = self.lines[carrier as usize].front().copied()
        {
            let sent = match member {
                Member::Stream(number) => self.send(number, carrier, begin, room, out),
                Member::Flow(number) => self.send_flow(now, number, carrier, begin, room, out),
            };
            match sent {
                Sent::Full => break,
                Sent::All => drop(self.lines[carrier as usize].pop_front()),
                Sent::Turn => self.lines[carrier as usize].rotate_left(1),
            }
        }
        self.handed[carrier as usize] += (out.len() - begin) as u64;
    }

    /// Appends a frame of a stream's bytes.
    fn send(&mut self, number: u32, carrier: Carrier, before: usize, room: usize, out: &mut Vec<u8>) -> Sent {
        let used = out.len() - before;
        let most = room.saturating_sub(used + DATA_HEAD);
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| stream.outgoing.listed == Some(carrier))
        else {
            return Sent::All;
        };
        let outgoing = &mut stream.outgoing;
        let sendable = if stream.phase == Phase::Open { outgoing.sendable() } else { 0 };
        if sendable == 0 {
            outgoing.listed = None;
            return Sent::All;
        }
        let length = sendable.min(most).min(outgoing.turn.max(LEAST));
        if length == 0 || (length < sendable && length < LEAST) {
            return Sent::Full;
        }
        let begin = out.len();
        write_data_head(out, number, outgoing.sent(), length);
        outgoing.cut(length, carrier, out);
        let is_last = outgoing.closing && outgoing.kept() == 0;
        let mut after = used + out.len() - begin;
        if is_last && after + OFFSET <= room {
            Frame::Fin { stream: number, end: outgoing.end() }.write(out);
            after += OFFSET;
            outgoing.ended = true;
        }
        outgoing.handed[carrier as usize] = self.handed[carrier as usize] + after as u64;
        if outgoing.take_room() {
            self.touched.insert(number);
        }
        outgoing.turn = outgoing.turn.saturating_sub(length);
        let sent = if length == sendable {
            outgoing.listed = None;
            Sent::All
        } else if outgoing.turn < LEAST {
            outgoing.turn = TURN;
            Sent::Turn
        } else {
            Sent::Full
        };
        self.end_if_sent(number);
        sent
    }

    /// Appends a short frame, which `before` bytes of the express carrier precede. What has become pointless is left out.
    fn tell(&mut self, now: Time, control: &Control, before: u64, out: &mut Vec<u8>) {
        let begin = out.len();
        match control {
            Control::Open(stream, target) => Frame::Open { stream: *stream, target: target.clone() }.write(out),
            Control::Answer(stream, code) => Frame::Answer { stream: *stream, code: *code }.write(out),
            Control::Reset(stream) => Frame::Reset { stream: *stream }.write(out),
            Control::Leave(flow, code) => Frame::Leave { flow: *flow, code: *code }.write(out),
            Control::Flow(flow, class, target) => {
                Frame::Flow { flow: *flow, class: *class, target: target.clone() }.write(out);
                self.on_flow_told(now, *flow, before + (out.len() - begin) as u64);
            }
            Control::Credit(number) => {
                let left = self.left();
                let Some(stream) = self.streams.get_mut(number) else { return };
                stream.credits = false;
                let (limit, more) = stream.incoming.grant(stream.incoming.window(left));
                self.promised += more;
                Frame::Credit { stream: *number, limit }.write(out);
            }
            Control::Fin(number) => {
                let Some(stream) = self.streams.get_mut(number).filter(|stream| stream.phase == Phase::Open) else {
                    return;
                };
                Frame::Fin { stream: *number, end: stream.outgoing.end() }.write(out);
                stream.outgoing.ended = true;
                stream.outgoing.handed[Carrier::Express as usize] = before + (out.len() - begin) as u64;
            }
        }
    }

    /// Of what was handed to a carrier `under_way` bytes have not arrived, as far as is known.
    pub(crate) fn on_under_way(&mut self, now: Time, carrier: Carrier, under_way: usize) {
        let arrived = self.handed[carrier as usize].saturating_sub(under_way as u64);
        if arrived > self.acknowledged[carrier as usize] {
            self.acknowledged[carrier as usize] = arrived;
            let (streams, acknowledged) = (&self.streams, &self.acknowledged);
            let arrived =
                |number: &u32| streams.get(number).is_none_or(|stream| stream.outgoing.has_arrived(acknowledged));
            let done: Vec<u32> = self.ending.iter().copied().filter(|number| arrived(number)).collect();
            for number in done {
                self.ending.remove(&number);
                self.touched.insert(number);
            }
            self.line_up_changing(now);
        }
    }

    /// Bytes came by a carrier. After an error the session is over.
    pub(crate) fn on_bytes(&mut self, now: Time, carrier: Carrier, mut bytes: &[u8]) -> Result<(), Violation> {
        let mut reader = std::mem::take(&mut self.readers[carrier as usize]);
        let mut read = || -> Result<(), Violation> {
            while let Some(frame) = reader.next(&mut bytes)? {
                self.on_frame(now, frame)?;
            }
            Ok(())
        };
        let done = read();
        self.readers[carrier as usize] = reader;
        done
    }

    fn on_frame(&mut self, now: Time, frame: Frame<'_>) -> Result<(), Violation> {
        match frame {
            Frame::Open { stream, target } => self.on_open(now, stream, target),
            Frame::Answer { stream, code } => self.on_answer(stream, code),
            Frame::Data { stream: number, offset, bytes } => {
                let Some(stream) = self.known(number)? else { return Ok(()) };
                match stream.incoming.place(offset, bytes) {
                    Ok(false) => {}
                    Ok(true) => drop(self.touched.insert(number)),
                    // Other streams may go on: they give memory back as they are read.
                    Err(Unkept::Memory(_)) => self.reset(number),
                    Err(Unkept::Rules(violation)) => return Err(violation),
                }
                Ok(())
            }
            Frame::Credit { stream: number, limit } => {
                let Some(stream) = self.known(number)? else { return Ok(()) };
                stream.outgoing.on_credit(limit);
                self.line_up(now, number);
                Ok(())
            }
            Frame::Fin { stream: number, end } => {
                let Some(stream) = self.known(number)? else { return Ok(()) };
                stream.incoming.finish(end)?;
                self.touched.insert(number);
                Ok(())
            }
            Frame::Reset { stream: number } => {
                if self.known(number)?.is_some() {
                    self.break_off(number);
                }
                Ok(())
            }
            Frame::Flow { flow, class, target } => self.on_flow(now, flow, class, target),
            Frame::Datagram { flow, bytes } => self.on_datagram(now, flow, bytes),
            Frame::Leave { flow, code } => self.on_leave(flow, code),
        }
    }

    /// A stream that is not over. One that is may still have frames under way by the other carrier; one that never was has none.
    fn known(&mut self, number: u32) -> Result<Option<&mut Stream>, Violation> {
        if number == 0 || number > self.latest {
            return Err(Violation("a frame of a stream that nobody has opened"));
        }
        let is_live = |stream: &&mut Stream| matches!(stream.phase, Phase::Opening | Phase::Open);
        Ok(self.streams.get_mut(&number).filter(is_live))
    }

    fn on_open(&mut self, now: Time, number: u32, target: String) -> Result<(), Violation> {
        if self.side == Side::Connects || self.latest.checked_add(1) != Some(number) {
            return Err(Violation("a stream that is not the peer's to open"));
        }
        if self.controls.len() >= CONTROLS {
            return Err(Violation("streams without end, and nobody hears the answers"));
        }
        self.latest = number;
        if self.streams.len() >= STREAMS || !self.openings.take(now) {
            self.refused += 1;
            self.controls.push_back(Control::Answer(number, Refusal::Crowded as u8));
            return Ok(());
        }
        self.begin(now, number);
        self.asked.push((number, target));
        Ok(())
    }

    fn on_answer(&mut self, number: u32, code: u8) -> Result<(), Violation> {
        let accepts = self.side == Side::Accepts;
        let Some(stream) = self.known(number)? else { return Ok(()) };
        if accepts || stream.phase != Phase::Opening {
            return Err(Violation("an answer to nothing"));
        }
        stream.phase = if code == 0 { Phase::Open } else { Phase::Refused(code) };
        self.touched.insert(number);
        Ok(())
    }

    /// Streams whose users should look: there is more to read, room to write, an answer or an end.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.touched)
    }

    /// Streams that the peer wants to be connected.
    pub(crate) fn take_asked(&mut self) -> Vec<(u32, String)> {
        std::mem::take(&mut self.asked)
    }

    /// Bytes kept for all streams, and the heads of frames.
    pub(crate) fn kept(&self) -> [usize; 3] {
        let of = |stream: &Stream| (stream.incoming.kept(), stream.outgoing.kept());
        let sum = |(a, b): (usize, usize), (c, d)| (a + c, b + d);
        let (incoming, outgoing) = self.streams.values().map(of).fold((0, 0), sum);
        let heads = self.readers.iter().map(Reader::kept).sum::<usize>();
        [incoming, outgoing, heads + self.controls.len() + self.lines.iter().map(VecDeque::len).sum::<usize>()]
    }

    /// Bytes promised to the peer.
    pub(crate) fn promised(&self) -> u64 {
        self.promised
    }
}

/// What became of a stream's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sent {
    /// There is no room for more.
    Full,
    /// It has nothing left that may go.
    All,
    /// It is another one's turn.
    Turn,
}
