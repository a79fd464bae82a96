//! Round-trip times of one TCP flow from node 0. They are measured from its packets, not by its
//! endpoint.

use meshpace_core::{NodeId, Time};
use meshpace_sim::SimPacket;
use meshpace_transport::Segment;
use meshpace_transport::tcp::Flags;
use std::collections::BTreeMap;

/// Sender of the data.
const SENDER: NodeId = NodeId(0);

/// Round-trip samples: for each ACK of new data, the time since the last segment that it
/// acknowledges was sent. Segments that were sent more than once give no sample. The samples differ
/// from the sender's own, which depend on its time stamps and its clock.
pub struct RoundTrips {
    /// Samples before this time are not counted.
    begin: Time,
    /// Time at which each segment was sent, by the offset of the first byte after it. `None` if it
    /// was sent more than once.
    sent: BTreeMap<u64, Option<Time>>,
    /// Number of bytes acknowledged so far.
    acknowledged: u64,
    /// Samples, milliseconds.
    samples: Vec<f64>,
}

impl RoundTrips {
    /// Counts the round trips that end at `begin` or later.
    pub fn from(begin: Time) -> RoundTrips {
        RoundTrips { begin, sent: BTreeMap::new(), acknowledged: 0, samples: Vec::new() }
    }

    /// Handles that the transport of `node` passes `packet` to the network.
    pub fn on_inject(&mut self, now: Time, node: NodeId, packet: &SimPacket) {
        if let (SENDER, Segment::Tcp(segment)) = (node, &packet.segment)
            && segment.payload > 0
        {
            let end = segment.seq + u64::from(segment.payload);
            self.sent.entry(end).and_modify(|sent| *sent = None).or_insert(Some(now));
        }
    }

    /// Handles that `packet` has reached the transport of `node`.
    pub fn on_deliver(&mut self, now: Time, node: NodeId, packet: &SimPacket) {
        let (SENDER, Segment::Tcp(segment)) = (node, &packet.segment) else { return };
        if !segment.flags.has(Flags::ACK) || segment.ack <= self.acknowledged {
            return;
        }
        self.acknowledged = segment.ack;
        if let Some(Some(sent)) = self.sent.get(&segment.ack)
            && now >= self.begin
        {
            self.samples.push(1e3 * now.since(*sent).as_secs_f64());
        }
    }

    /// Mean of the samples, ms. NaN if there are none.
    pub fn mean(&self) -> f64 {
        self.samples.iter().sum::<f64>() / self.samples.len() as f64
    }

    /// Smallest time that 95 % of the samples do not exceed, ms. NaN if there are none.
    pub fn p95(&self) -> f64 {
        let mut samples = self.samples.clone();
        samples.sort_by(f64::total_cmp);
        let place = (0.95 * samples.len() as f64).ceil() as usize;
        place.checked_sub(1).map_or(f64::NAN, |place| samples[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::{Duration, FlowId};
    use meshpace_transport::tcp;

    fn packet(segment: tcp::Segment) -> SimPacket {
        let (source, destination) = (SENDER, NodeId(1));
        let segment = Segment::Tcp(segment);
        SimPacket {
            id: 0,
            source,
            destination,
            flow: FlowId(0),
            connection: 0,
            ttl: 64,
            hops: 0,
            ce: false,
            dscp: 0,
            segment,
        }
    }

    #[test]
    fn what_was_sent_twice_is_no_sample() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let data = |seq| packet(tcp::Segment { seq, payload: 100, ..tcp::Segment::default() });
        let ack = |ack| packet(tcp::Segment { ack, flags: Flags::ACK, ..tcp::Segment::default() });
        let mut seen = RoundTrips::from(at(50));
        for (ms, seq) in [(0, 0), (10, 100), (20, 200), (30, 300), (80, 100)] {
            seen.on_inject(at(ms), SENDER, &data(seq));
        }
        // Too early; a repetition; a duplicate; two at once, of which the last counts: 90 ms.
        for (ms, upto) in [(40, 100), (90, 200), (100, 200), (120, 400)] {
            seen.on_deliver(at(ms), SENDER, &ack(upto));
        }
        assert_eq!((seen.mean(), seen.p95()), (90.0, 90.0));
        seen.on_inject(at(130), SENDER, &data(400));
        seen.on_deliver(at(140), SENDER, &ack(500));
        assert_eq!((seen.mean(), seen.p95()), (50.0, 90.0));
    }
}
