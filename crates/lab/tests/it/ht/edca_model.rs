//! A stochastic model of saturated categories around one receiver. It has only backoffs, without
//! frames, queues or radios.
//!
//! Source: IEEE Std 802.11-2012, 9.19.2 and table 8-105. Times are in microseconds. Counters
//! decrease where AIFS ends and at each slot boundary after that, even if a station begins to
//! transmit there (9.19.2.3). A station that begins within the CCA time (4 us) of another's frame
//! collides with it. Colliding stations have received nothing when their ACK time-out ends, SIFS +
//! slot + 20 us after their frames; AIFS follows (9.19.2.3 c). Equally strong frames hide each
//! other's preambles, so no station waits for EIFS.

use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_mesh::mac::Category;

const SLOT: u64 = 9;
const SIFS: u64 = 16;
const CCA: u64 = 4;
const ACK_TIMEOUT: u64 = SIFS + SLOT + 20;
const ATTEMPTS: u32 = 7;

/// AIFSN, CWmin and CWmax.
pub fn parameters(category: Category) -> (u64, u64, u64) {
    match category {
        Category::Background => (7, 15, 1023),
        Category::BestEffort => (3, 15, 1023),
        Category::Video => (2, 7, 15),
        Category::Voice => (2, 3, 7),
    }
}

/// A category that always has frames to send.
struct Contender {
    station: u16,
    category: Category,
    /// Air time of all exchanges of a TXOP, and their number.
    burst: (u64, u64),
    window: u64,
    failures: u32,
    /// Time from which it counts down, and number of slots left.
    from: u64,
    left: u64,
    exchanges: u64,
}

impl Contender {
    fn expiry(&self) -> u64 {
        self.from + SLOT * self.left
    }

    fn pause(&mut self, now: u64) {
        if now + CCA >= self.from {
            self.left = self.left.saturating_sub((now + CCA - self.from) / SLOT + 1);
        }
    }

    fn draw(&mut self, rng: &mut Rng) {
        self.left = rng.below(self.window + 1);
    }

    fn fail(&mut self, rng: &mut Rng) {
        let (_, least, most) = parameters(self.category);
        self.failures += 1;
        self.window = (2 * self.window + 1).min(most);
        if self.failures == ATTEMPTS {
            (self.failures, self.window) = (0, least);
        }
        self.draw(rng);
    }
}

/// Result of the model.
pub struct Tally {
    /// Exchanges per second, by contender.
    pub exchanges: Vec<f64>,
    /// Collisions inside stations per second.
    pub inside: f64,
}

/// Simulates the categories of stations. Each has the air time of all exchanges of a TXOP and their
/// number. `frame` is the air time of a frame that collides.
pub fn simulate(contenders: &[(u16, Category, (u64, u64))], frame: u64, seconds: u64) -> Tally {
    let mut rng = Rng::stream(1, Purpose::Test, 0);
    let new = |&(station, category, burst)| {
        let (aifsn, window, _) = parameters(category);
        let from = SIFS + SLOT * aifsn;
        let left = rng.below(window + 1);
        Contender { station, category, burst, window, failures: 0, from, left, exchanges: 0 }
    };
    let mut all: Vec<Contender> = contenders.iter().map(new).collect();
    let (mut now, mut inside) = (0, 0);
    while now < seconds * 1_000_000 {
        let first = all.iter().map(Contender::expiry).min().unwrap();
        // Time and contender of each station that sends.
        let mut senders: Vec<(u64, usize)> = Vec::new();
        let mut stations: Vec<u16> = all.iter().map(|contender| contender.station).collect();
        stations.dedup();
        for station in stations {
            let own = || (0..all.len()).filter(|&place| all[place].station == station);
            let at = own().map(|place| all[place].expiry()).min().unwrap();
            if at != first && at - first >= CCA {
                own().collect::<Vec<_>>().into_iter().for_each(|place| all[place].pause(first));
                continue;
            }
            let mut due: Vec<usize> = own().filter(|&place| all[place].expiry() == at).collect();
            due.sort_by_key(|&place| all[place].category);
            let winner = due.pop().unwrap();
            let waiting: Vec<usize> = own().filter(|place| *place != winner && !due.contains(place)).collect();
            waiting.into_iter().for_each(|place| all[place].pause(at));
            inside += due.len() as u64;
            due.into_iter().for_each(|place| all[place].fail(&mut rng));
            senders.push((at, winner));
        }
        let collided = senders.len() > 1;
        let length = |place: usize| if collided { frame } else { all[place].burst.0 };
        let end = senders.iter().map(|&(at, place)| at + length(place)).max().unwrap();
        for contender in &mut all {
            contender.from = end + SIFS + SLOT * parameters(contender.category).0;
        }
        for (at, winner) in senders {
            if collided {
                all[winner].fail(&mut rng);
                let station = all[winner].station;
                for contender in all.iter_mut().filter(|contender| contender.station == station) {
                    let aifs = SIFS + SLOT * parameters(contender.category).0;
                    contender.from = contender.from.max(at + frame + ACK_TIMEOUT + aifs);
                }
            } else {
                let one = &mut all[winner];
                one.exchanges += one.burst.1;
                (one.failures, one.window) = (0, parameters(one.category).1);
                one.draw(&mut rng);
            }
        }
        now = end;
    }
    let per_second = |count: u64| count as f64 * 1e6 / now as f64;
    Tally { exchanges: all.iter().map(|one| per_second(one.exchanges)).collect(), inside: per_second(inside) }
}
