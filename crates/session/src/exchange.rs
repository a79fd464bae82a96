//! State that a connection shares with its application: the bytes in both directions, the
//! application's requests, and the progress of the connection.

use super::failure::{Failure, Reason};
use super::settings::Settings;
use crate::budget::Account;
use crate::ring::{ReceiveRing, SendRing};
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use std::io;

/// State of a connection as its application sees it.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The connection is being opened.
    Opening {
        /// Reason for which the peer is said to refuse the connection. The sender of that refusal
        /// has not proved to be the peer. `None` if there was no refusal.
        refusal: Option<String>,
    },
    /// Data may flow.
    Open,
    /// Everything written has arrived and both directions are closed.
    Done,
    /// The connection has failed for this reason.
    Failed(Failure),
}

/// Progress of our direction of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// Some of our data, or the end of our stream, may not have arrived yet.
    UnderWay,
    /// All data have arrived in both directions and the peer has closed. Only its ACK of our FIN is
    /// missing.
    AwaitsFinalAck,
    /// Everything written has arrived, and so has the end of our stream.
    Finished,
}

/// Requests of the application to the connection. `write_closed`, `read_closed`, `dropped` and
/// `abort` stay set once they are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// The application will write no more.
    pub write_closed: bool,
    /// The application will read no more.
    pub read_closed: bool,
    /// The application has let go of the stream.
    pub dropped: bool,
    /// The application wants a reset.
    pub abort: bool,
    /// The application wants the peer to be probed. The connection clears this once it has seen it.
    pub probe: bool,
    /// Time for which ACKs are to wait for data that can carry them. `None` once the connection has
    /// seen the request.
    pub hold_acks: Option<Duration>,
    /// The application wants written data to leave even if they do not fill a block. The connection
    /// clears this once it has seen it.
    pub flush: bool,
    /// Whether blocks are to wait until they are full. `None` once the connection has seen the
    /// request.
    pub waits_to_fill: Option<bool>,
    /// The application has sent a small message by another connection to the same peer. The
    /// connection clears this once it has seen it.
    pub make_room: bool,
}

/// Progress of BBR's sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sending {
    /// Offset up to which the stream has been sent.
    pub cut: u64,
    /// Bytes that have to wait behind the sent ones, so that the sender misses no chance to send.
    pub ahead: usize,
}

/// State shared by the connection and its application.
#[derive(Debug)]
pub struct Exchange {
    /// State of the connection.
    pub phase: Phase,
    /// Bytes that were written and are not acknowledged.
    pub send: SendRing,
    /// Bytes that have arrived and were not read.
    pub receive: ReceiveRing,
    /// Account to which the memory of both buffers is charged.
    pub account: Account,
    /// Requests of the application.
    pub wishes: Wishes,
    /// Progress of our direction.
    pub delivery: Delivery,
    /// True if the peer has closed and all it sent is in the receive buffer.
    pub end_of_stream: bool,
    /// True if data are in flight, so that the connection will be run soon in any case. New bytes
    /// can wait until then.
    pub busy: bool,
    /// True if a block of TPA's that is not full waits for more data.
    pub waits_to_fill: bool,
    /// Progress of BBR's sender. `None` if another transport carries the connection.
    pub sending: Option<Sending>,
    /// True if the connection has to be told when the application reads, because the receive window
    /// is closed or partly used.
    pub window_closed: bool,
    /// Time of the first report that nobody knows the connection at the peer's address. `None` if
    /// there is no such report, or if the peer has given a sign of life since.
    pub doubted: Option<Time>,
    /// Counters of the transport.
    pub stats: Stats,
    /// Number of hops that the peer's last packet seems to have travelled.
    pub travelled: Option<u8>,
    /// Longest IP packet that the path was found to carry, bytes. `None` while nothing indicates
    /// that the path drops any.
    pub narrowed: Option<u32>,
}

impl Exchange {
    /// State of a connection that is being opened. `block` is the payload of a block in bytes; the
    /// memory of the buffers is charged to `account`.
    pub fn new(settings: &Settings, block: usize, account: Account) -> Exchange {
        Exchange {
            phase: Phase::Opening { refusal: None },
            send: SendRing::new(settings.send_buffer.max(2 * block), account.clone()),
            receive: ReceiveRing::new(settings.receive_buffer.max(3 * block), account.clone()),
            account,
            wishes: Wishes::default(),
            delivery: Delivery::UnderWay,
            end_of_stream: false,
            busy: false,
            waits_to_fill: settings.transport.waits_to_fill,
            sending: None,
            window_closed: false,
            doubted: None,
            stats: Stats::default(),
            travelled: None,
            narrowed: None,
        }
    }

