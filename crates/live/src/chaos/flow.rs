//! One end of a tunnel's flow of datagrams. Its application sends the planned datagrams, knows
//! every datagram that may arrive, and counts the datagrams that the carriers take.

use super::plan::{FlowPlan, HEAD};
use crate::tunnel::Class;
use meshpace_core::Time;
use meshpace_session::content::byte;

/// A datagram that the application has sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    /// True if the session did not accept the datagram.
    refused: bool,
}

/// Whether and how a flow has ended for an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// The flow has not ended, or its session ended first.
    No,
    /// This end has left the flow with this code.
    Here(u8),
    /// The peer has left the flow with this code.
    There(u8),
}

/// One end of a flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowEnd {
    /// Numbers that identify the datagrams of the flow: those that this end sends, and those that
    /// it receives.
    names: [u64; 2],
    plan: FlowPlan,
    /// True at the end that has opened the flow.
    opens: bool,
    sent: Vec<Sent>,
    /// Number of sent datagrams that a carrier has taken completely, and the number of the last of
    /// them.
    pub(crate) left: u64,
    last_left: Option<u64>,
    /// Number of datagrams that have arrived, and the number of the last of them.
    pub(crate) came: u64,
    last_came: Option<u64>,
    pub(crate) over: Over,
    /// The first invariant that was violated.
    wrong: Option<&'static str>,
}

impl FlowEnd {
    /// Creates the end that has opened the flow `name`, or the other end.
    pub(crate) fn new(name: u64, opens: bool, plan: FlowPlan) -> FlowEnd {
        let names = [opens, !opens].map(|ours| name.wrapping_mul(2) ^ u64::from(ours));
        let (over, wrong) = (Over::No, None);
        FlowEnd {
            names,
            plan,
            opens,
            sent: Vec::new(),
            left: 0,
            last_left: None,
            came: 0,
            last_came: None,
            over,
            wrong,
        }
    }

    /// Sends the datagrams that are due. `put` sends one and returns how many datagrams were
    /// dropped for it, including itself; `None` if the flow has ended. Returns true if anything was
    /// sent.
    pub(crate) fn send(&mut self, now: Time, mut put: impl FnMut(&[u8]) -> Option<u64>) -> bool {
        let ours = usize::from(!self.opens);
        let before = self.sent.len();
        while self.over == Over::No
            && let Some((at, length)) = self.plan.datagram(ours, self.sent.len() as u64)
            && at <= now
        {
            let number = self.sent.len() as u64;
            let Some(given_up) = put(&datagram(self.names[0], number, length)) else { break };
            self.sent.push(Sent { at: now, refused: self.plan.class == Class::Reliable && given_up > 0 });
        }
        self.sent.len() > before
    }

    /// Time at which the end sends the next datagram.
    pub(crate) fn sends_at(&self) -> Time {
        let next = self.plan.datagram(usize::from(!self.opens), self.sent.len() as u64);
        next.filter(|_| self.over == Over::No).map_or(Time::NEVER, |(at, _)| at)
    }

    /// The code with which this end has to leave the flow now; `None` if it does not have to.
    pub(crate) fn leaves(&self) -> Option<u8> {
        let (end, after, code) = self.plan.leaves.filter(|_| self.over == Over::No)?;
        ((end == 0) == self.opens && self.came >= after).then_some(code)
    }

    /// Records that a carrier has taken a datagram of the flow completely. It took the first byte
    /// at `began`.
    pub(crate) fn on_left(&mut self, bytes: &[u8], began: Time) {
        let number = number(bytes);
        self.left += 1;
        if self.last_left.is_some_and(|last| number <= last) {
            self.breaks("a datagram of a flow leaves once and in order");
        }
        self.last_left = Some(number);
        let Some(sent) = self.sent.get(number as usize) else { return self.breaks("what leaves was sent") };
        if let Class::Expiring(life) = self.plan.class
            && began >= sent.at + life
        {
            self.breaks("a datagram that has expired does not leave");
        }
    }

