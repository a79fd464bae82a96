//! The direction of a stream that goes to the far end: what waits, what may go, and by which carrier.

use super::bucket::Bucket;
use super::carrier::Carrier;
use meshpace_core::Time;
use meshpace_session::budget::{Account, Refusal};
use meshpace_session::ring::SendRing;

/// Bytes of a stream that wait for a carrier.
pub(super) const QUEUE: usize = 128 << 10;
/// How often a stream may change to express while bytes of it are under way in bulk: each time leaves a gap at the far end.
const CHANGES: u8 = 8;

/// One direction.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Bytes that were written and not handed to a carrier.
    queue: SendRing,
    /// A writer has found no room and waits.
    waits: bool,
    /// Offset up to which the peer takes.
    limit: u64,
    /// Nothing more will be written.
    pub(super) closing: bool,
    /// The FIN has been handed to a carrier.
    pub(super) ended: bool,
    /// Where it stands in line.
    pub(super) listed: Option<Carrier>,
    /// What is left of its turn, bytes.
    pub(super) turn: usize,
    /// Positions in the carriers after the last frame of this stream.
    pub(super) handed: [u64; 2],
    budget: Bucket,
    /// The carrier of its last bytes, and how often it has changed to express since nothing of it was under way in bulk.
    last: Carrier,
    changes: u8,
}

impl Outgoing {
    /// Nothing was written, and the peer takes `limit` bytes. What waits is booked in `account`.
    pub(super) fn new(now: Time, limit: u64, turn: usize, account: Account) -> Outgoing {
        Outgoing {
            queue: SendRing::new(QUEUE, account),
            waits: false,
            limit,
            closing: false,
            ended: false,
            listed: None,
            turn,
            handed: [0; 2],
            budget: Bucket::for_express(now),
            last: Carrier::Express,
            changes: 0,
        }
    }

