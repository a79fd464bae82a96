//! Duplicate set: flooded messages that have been handled (RFC 3626, section 3.4).

use alloc::collections::BTreeMap;
use meshpace_core::{Duration, NodeId, Time};

/// DUP_HOLD_TIME: time for which a message is remembered after its last copy.
const DUP_HOLD_TIME: Duration = Duration::from_secs(30);

/// Memory of flooded messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Duplicates {
    /// Time until which each message is remembered, by originator and sequence number.
    messages: BTreeMap<(NodeId, u16), Time>,
}

impl Duplicates {
    /// True if this is the first copy of the message. Notes the message in any case.
    pub fn first_time(&mut self, now: Time, originator: NodeId, sequence: u16) -> bool {
        let before = self.messages.insert((originator, sequence), now + DUP_HOLD_TIME);
        before.is_none_or(|until| until <= now)
    }

    /// Removes expired entries.
    pub fn sweep(&mut self, now: Time) {
        self.messages.retain(|_, until| *until > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_remembered_for_thirty_seconds_after_its_last_copy() {
        const S: u64 = 1_000_000_000;
        let mut seen = Duplicates::default();
        assert!(seen.first_time(Time(0), NodeId(1), 5));
        assert!(seen.first_time(Time(0), NodeId(2), 5), "numbers are per originator");
        assert!(!seen.first_time(Time(20 * S), NodeId(1), 5));
        assert!(!seen.first_time(Time(50 * S - 1), NodeId(1), 5));
        seen.sweep(Time(60 * S));
        assert!(seen.messages.len() == 1, "the other one is forgotten");
        assert!(seen.first_time(Time(80 * S - 1), NodeId(1), 5));
    }
}