    /// Records and checks a datagram that has arrived.
    pub(crate) fn on_came(&mut self, bytes: &[u8]) {
        if matches!(self.over, Over::Here(_)) {
            return self.breaks("who has left a flow hears nothing more by it");
        }
        let number = number(bytes);
        let length = self.plan.datagram(usize::from(self.opens), number).map(|(_, length)| length);
        if bytes.len() < HEAD || bytes[..8] != self.names[1].to_be_bytes() {
            self.breaks("a datagram arrives at its own flow alone");
        } else if length.is_none_or(|length| bytes != datagram(self.names[1], number, length)) {
            self.breaks("a datagram arrives whole");
        } else if self.last_came.is_some_and(|last| number <= last) {
            self.breaks("a datagram arrives once, and not behind a later one");
        }
        self.last_came = Some(number);
        self.came += 1;
    }

    /// Records that the peer has left the flow.
    pub(crate) fn on_peer_left(&mut self, code: u8) {
        if self.over != Over::No {
            self.breaks("the end of a flow is told once");
        }
        self.over = Over::There(code);
    }

    fn breaks(&mut self, invariant: &'static str) {
        self.wrong.get_or_insert(invariant);
    }
}

/// True if all datagrams that were due by `now` have been sent and have arrived in both directions,
/// or if the flow has ended at both ends.
pub(crate) fn rests(now: Time, [one, other]: [&FlowEnd; 2]) -> bool {
    if one.over != Over::No || other.over != Over::No {
        return one.over != Over::No && other.over != Over::No;
    }
    let has = |from: &FlowEnd, to: &FlowEnd| from.sends_at() > now && from.left == to.came;
    has(one, other) && has(other, one)
}

/// Checks the invariants of both ends of a flow. The first end is the one that opened it. With
/// `all`, all datagrams had time to arrive.
///
/// # Errors
///
/// The invariant that is violated.
pub(crate) fn compare(ends: [Option<&FlowEnd>; 2], all: bool) -> Result<(), &'static str> {
    for (own, peer) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        let Some(own) = own else { continue };
        own.wrong.map_or(Ok(()), Err)?;
        let (sent, left) = peer.map_or((0, 0), |peer| (peer.sent.len() as u64, peer.left));
        if own.came > left || own.last_came.is_some_and(|last| last >= sent) {
            return Err("no datagram arrives that was not sent");
        }
        if !all {
            continue;
        }
        let Some(peer) = peer else { return Err("a flow that was opened is so at both ends") };
        match (own.over, peer.over) {
            (Over::No, Over::No) => {
                own.has_all_left().and(if own.left == peer.came { Ok(()) } else { Err("what has left arrives") })?
            }
            (Over::There(code), Over::Here(said)) if code == said => {}
            (Over::Here(_), Over::Here(_) | Over::There(_)) => {}
            _ => return Err("who leaves a flow is heard, with the reason"),
        }
    }
    Ok(())
}

impl FlowEnd {
    /// Checks that the datagrams that were not sent are only those that the class of the flow
    /// allows to be dropped.
    fn has_all_left(&self) -> Result<(), &'static str> {
        let refused = self.sent.iter().filter(|sent| sent.refused).count();
        match self.plan.class {
            Class::Reliable if self.left + refused as u64 != self.sent.len() as u64 => {
                Err("what is reliable and was taken leaves")
            }
            Class::Latest if self.last_left.map_or(0, |last| last + 1) != self.sent.len() as u64 => {
                Err("the latest leaves")
            }
            _ => Ok(()),
        }
    }
}

/// Datagram with this number and of `length` bytes, at least `HEAD`.
fn datagram(name: u64, number: u64, length: usize) -> Vec<u8> {
    let mut bytes = [name.to_be_bytes(), number.to_be_bytes()].concat();
    bytes.extend((HEAD as u64..length as u64).map(|at| byte(name ^ (number << 32), at)));
    bytes
}

