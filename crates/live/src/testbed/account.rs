//! Counters of the packets that a link of the test bed has carried. With them a test can tell
//! whether the link causes the stall of a connection.

use meshpace_core::Duration;

/// Counters of one direction since the link was created. Each packet that entered was lost on
/// purpose, or became one or two copies. Each copy was delivered, was refused, or is still waiting.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Number of packets that entered from this side.
    pub entered: u64,
    /// Number of packets lost on purpose: by the impairment, or because the link was down.
    pub lost: u64,
    /// Number of copies that were delivered to the far side.
    pub delivered: u64,
    /// Number of copies that the far side did not accept.
    pub refused: u64,
    /// Number of copies that wait for their delay or for the bit rate.
    pub waiting: u64,
    /// Time since the oldest waiting copy was due. Zero if no copy is late.
    pub late: Duration,
}

/// Lateness of a packet that cannot be explained by a busy machine.
const LATE: Duration = Duration::from_secs(1);

impl Traffic {
    /// Fault of the link in this direction, for the output of a test. `None` if every packet was
    /// treated as the impairment says.
    pub fn fault(&self) -> Option<String> {
        if self.refused > 0 {
            return Some(format!("the far side did not take {} packets", self.refused));
        }
        (self.late >= LATE).then(|| format!("a packet was due {:.1} s ago and still waits", self.late.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intended_losses_and_a_little_lateness_are_no_fault() {
        let late = Duration::from_millis(20);
        let traffic = Traffic { entered: 9, lost: 2, delivered: 6, waiting: 1, late, ..Traffic::default() };
        assert_eq!(traffic.fault(), None);
    }

    #[test]
    fn refused_and_forgotten_packets_are_faults() {
        let refused = Traffic { entered: 3, delivered: 2, refused: 1, ..Traffic::default() };
        assert_eq!(refused.fault().unwrap(), "the far side did not take 1 packets");
        let forgotten = Traffic { entered: 1, waiting: 1, late: Duration::from_secs(2), ..Traffic::default() };
        assert!(forgotten.fault().unwrap().starts_with("a packet was due 2.0 s ago"));
    }
}
