//! A hostile wire. It loses, duplicates, delays and reorders datagrams, and adds datagrams that
//! nobody sent.

use super::plan::{Mishap, Plan, stream};
use crate::connection::Report;
use crate::handshake::{stray, tag_of};
use meshpace_core::{Duration, Rng, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Number of datagrams that are kept for replay.
const KEPT: usize = 32;

/// Most forged datagrams of the handshake. A dozen of them would prevent the opening of a
/// connection.
const MOST_OPENINGS: u32 = 8;

/// Most forged errors and strays, if the wire may be silent for seconds. Three in such a time end a
/// connection.
const MOST_COMPLAINTS: u32 = 2;

/// Loss below which the limit on errors and strays does not apply; the other conditions are in
/// [`is_heard`].
const LITTLE_LOSS: f64 = 0.1;

/// Longest delay of a replayed datagram. The wire may thus replay datagrams after it has ceased to
/// be hostile.
const LATE: Duration = Duration::from_secs(20);

/// Length of the headers of IPv4 and UDP, bytes.
const HEADERS: usize = 28;

/// A datagram in flight.
#[derive(Clone, Debug)]
pub struct Flight {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    /// True if the sender did not send it, or sent it at another time.
    pub forged: bool,
}

/// Error that the network reports about a datagram from `from` to `to`. It quotes the beginning of
/// the datagram.
#[derive(Clone, Debug)]
pub struct Notice {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub quoted: Vec<u8>,
    pub report: Report,
}

/// The wire between two ends.
#[derive(Debug)]
pub struct Wire {
    /// Random numbers for the loss, duplication and delay of datagrams that were sent.
    rng: Rng,
    /// Random numbers for forged datagrams.
    forger: Rng,
    flights: BTreeMap<(Time, u64), Flight>,
    order: u64,
    /// Recently delivered datagrams, for replay.
    kept: Vec<Flight>,
    /// Errors that are to be reported now.
    pub notices: Vec<Notice>,
    forged_openings: u32,
    complaints: u32,
    /// Number of datagrams on the wire that the sender did not send, or sent at another time.
    /// Strays are not counted.
    pub forged: u64,
}

/// True if an end that probes its peer receives an answer soon.
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

    /// Accepts a datagram from its sender.
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

    /// Adds a forgery by an attacker who has seen `flight`.
    fn forge(&mut self, plan: &Plan, now: Time, flight: &Flight) {
        let is_opening = tag_of(&flight.bytes) == Some(0);
        let at = now + Duration(self.forger.below(50_000_000));
        let mut forged = Flight { forged: true, ..flight.clone() };
        match self.forger.below(7) {
            // Alteration of a datagram, only with encryption. Without encryption it would succeed,
            // since the tag protects only against attackers who cannot read the packets.
            0 | 1 if plan.is_sealed() => {
                if is_opening {
                    self.forged_openings += 1;
                    // An altered request may ask for something that the peer refuses. If the peer's
                    // key is not known, the refusal is believed.
                    if self.forged_openings > MOST_OPENINGS || !plan.settings[0].security.knows_peer() {
                        return;
                    }
                }
                // Datagrams of the handshake are not truncated: a request without its padding makes
                // a narrow path look wide, and the connection would then stall for good.
                if !is_opening && self.forger.below(4) == 0 {
                    forged.bytes.truncate(self.forger.below(flight.bytes.len() as u64) as usize);
                } else {
                    let bit = self.forger.below(8 * flight.bytes.len() as u64) as usize;
                    forged.bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
            // Replay of an earlier datagram.
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
            // Copy from another address.
            4 => forged.from = SocketAddr::from(([10, 0, 0, 66], 66)),
            // Random bytes with a guessed tag.
            5 => {
                let length = 1 + self.forger.below(200);
                forged.bytes = (0..length).map(|_| self.forger.below(256) as u8).collect();
                forged.bytes[0] |= 1;
            }
            6 if !is_opening && (self.complaints < MOST_COMPLAINTS || is_heard(plan)) => {
                self.complaints += 1;
                let report = match self.forger.below(4) {
                    0 => Report::Refused,
                    1 => Report::HostUnreachable,
                    2 => Report::TooLong { mtu: 100 },
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
                self.notices.push(Notice { from: flight.from, to: flight.to, quoted, report });
                return;
            }
            _ => return,
        }
        if forged.bytes.len() + HEADERS <= plan.mtu {
            self.forged += 1;
            self.put(at, forged);
        }
    }

    /// Time at which the next datagram arrives.
    pub fn next(&self) -> Time {
        self.flights.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at)
    }

    /// Returns the next datagram that has arrived by `now`. `None` if there is none.
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