/// Number in a datagram. If the datagram is too short, a number that no datagram has.
fn number(bytes: &[u8]) -> u64 {
    bytes.get(8..HEAD).and_then(|bytes| bytes.try_into().ok()).map_or(u64::MAX, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::plan::Burst;
    use super::*;
    use meshpace_core::Duration;

    /// Two ends of a flow of this class of which the first has sent three datagrams, and they have left and come.
    fn passed(class: Class) -> [FlowEnd; 2] {
        let bursts = [vec![Burst { at: Time::ZERO, count: 3, length: 40 }], Vec::new()];
        let plan = FlowPlan { at: Time::ZERO, class, bursts, leaves: None };
        let mut ends = [true, false].map(|opens| FlowEnd::new(7, opens, plan.clone()));
        for bytes in sent(&mut ends[0], 0) {
            ends[0].on_left(&bytes, Time::ZERO);
            ends[1].on_came(&bytes);
        }
        ends
    }

    /// What an end sends, of which so many are given up for each.
    fn sent(end: &mut FlowEnd, given_up: u64) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        end.send(Time::ZERO, |bytes| {
            all.push(bytes.to_vec());
            Some(given_up)
        });
        all
    }

    fn broken(class: Class, change: impl FnOnce(&mut [FlowEnd; 2])) -> bool {
        let mut ends = passed(class);
        change(&mut ends);
        compare([Some(&ends[0]), Some(&ends[1])], true).is_err()
    }

    #[test]
    fn what_is_broken_is_found() {
        let expiring = Class::Expiring(Duration::from_millis(50));
        for class in [Class::Reliable, Class::Latest, expiring] {
            assert!(!broken(class, |_| {}), "{class:?}");
            assert!(broken(class, |ends| ends[1].on_came(&datagram(ends[1].names[1], 1, 40))), "twice");
            assert!(broken(class, |ends| ends[1].came -= 1), "it has left and does not arrive");
            assert!(broken(class, |ends| ends[0].over = Over::Here(3)), "the peer is not told");
        }
        let fresh = |change: &dyn Fn(&mut FlowEnd, Vec<Vec<u8>>)| {
            broken(Class::Reliable, |ends| {
                let [mut own, mut peer] = ends.each_ref().map(|end| FlowEnd::new(7, end.opens, end.plan.clone()));
                let all = sent(&mut own, 0);
                all.iter().for_each(|bytes| own.on_left(bytes, Time::ZERO));
                change(&mut peer, all);
                *ends = [own, peer];
            })
        };
        let come = |peer: &mut FlowEnd, all: &[Vec<u8>]| all.iter().for_each(|bytes| peer.on_came(bytes));
        assert!(!fresh(&|peer, all| come(peer, &all)));
        assert!(
            fresh(&|peer, mut all| come(peer, {
                all[1].pop();
                &all
            })),
            "torn"
        );
        assert!(
            fresh(&|peer, mut all| come(peer, {
                all[1][30] ^= 1;
                &all
            })),
            "another bit"
        );
        assert!(
            fresh(&|peer, mut all| come(peer, {
                all.swap(0, 1);
                &all
            })),
            "overtaken"
        );
        assert!(
            fresh(&|peer, mut all| come(peer, {
                all[2] = datagram(99, 2, 40);
                &all
            })),
            "of another flow"
        );
        assert!(broken(Class::Reliable, |ends| ends[0].left = 2), "taken, and given up");
        assert!(broken(Class::Latest, |ends| ends[0].last_left = Some(1)), "the latest is given up");
        let late = |ends: &mut [FlowEnd; 2]| {
            ends[0].last_left = None;
            ends[0].on_left(&datagram(ends[0].names[0], 0, 40), Time::ZERO + Duration::from_millis(50));
        };
        assert!(broken(expiring, late));
    }
}
