//! Which fault a datagram meets: what the plan aims at, and else what the run has had least, rather at moments that it has seen seldom.

use super::faults::{Fault, Moment, Mood, Protected};
use super::plan::{Aim, Plan, stream};
use meshpace_core::{Rng, Time};

/// Of the first datagram at a moment this share meets a fault, of the second half as many, and so on.
const RATE: f64 = 0.5;

/// Faults of one run that were not aimed at, at most.
const MOST: u32 = 16;

/// Forged messages of a handshake in a run, at most: whoever forges a dozen keeps a connection from being opened.
const MOST_OPENINGS: u32 = 6;

/// Crashes of a run, at most.
const MOST_CRASHES: u32 = 2;

/// Chooses faults.
#[derive(Debug)]
pub(crate) struct Planner {
    aims: Vec<Aim>,
    mood: Mood,
    protected: Protected,
    hostile_until: Time,
    rng: Rng,
    seen: Vec<u32>,
    /// By fault.
    had: Vec<u32>,
    openings: u32,
    unaimed: u32,
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
            openings: 0,
            unaimed: 0,
        }
    }

    /// The fault of a datagram that leaves at this moment, if any. [`Planner::on_done`] is to follow if it came about.
    pub(crate) fn next(&mut self, now: Time, moment: Moment) -> Option<Fault> {
        let seen = &mut self.seen[moment as usize];
        *seen += 1;
        let aimed = self.aims.iter_mut().position(|aim| {
            let is_due = aim.moment == moment && aim.after == 0;
            aim.after -= u32::from(aim.moment == moment && aim.after > 0);
            is_due
        });
        if let Some(index) = aimed {
            return Some(self.aims.remove(index).fault).filter(|fault| self.may(*fault, moment));
        }
        if now >= self.hostile_until || self.unaimed >= MOST || self.rng.uniform() >= RATE / f64::from(*seen) {
            return None;
        }
        let begin = self.rng.below(Fault::ALL.len() as u64) as usize;
        let (before, behind) = Fault::ALL.split_at(begin);
        let all: Vec<Fault> = behind.iter().chain(before).copied().filter(|fault| self.may(*fault, moment)).collect();
        let fault = all.into_iter().min_by_key(|fault| self.had[*fault as usize])?;
        self.unaimed += 1;
        Some(fault)
    }

    fn may(&self, fault: Fault, moment: Moment) -> bool {
        let had = |fault: Fault| self.had[fault as usize];
        let is_forged =
            matches!(fault, Fault::Corrupt | Fault::Replay | Fault::Refuse | Fault::TooBig | Fault::Elsewhere);
        fault.may(moment, self.mood, self.protected)
            && !(is_forged && moment.is_opening() && self.openings >= MOST_OPENINGS)
            && !(matches!(fault, Fault::Crash | Fault::CrashPeer)
                && had(Fault::Crash) + had(Fault::CrashPeer) >= MOST_CRASHES)
            && !(matches!(fault, Fault::Move | Fault::Crowd) && had(fault) >= 1)
    }

    /// It came about.
    pub(crate) fn on_done(&mut self, fault: Fault, moment: Moment) {
        self.had[fault as usize] += 1;
        self.openings += u32::from(moment.is_opening());
    }
}
