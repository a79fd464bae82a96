//! Chooses the fault that a datagram meets. First come the faults that the plan schedules for a moment, which is a situation of the
//! protocol, such as "the first request". Otherwise chance decides, which prefers moments that were seldom seen in this run, and of the faults that
//! are allowed there takes the one that the run has had least often.

use super::faults::{Fault, Moment, Mood, Protected};
use super::plan::{Aim, Plan, stream};
use meshpace_core::{Rng, Time};

/// The n-th datagram at a moment meets a random fault with this probability divided by n.
const FIRST_PROBABILITY: f64 = 0.5;

/// Random faults of one run, at most.
const MAX_RANDOM: u32 = 16;

/// Faults at messages of a handshake in a run, after which none is forged: an observer who forges a dozen keeps a connection from being opened,
/// as docs/wire.md says, and that would be all of the run.
const MAX_AT_OPENINGS: u32 = 6;

/// Crashes of the two ends together in a run, at most.
const MAX_CRASHES: u32 = 2;

/// Chooses faults.
#[derive(Debug)]
pub(crate) struct Planner {
    aims: Vec<Aim>,
    mood: Mood,
    protected: Protected,
    /// Random faults end then.
    hostile_until: Time,
    rng: Rng,
    /// Datagrams so far, by moment.
    seen: Vec<u32>,
    /// Faults that came about, by fault.
    had: Vec<u32>,
    /// Faults at messages of a handshake.
    at_openings: u32,
    random: u32,
}

impl Planner {
    pub(crate) fn new(plan: &Plan) -> Planner {
        Planner {
            aims: plan.aims.clone(),
            mood: plan.mood,
            protected: plan.protected(),
            hostile_until: plan.hostile_until,
            rng: stream(plan.seed, 5),
            seen: vec![0; Moment::ALL.len()],
            had: vec![0; Fault::ALL.len()],
            at_openings: 0,
            random: 0,
        }
    }

    /// The fault for a datagram that leaves at this moment, if any. Call [`Planner::on_done`] once it came about. A scheduled fault that is not allowed is
    /// dropped; while one is due, those scheduled behind it do not count the datagram.
    pub(crate) fn next(&mut self, now: Time, moment: Moment) -> Option<Fault> {
        let seen = &mut self.seen[moment as usize];
        *seen += 1;
        let aimed = self.aims.iter_mut().position(|aim| {
            let is_due = aim.moment == moment && aim.after == 0;
            aim.after -= u32::from(aim.moment == moment && aim.after > 0);
            is_due
        });
        if let Some(index) = aimed {
            return Some(self.aims.remove(index).fault).filter(|fault| self.is_allowed(*fault, moment));
        }
        if now >= self.hostile_until
            || self.random >= MAX_RANDOM
            || self.rng.uniform() >= FIRST_PROBABILITY / f64::from(*seen)
        {
            return None;
        }
        let begin = self.rng.below(Fault::ALL.len() as u64) as usize;
        let (before, behind) = Fault::ALL.split_at(begin);
        // Of faults that were had equally often, the first from a random one on.
        let allowed: Vec<Fault> =
            behind.iter().chain(before).copied().filter(|fault| self.is_allowed(*fault, moment)).collect();
        let fault = allowed.into_iter().min_by_key(|fault| self.had[*fault as usize])?;
        self.random += 1;
        Some(fault)
    }

    fn is_allowed(&self, fault: Fault, moment: Moment) -> bool {
        let had = |fault: Fault| self.had[fault as usize];
        let is_forged =
            matches!(fault, Fault::Corrupt | Fault::Replay | Fault::Refuse | Fault::TooBig | Fault::Elsewhere);
        fault.may(moment, self.mood, self.protected)
            && !(is_forged && moment.is_opening() && self.at_openings >= MAX_AT_OPENINGS)
            && !(matches!(fault, Fault::Crash | Fault::CrashPeer)
                && had(Fault::Crash) + had(Fault::CrashPeer) >= MAX_CRASHES)
            && !(matches!(fault, Fault::Move | Fault::Crowd) && had(fault) >= 1)
    }

    /// The fault came about.
    pub(crate) fn on_done(&mut self, fault: Fault, moment: Moment) {
        self.had[fault as usize] += 1;
        self.at_openings += u32::from(moment.is_opening());
    }
}