    /// Takes what there is room for; how many bytes.
    ///
    /// # Errors
    ///
    /// There is no memory, and nothing waits whose leaving would make room.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let written = self.queue.write(bytes)?;
        self.waits |= written == 0 && !bytes.is_empty();
        Ok(written)
    }

    /// Whether a writer waits that has room again. It is to be woken: that is told once.
    pub(super) fn take_room(&mut self) -> bool {
        let has_room = self.waits && self.queue.len() <= QUEUE / 2;
        self.waits &= !has_room;
        has_room
    }

    /// Bytes that wait.
    pub(super) fn kept(&self) -> usize {
        self.queue.len()
    }

    /// The offset after everything written.
    pub(super) fn end(&self) -> u64 {
        self.queue.end()
    }

    /// The offset of the next byte that leaves.
    pub(super) fn sent(&self) -> u64 {
        self.queue.end() - self.queue.len() as u64
    }

    /// The peer takes what is before `limit`.
    pub(super) fn on_credit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Bytes that may leave now.
    pub(super) fn sendable(&self) -> usize {
        let credit = usize::try_from(self.limit.saturating_sub(self.sent())).unwrap_or(usize::MAX);
        self.queue.len().min(credit)
    }

    /// Which carrier its bytes take, of which positions up to `acknowledged` have arrived. Who stands in line for bulk stays there.
    pub(super) fn choose(&mut self, now: Time, acknowledged: &[u64; 2]) -> Carrier {
        let left = self.budget.left(now);
        let bulk = Carrier::Bulk as usize;
        let under_way = self.handed[bulk] > acknowledged[bulk];
        if !under_way {
            self.changes = 0;
        }
        let changes = under_way && self.last == Carrier::Bulk;
        let is_small = self.queue.len() as u64 <= left;
        if self.listed == Some(Carrier::Bulk) || !is_small || (changes && self.changes >= CHANGES) {
            return Carrier::Bulk;
        }
        Carrier::Express
    }

    /// Appends the next `length` bytes, which go by `carrier`.
    pub(super) fn cut(&mut self, length: usize, carrier: Carrier, out: &mut Vec<u8>) {
        let from = self.sent();
        if let Some((a, b)) = self.queue.range(from, length) {
            out.extend_from_slice(a);
            out.extend_from_slice(b);
        }
        self.queue.release(from + length as u64);
        // A stream that is silent keeps no memory.
        self.queue.rest();
        self.budget.spend(length as u64);
        if carrier == Carrier::Express && self.last == Carrier::Bulk {
            self.changes = self.changes.saturating_add(1);
        }
        self.last = carrier;
    }

    /// Forgets what will not be sent.
    pub(super) fn forget(&mut self) {
        self.queue.release(self.queue.end());
        self.queue.rest();
    }

    /// Whether the end of it has arrived, `acknowledged` being the positions in the carriers that have.
    pub(super) fn has_arrived(&self, acknowledged: &[u64; 2]) -> bool {
        self.ended && self.handed.iter().zip(acknowledged).all(|(handed, acknowledged)| handed <= acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Duration;

    fn choice(outgoing: &mut Outgoing, seconds: f64) -> Carrier {
        outgoing.choose(Time::ZERO + Duration::from_secs_f64(seconds), &[0; 2])
    }

    #[test]
    fn what_has_had_little_lately_goes_by_express() {
        let mut outgoing = Outgoing::new(Time::ZERO, u64::MAX, 0, Account::default());
        let mut out = Vec::new();
        outgoing.write(&[1; 100]).unwrap();
        assert_eq!(choice(&mut outgoing, 0.0), Carrier::Express);
        outgoing.write(&[1; 8092]).unwrap();
        assert_eq!(choice(&mut outgoing, 0.0), Carrier::Express);
        outgoing.cut(8192, Carrier::Express, &mut out);
        // Nothing is left of its budget, and 16 bytes of it come back each ms.
        outgoing.write(&[1; 160]).unwrap();
        assert_eq!(choice(&mut outgoing, 0.009), Carrier::Bulk);
        assert_eq!(choice(&mut outgoing, 0.011), Carrier::Express);
        // More than a burst is bulk, however long it was silent.
        outgoing.write(&[1; 10_000]).unwrap();
        assert_eq!(choice(&mut outgoing, 100.0), Carrier::Bulk);
    }

    #[test]
    fn tokens_come_back_however_often_one_asks() {
        let mut outgoing = Outgoing::new(Time::ZERO, u64::MAX, 0, Account::default());
        outgoing.write(&[1; 8192]).unwrap();
        outgoing.cut(8192, Carrier::Express, &mut Vec::new());
        outgoing.write(&[1; 1000]).unwrap();
        // Every 10 us: less than a byte each time, 1147 in all.
        let mut chosen = (0..7_000_u32).map(|step| choice(&mut outgoing, f64::from(step) * 1e-5));
        assert!(chosen.any(|carrier| carrier == Carrier::Express));
    }

    #[test]
    fn gaps_at_the_far_end_are_few() {
        let mut outgoing = Outgoing::new(Time::ZERO, u64::MAX, 0, Account::default());
        let bulk = Carrier::Bulk as usize;
        let mut express = 0;
        for round in 0..100 {
            outgoing.write(&[1; 10]).unwrap();
            let carrier = choice(&mut outgoing, f64::from(round));
            outgoing.cut(10, carrier, &mut Vec::new());
            express += u32::from(carrier == Carrier::Express);
            // Bulk of it is under way all the time.
            outgoing.write(&[1; 10]).unwrap();
            outgoing.cut(10, Carrier::Bulk, &mut Vec::new());
            outgoing.handed[bulk] += 10;
        }
        assert_eq!(express, u32::from(CHANGES) + 1);
        let acknowledged = outgoing.handed;
        outgoing.write(&[1; 10]).unwrap();
        assert_eq!(outgoing.choose(Time::ZERO + Duration::from_secs(200), &acknowledged), Carrier::Express);
    }
}
