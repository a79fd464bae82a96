//! State that a connection and its application exchange: bytes both ways, wishes and news.

use super::failure::Failure;
use super::settings::Settings;
use crate::budget::Account;
use crate::ring::{ReceiveRing, SendRing};
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use nix::libc;
use std::io;

/// Where a connection stands for its application.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Being opened.
    Opening {
        /// Why the peer refuses the connection, as somebody says who has not proved to be it.
        refusal: Option<String>,
    },
    /// Data may flow.
    Open,
    /// Everything written has arrived and both directions are closed.
    Done,
    /// Failed, and why.
    Failed(Failure),
}

/// Progress of our direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// Something may still have to arrive.
    UnderWay,
    /// Everything has arrived both ways, the peer has closed, and only its answer to our closing is missing.
    AwaitsFinalAck,
    /// Everything written and the end of it have arrived.
    Finished,
}

/// Wishes of the application. That it closes, lets go or wants a reset it wishes for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// It will write no more.
    pub write_closed: bool,
    /// It will read no more.
    pub read_closed: bool,
    /// It has let go of the stream.
    pub dropped: bool,
    /// It wants a reset.
    pub abort: bool,
    /// It wants the peer to hear something, and to answer.
    pub probe: bool,
    /// It wants ACKs to wait so long for data to ride on; none once the connection knows.
    pub hold_acks: Option<Duration>,
    /// What it has written is to leave although it does not fill a block; false once the connection knows.
    pub flush: bool,
    /// Whether blocks are to wait until they are full; none once the connection knows.
    pub waits_to_fill: Option<bool>,
    /// It has sent a small message by another connection to the same peer; false once the connection knows.
    pub make_room: bool,
}

/// Progress of a sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sending {
    /// Offset up to which the stream has left.
    pub cut: u64,
    /// Bytes that are to wait behind it, so that no chance to send is missed.
    pub ahead: usize,
}

/// State that the connection and its application both look at.
#[derive(Debug)]
pub struct Exchange {
    /// Where the connection stands.
    pub phase: Phase,
    /// Bytes that were written and have not arrived.
    pub send: SendRing,
    /// Bytes that have arrived and were not read.
    pub receive: ReceiveRing,
    /// Memory that both take.
    pub account: Account,
    /// Wishes of the application.
    pub wishes: Wishes,
    /// Progress of our direction.
    pub delivery: Delivery,
    /// The peer has closed and all it sent is in the ring.
    pub end_of_stream: bool,
    /// Something is under way, so that the connection will soon be looked at anyway: new bytes can wait until then.
    pub busy: bool,
    /// True if a block of TPA's that is not full waits for more data.
    pub waits_to_fill: bool,
    /// Progress of BBR's sender, where BBR carries the connection.
    pub sending: Option<Sending>,
    /// The peer has been told to wait: reading has to be reported.
    pub window_closed: bool,
    /// Since when the peer's address has said that nobody knows the connection there, without the peer having been heard.
    pub doubted: Option<Time>,
    /// Counters of the transport.
    pub stats: Stats,
    /// Hops the peer's last packet seems to have come.
    pub travelled: Option<u8>,
    /// Longest IP packet that the path was found to carry, bytes; `None` while nothing says that it drops any.
    pub narrowed: Option<u32>,
}

impl Exchange {
    /// Of a connection being opened whose blocks have `block` bytes, and whose buffers are booked in `account`.
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

    /// True if it is being opened.
    pub fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Opening { .. })
    }

    /// True if data may flow.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// True if it has ended, well or not.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Failed(_))
    }

    /// True if everything written has arrived and nobody need wait for more: the end of it has arrived, too, or the peer has closed and
    /// somebody says that it is gone. The word is not proved, but it is all that is missing.
    pub fn has_delivered(&self) -> bool {
        let is_gone = self.delivery == Delivery::AwaitsFinalAck && self.doubted.is_some();
        self.delivery == Delivery::Finished || is_gone
    }

    /// Why it has failed, if it has.
    pub fn failure(&self) -> Option<&Failure> {
        if let Phase::Failed(failure) = &self.phase { Some(failure) } else { None }
    }

    /// It fails; what it has failed of before remains the reason.
    pub fn fail(&mut self, failure: Failure) {
        if self.failure().is_none() {
            self.phase = Phase::Failed(failure);
        }
    }

    /// It is over, and well.
    pub fn end(&mut self) {
        self.delivery = Delivery::Finished;
        self.phase = Phase::Done;
    }

    /// The bytes are needed no more.
    pub fn free(&mut self) {
        (self.send, self.receive) = (SendRing::new(0, Account::default()), ReceiveRing::new(0, Account::default()));
    }

    /// Nothing more is sent or will come: what is in order may still be read, nothing else is needed.
    pub fn settle(&mut self) {
        self.send.forget();
        self.receive.forget_beyond();
    }

    /// The application will neither read nor write any more.
    pub fn let_go(&mut self) {
        // As TCP (RFC 2525, section 2.17): a peer whose data nobody read is told, not left to believe otherwise. And what is not open need
        // not become so.
        self.wishes.abort |= self.is_opening() || (self.is_open() && self.receive.available() > 0);
        self.wishes = Wishes { write_closed: true, read_closed: true, dropped: true, ..self.wishes };
    }

    /// Bytes written that have not left, and as many as are to be; none where BBR does not carry the connection.
    pub fn unsent(&self) -> Option<(usize, usize)> {
        let sending = self.sending?;
        Some((self.send.end().saturating_sub(sending.cut) as usize, sending.ahead))
    }

    /// True if reading would not wait.
    pub fn is_readable(&self) -> bool {
        self.receive.available() > 0
            || self.end_of_stream
            || self.wishes.read_closed
            || matches!(self.phase, Phase::Failed(_))
    }

    /// True if writing would not wait.
    pub fn is_writable(&self) -> bool {
        let has_room = !self.is_opening() && self.send.room() > 0;
        has_room || self.wishes.write_closed || matches!(self.phase, Phase::Failed(_))
    }

    /// Reads what is there; none if that has to be waited for.
    pub fn read(&mut self, into: &mut [u8]) -> Option<io::Result<usize>> {
        // What arrived before a failure is still good.
        if self.receive.available() > 0 || into.is_empty() {
            return Some(Ok(self.receive.read(into)));
        }
        if self.wishes.dropped && self.failure().is_none() {
            return Some(Err(Failure::new(libc::EBADF, "closed by this end").error()));
        }
        if self.end_of_stream || (self.wishes.read_closed && !self.wishes.dropped) {
            return Some(Ok(0));
        }
        self.failure().map(|failure| Err(failure.error()))
    }

    /// Writes what there is room for; none if that has to be waited for.
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
            // There is no memory for more until some of what is kept is acknowledged.
            Ok(0) if !from.is_empty() => None,
            Ok(written) => Some(Ok(written)),
            Err(refusal) => {
                let failure = Failure::new(libc::ENOBUFS, refusal.to_string());
                self.fail(failure.clone());
                self.wishes.abort = true;
                Some(Err(failure.error()))
            }
        }
    }
}
