//! A hostile wire: it loses, doubles, delays and reorders, and adds what nobody sent.

use super::plan::{Mishap, Plan, stream};
use crate::tpa::session::handshake::{stray, tag_of};
use meshpace_core::{Duration, Rng, Time};
use nix::libc;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Datagrams kept to be played again.
const KEPT: usize = 32;

/// Forged answers to requests, at most: whoever forges a dozen keeps a connection from being opened.
const MOST_OPENINGS: u32 = 8;

/// Forged complaints and strays, at most, where the wire may be silent for seconds: three in such a time end a connection.
const MOST_COMPLAINTS: u32 = 2;

/// Where it loses no more than this, and has no blackout, as many as come.
const LITTLE_LOSS: f64 = 0.1;

/// Time for which the wire still plays datagrams again after it has ceased to be hostile.
const LATE: Duration = Duration::from_secs(20);

/// Bytes of IPv4's header and UDP's.
const HEADERS: usize = 28;

/// A datagram under way.
#[derive(Clone, Debug)]
pub struct Flight {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    /// Its sender did not send it, or not now.
    pub forged: bool,
}

/// Complaint of the network about a datagram from `from` to `to`, of which it quotes the beginning: an errno and an MTU.
#[derive(Clone, Debug)]
pub struct Notice {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub quoted: Vec<u8>,
    pub complaint: (i32, u32),
}

/// The wire.
#[derive(Debug)]
pub struct Wire {
    /// For loss, doubling and delay of what was sent.
    rng: Rng,
    /// For what was not.
    forger: Rng,
    flights: BTreeMap<(Time, u64), Flight>,
    order: u64,
    /// Delivered lately.
    kept: Vec<Flight>,
    /// Notices to be given now.
    pub notices: Vec<Notice>,
    forged_openings: u32,
    complaints: u32,
    /// Datagrams that their sender did not send, or not then.
    pub forged: u64,
}

/// True if an end that asks its peer for a sign of life hears one soon.
fn is_heard(plan: &Plan) -> bool {
    let is_dark = plan.blackout.0 < plan.blackout.1;
    plan.is_sealed() && plan.mishap == Mishap::None && !is_dark && plan.loss < LITTLE_LOSS && plan.mtu >= 1500
}

impl Wire {
    pub fn new(plan: &Plan) -> Wire {
        Wire {
            rng: stream(plan.seed, 1),
            forger: stream(plan.seed, 2),
            flights: BTreeMap::new(),
            order: 0,
            kept: Vec::new(),
            notices: Vec::new(),
            forged_openings: 0,
            complaints: 0,
            forged: 0,
        }
    }

    fn put(&mut self, at: Time, flight: Flight) {
        self.order += 1;
        self.flights.insert((at, self.order), flight);
    }

    /// A datagram leaves its sender.
    pub fn send(&mut self, plan: &Plan, now: Time, flight: Flight) {
        let hostile = now < plan.hostile_until;
        if hostile && self.forger.uniform() < plan.forging {
            self.forge(plan, now, &flight);
        }
        let too_long = flight.bytes.len() + HEADERS > plan.mtu;
        let is_dark = plan.blackout.0 <= now && now < plan.blackout.1;
        let is_lost = hostile && self.rng.uniform() < plan.loss;
        let is_doubled = hostile && self.rng.uniform() < plan.doubling;
        if too_long || is_dark || is_lost {
            return;
        }
        for _ in 0..1 + u32::from(is_doubled) {
            let more = if hostile { (self.rng.uniform() * plan.jitter.0 as f64) as u64 } else { 0 };
            self.put(now + plan.delay + Duration(more), flight.clone());
        }
    }

    /// Somebody who has seen `flight` adds something.
    fn forge(&mut self, plan: &Plan, now: Time, flight: &Flight) {
        let is_opening = tag_of(&flight.bytes) == Some(0);
        let at = now + Duration(self.forger.below(50_000_000));
        let mut forged = Flight { forged: true, ..flight.clone() };
        match self.forger.below(7) {
            // Changed under way: nobody can without encryption who cannot read.
            0 | 1 if plan.is_sealed() => {
                if is_opening {
                    self.forged_openings += 1;
                    // A request for something else is refused, which without known keys is believed.
                    if self.forged_openings > MOST_OPENINGS || !plan.settings[0].security.knows_peer() {
                        return;
                    }
                }
                // A request without its padding makes a narrow path look wide: who cuts it short has the connection stall for good.
                if !is_opening && self.forger.below(4) == 0 {
                    forged.bytes.truncate(self.forger.below(flight.bytes.len() as u64) as usize);
                } else {
                    let bit = self.forger.below(8 * flight.bytes.len() as u64) as usize;
                    forged.bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
            // Played again.
            2 | 3 if plan.is_sealed() && !self.kept.is_empty() => {
                let which = self.forger.below(self.kept.len() as u64) as usize;
                forged = Flight { forged: true, ..self.kept[which].clone() };
                if tag_of(&forged.bytes) == Some(0) {
                    self.forged_openings += 1;
                    if self.forged_openings > MOST_OPENINGS {
                        return;
                    }
                }
                self.forged += 1;
                let later = at + Duration(self.forger.below(LATE.0));
                return self.put(later, forged);
            }
            // From another address.
            4 => forged.from = SocketAddr::from(([10, 0, 0, 66], 66)),
            // With a guessed tag.
            5 => {
                let length = 1 + self.forger.below(200);
                forged.bytes = (0..length).map(|_| self.forger.below(256) as u8).collect();
                forged.bytes[0] |= 1;
            }
            6 if !is_opening && (self.complaints < MOST_COMPLAINTS || is_heard(plan)) => {
                self.complaints += 1;
                let complaint = match self.forger.below(4) {
                    0 => (libc::ECONNREFUSED, 0),
                    1 => (libc::EHOSTUNREACH, 0),
                    2 => (libc::EMSGSIZE, 100),
                    _ => {
                        let tag = tag_of(&flight.bytes).unwrap_or_default();
                        if plan.is_sealed() {
                            let (from, to) = (flight.to, flight.from);
                            self.put(at, Flight { from, to, bytes: stray(tag).to_vec(), forged: true });
                        }
                        return;
                    }
                };
                let quoted = flight.bytes[..flight.bytes.len().min(64)].to_vec();
                self.notices.push(Notice { from: flight.from, to: flight.to, quoted, complaint });
                return;
            }
            _ => return,
        }
        if forged.bytes.len() + HEADERS <= plan.mtu {
            self.forged += 1;
            self.put(at, forged);
        }
    }

    /// When the next datagram arrives.
    pub fn next(&self) -> Time {
        self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at)
    }

    /// A datagram that has arrived at `now`.
    pub fn arrival(&mut self, now: Time) -> Option<Flight> {
        let entry = self.flights.first_entry().filter(|entry| entry.key().0 <= now)?;
        let flight = entry.remove();
        if !flight.forged {
            if self.kept.len() == KEPT {
                self.kept.swap_remove(self.forger.below(KEPT as u64) as usize);
            }
            self.kept.push(flight.clone());
        }
        Some(flight)
    }
}
