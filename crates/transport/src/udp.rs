//! UDP: a source that sends what the application writes, at most at its rate, and a sink that
//! counts datagrams.
//!
//! RFC 768. As in ns-2, sizes count 20 bytes for the IP and UDP headers together.

use crate::about::Named;
use crate::output::{Machine, Output};
use crate::stats::Stats;
use alloc::format;
use alloc::string::String;
use meshpace_core::parameter::require;
use meshpace_core::{Rate, Time, parameters};

/// Bytes of the IP and UDP headers together (ns-2 convention; 28 on the wire).
pub const HEADER_BYTES: u32 = 20;

/// A UDP datagram without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Number of the datagram, counted from 0.
    pub number: u64,
    /// Payload bytes.
    pub payload: u16,
}

parameters! {
    /// Parameters of a UDP flow.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// rate of the datagrams, counting their payload only
        rate: Option<Rate> = None => RATE.above(0.0).or("as fast as data is written"), Basic;
    }
    others {
        /// Payload of a full datagram in bytes, 1..=65507. Default 1460 (AP05, section 5).
        segment: u32 = 1460;
    }
    also |config| require((1..=65507).contains(&config.segment), "segment", config.segment, "1 to 65507 bytes");
}

/// UDP at the rate at which the application writes.
pub const UDP: Named<Config> = Named {
    name: "udp",
    description: "UDP at the rate at which the application writes",
    source: "RFC 768; header size of ns-2",
    config: Config::default,
};

impl Config {
    /// Describes the parameters in one line, for people.
    pub fn describe(&self) -> String {
        match self.rate {
            Some(rate) => format!("{rate}"),
            None => String::from("no window, no pacing of its own"),
        }
    }
}

/// The sending end. It divides the written data into datagrams.
#[derive(Clone, Debug)]
pub struct Source {
    config: Config,
    stats: Stats,
    /// Bytes written and not yet sent.
    backlog: u64,
    /// Number of the next datagram.
    number: u64,
    /// Time at which the next datagram may leave.
    earliest: Time,
    opened: bool,
    closed: bool,
    wakeup: Time,
}

impl Source {
    /// Creates a source that sends nothing before [`Source::open`].
    pub fn new(config: &Config) -> Source {
        Source {
            stats: Stats::default(),
            backlog: 0,
            number: 0,
            earliest: Time::ZERO,
            opened: false,
            closed: false,
            wakeup: Time::NEVER,
            config: config.clone(),
        }
    }

    /// The application opens the flow. Datagrams may leave from now on.
    pub fn open(&mut self, now: Time) {
        self.opened = true;
        self.refresh(now);
    }

    /// The application writes `bytes` more to send.
    pub fn write(&mut self, now: Time, bytes: u64) {
        if !self.closed {
            self.backlog = self.backlog.saturating_add(bytes);
        }
        self.refresh(now);
    }

    /// The application will write no more. Data that it has written is still sent.
    pub fn close(&mut self, now: Time) {
        self.closed = true;
        self.refresh(now);
    }

    /// The next datagram that may leave; `None` if none may leave now.
    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        if !self.opened || self.backlog == 0 || now < self.earliest {
            self.refresh(now);
            return None;
        }
        let payload = self.backlog.min(u64::from(self.config.segment)) as u16;
        self.backlog -= u64::from(payload);
        if let Some(rate) = self.config.rate {
            // The next send time is computed from the planned time and not from `now`, so a late
            // poll does not lower the rate.
            let base = if self.number == 0 { now } else { self.earliest };
            self.earliest = base.saturating_add(rate.time_for(u32::from(payload)));
        }
        let datagram = Datagram { number: self.number, payload };
        self.number += 1;
        self.stats.segments_sent += 1;
        self.refresh(now);
        Some(datagram)
    }

    fn refresh(&mut self, now: Time) {
        let waits = self.opened && self.backlog > 0;
        self.wakeup = if waits { self.earliest.max(now) } else { Time::NEVER };
    }

    /// True if the source limits the rate of its datagrams itself.
    pub fn has_rate(&self) -> bool {
        self.config.rate.is_some()
    }

    /// True if everything has been sent and nothing more will be written.
    pub fn is_done(&self) -> bool {
        self.closed && self.backlog == 0
    }

    /// The counters of the source.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Machine for Source {
    type Segment = Datagram;

    fn poll(&mut self, now: Time) -> Output<Datagram> {
        let segment = self.poll_transmit(now);
        Output::new(segment, self.wakeup)
    }
}

/// The receiving end, which counts datagrams.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    stats: Stats,
    received: u64,
}

impl Sink {
    /// A datagram arrived. Each arrival counts; duplicates by the network are not expected.
    pub fn on_datagram(&mut self, datagram: &Datagram) {
        self.stats.distinct_segments_received += 1;
        self.received += u64::from(datagram.payload);
    }

    /// Payload bytes received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The counters of the sink.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