    /// True if the connection is being opened.
    #[inline]
    pub fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Opening { .. })
    }

    /// True if data may flow.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// True if the connection has ended, successfully or not.
    #[inline]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Failed(_))
    }

    /// True if everything written has arrived and there is nothing more to wait for. Either the end
    /// of our stream has arrived too, or the peer has closed and is said to be gone. That claim is
    /// not proved, but the peer's last ACK is all that is missing.
    pub fn has_delivered(&self) -> bool {
        let is_gone = self.delivery == Delivery::AwaitsFinalAck && self.doubted.is_some();
        self.delivery == Delivery::Finished || is_gone
    }

    /// Reason of the failure. `None` if the connection has not failed.
    #[inline]
    pub fn failure(&self) -> Option<&Failure> {
        if let Phase::Failed(failure) = &self.phase { Some(failure) } else { None }
    }

    /// Marks the connection as failed. If it has failed before, the first reason remains.
    pub fn fail(&mut self, failure: Failure) {
        if self.failure().is_none() {
            self.phase = Phase::Failed(failure);
        }
    }

    /// Marks the connection as successfully ended.
    pub fn end(&mut self) {
        self.delivery = Delivery::Finished;
        self.phase = Phase::Done;
    }

    /// Frees both buffers, whose bytes are no longer needed.
    pub fn free(&mut self) {
        (self.send, self.receive) = (SendRing::new(0, Account::default()), ReceiveRing::new(0, Account::default()));
    }

    /// Keeps only the received bytes that are in order, which may still be read. Nothing more is
    /// sent or will arrive.
    pub fn settle(&mut self) {
        self.send.forget();
        self.receive.forget_beyond();
    }

    /// Notes that the application will neither read nor write any more.
    pub fn let_go(&mut self) {
        // As in TCP (RFC 2525, section 2.17), a reset tells the peer that nobody read its data. A
        // connection that is not open yet need not become open.
        self.wishes.abort |= self.is_opening() || (self.is_open() && self.receive.available() > 0);
        self.wishes = Wishes { write_closed: true, read_closed: true, dropped: true, ..self.wishes };
    }

    /// Closes our stream: everything that was written still arrives, and then its end. The other
    /// stream can still be read.
    pub fn close(&mut self) {
        self.wishes.write_closed = true;
    }

    /// Number of written bytes that have not been sent, and the number that is to wait. `None` if
    /// another transport than BBR carries the connection.
    pub fn unsent(&self) -> Option<(usize, usize)> {
        let sending = self.sending?;
        Some((self.send.end().saturating_sub(sending.cut) as usize, sending.ahead))
    }

    /// True if reading would not block.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.receive.available() > 0
            || self.end_of_stream
            || self.wishes.read_closed
            || matches!(self.phase, Phase::Failed(_))
    }

    /// True if writing would not block.
    #[inline]
    pub fn is_writable(&self) -> bool {
        let takes_more = !self.is_opening() && self.send.accepts();
        takes_more || self.wishes.write_closed || matches!(self.phase, Phase::Failed(_))
    }

    /// Reads what is available. Returns `None` if reading has to wait.
    pub fn read(&mut self, into: &mut [u8]) -> Option<io::Result<usize>> {
        // Data that arrived before a failure are still valid.
        if self.receive.available() > 0 || into.is_empty() {
            return Some(Ok(self.receive.read(into)));
        }
        if self.wishes.dropped && self.failure().is_none() {
            return Some(Err(Failure::new(Reason::Closed, "closed by this end").error()));
        }
        if self.end_of_stream || (self.wishes.read_closed && !self.wishes.dropped) {
            return Some(Ok(0));
        }
        self.failure().map(|failure| Err(failure.error()))
    }

    /// Writes as much as there is room for. Returns `None` if writing has to wait.
    pub fn write(&mut self, from: &[u8]) -> Option<io::Result<usize>> {
        if let Some(failure) = self.failure() {
            return Some(Err(failure.error()));
        }
        if self.wishes.write_closed {
            return Some(Err(io::Error::new(io::ErrorKind::BrokenPipe, "closed for writing")));
        }
        if self.is_opening() || (self.send.room() == 0 && !from.is_empty()) {
            return None;
        }
        match self.send.write(from) {
            // No more memory is available until some of the buffered bytes are acknowledged.
            Ok(0) if !from.is_empty() => None,
            Ok(written) => Some(Ok(written)),
            Err(refusal) => {
                let failure = Failure::new(Reason::NoMemory, refusal.to_string());
                self.fail(failure.clone());
                self.wishes.abort = true;
                Some(Err(failure.error()))
            }
        }
    }
}
