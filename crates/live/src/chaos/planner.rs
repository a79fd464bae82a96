//! Choice of the fault that a datagram suffers. The faults that the plan schedules for a moment
//! come first. A moment is a situation of the protocol, such as "the first request". Otherwise the
//! fault is random. Moments that were rare in this run are preferred; of the faults that are
//! allowed at the moment, the one that has occurred least often in the run is chosen.

use super::faults::{Fault, Moment, Mood, Protected};
use super::plan::{Aim, Plan, stream};
use meshpace_core::{Rng, Time};

/// The n-th datagram at a moment suffers a random fault with this probability divided by n.
const FIRST_PROBABILITY: f64 = 0.5;

/// Maximum number of random faults in a run.
const MAX_RANDOM: u32 = 16;

/// Maximum number of faults at messages of a handshake in a run, after which none of them is
/// forged. An observer that forges a dozen messages can prevent a connection from being opened, as
/// docs/wire.md says. The run would then test nothing else.
const MAX_AT_OPENINGS: u32 = 6;

/// Maximum number of crashes of both ends together in a run.
const MAX_CRASHES: u32 = 2;

/// State of the choice of faults.
#[derive(Debug)]
pub(crate) struct Planner {
    aims: Vec<Aim>,
    mood: Mood,
    protected: Protected,
    /// Time after which there are no random faults.
    hostile_until: Time,
    rng: Rng,
    /// Number of datagrams so far, by moment.
    seen: Vec<u32>,
    /// Number of faults that have occurred, by fault.
    had: Vec<u32>,
    /// Number of faults at messages of a handshake.
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

    /// Chooses the fault for a datagram that is sent at this moment; `None` for no fault.
    /// [`Planner::on_done`] has to be called once the fault has occurred. A scheduled fault that is
    /// not allowed is dropped. Scheduled faults after one that is due do not count the datagram.
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
        // Of the faults that occurred equally often, the first one after a random position is
        // chosen.
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

    /// Records that the fault has occurred.
    pub(crate) fn on_done(&mut self, fault: Fault, moment: Moment) {
        self.had[fault as usize] += 1;
        self.at_openings += u32::from(moment.is_opening());
    }
}
