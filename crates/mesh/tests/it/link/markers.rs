//! Tests of the markers through their interface: which packets they mark, how often, and which they
//! leave alone.

use super::parcel::{Parcel, attempt as ended, data, discipline, id, ms, routing, towards};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng, Time};
use meshpace_mesh::Body;
use meshpace_mesh::link::dcc::DccConfig;
use meshpace_mesh::link::fq_codel::FqCodelConfig;
use meshpace_mesh::link::llap::LlapConfig;
use meshpace_mesh::link::lred::{LredAction, LredConfig};
use meshpace_mesh::link::queue::DropTail;
use meshpace_mesh::link::{Discipline, MarkerConfig, QueueConfig, QueueLoss};
use meshpace_mesh::mac::Rules;

const NEXT: NodeId = NodeId(1);
const DATA_AIR: Duration = Duration::from_micros(4464);

/// Numbers of `n` packets like `parcel` that leave unmarked, leave marked, and are dropped.
fn fate(link: &mut Discipline<Parcel>, now: Time, parcel: Parcel, n: u32) -> (u32, u32, u32) {
    let (mut plain, mut marked, mut dropped) = (0, 0, 0);
    for _ in 0..n {
        link.push(now, towards(NEXT.0, parcel), Some(4), |_, _| panic!("there is room"));
        let left = link.pop(now, |_, why| {
            assert_eq!(why, QueueLoss::Lred);
            dropped += 1;
        });
        match left.map(|p| data(&p).ce) {
            Some(false) => plain += 1,
            Some(true) => marked += 1,
            None => {}
        }
    }
    (plain, marked, dropped)
}

/// True if a binomial count is within five standard deviations of its mean.
fn within(count: u32, n: u32, p: f64) -> bool {
    (f64::from(count) - f64::from(n) * p).abs() < 5.0 * (f64::from(n) * p * (1.0 - p)).sqrt()
}

/// LRED after ten packets with four retries each: an average of 4 (1 - 0.875^10) = 2.95, and
/// therefore a probability of 0.2.
fn lossy_link(action: LredAction) -> Discipline<Parcel> {
    let config = LredConfig { action, ..LredConfig::default() };
    let mut link = discipline(QueueConfig::DropTail, MarkerConfig::Lred(config));
    for _ in 0..10 {
        link.on_sent(ms(0), NEXT, 4, DATA_AIR);
    }
    link
}

#[test]
fn lred_drops_or_marks_one_in_five_at_most_systems_12() {
    let n = 20_000;
    let parcel = Parcel { ect: true, ..Parcel::default() };
    let (plain, marked, dropped) = fate(&mut lossy_link(LredAction::Drop), ms(0), parcel, n);
    assert!(within(dropped, n, 0.2) && marked == 0 && plain + dropped == n, "{dropped} dropped");
    let (plain, marked, dropped) = fate(&mut lossy_link(LredAction::Mark), ms(0), parcel, n);
    assert!(within(marked, n, 0.2) && dropped == 0 && plain + marked == n, "{marked} marked");
    // A transport that ignores marks has to notice a loss instead (RFC 3168, section 5).
    let (_, marked, dropped) = fate(&mut lossy_link(LredAction::Mark), ms(0), Parcel::default(), n);
    assert!(within(dropped, n, 0.2) && marked == 0, "{dropped} dropped");
}

#[test]
fn lred_never_drops_routing_and_takes_the_next_packet_for_a_dropped_one() {
    let mut link = lossy_link(LredAction::Drop);
    for _ in 0..1000 {
        link.push(ms(0), routing(), None, |_, _| panic!("there is room"));
        assert!(link.pop(ms(0), |_, _| panic!("routing is left alone")).is_some());
    }
    for number in 0..40 {
        link.push(ms(0), towards(NEXT.0, Parcel { id: number, ..Parcel::default() }), None, |_, _| {});
    }
    let (mut dropped, mut left) = (Vec::new(), Vec::new());
    while let Some(packet) = link.pop(ms(0), |lost, _| dropped.push(id(&lost))) {
        left.push(id(&packet));
    }
    assert_eq!(left.len() + dropped.len(), 40);
    assert!(!dropped.is_empty() && left.is_sorted());
}

#[test]
fn lred_paces_after_success_of_unicasts_only() {
    let mut link = discipline(QueueConfig::DropTail, MarkerConfig::Lred(LredConfig::default()));
    assert_eq!(link.on_sent(ms(0), NEXT, 1, DATA_AIR), Duration::ZERO);
    // A packet given up after 7 attempts: avg = 0.875 * 0.125 + 7/8 = 0.984.
    link.on_failed(7);
    assert_eq!(link.on_sent(ms(1), NodeId::BROADCAST, 0, DATA_AIR), Duration::ZERO);
    // SIFS of 10 us and an ACK of 192 + 112 us at 1 Mbit/s, in addition to the data frame.
    assert_eq!(link.on_sent(ms(2), NEXT, 0, DATA_AIR), DATA_AIR + Duration::from_micros(314));
}

/// DCC with gamma 0.1 and T 0.3 for packets to [`NEXT`] from 0.125 s on: 20 attempts of 1.875 ms,
/// of which two failed.
fn busy_link(queue: QueueConfig) -> Discipline<Parcel> {
    let config = DccConfig { weight: 1.0, ..DccConfig::default() };
    let mut link = discipline(queue, MarkerConfig::Dcc(config));
    let body = Body::Data(Parcel::default());
    for n in 0..20 {
        let air_time = Duration::from_micros(1875);
        link.on_attempt(ms(1), ended(NEXT, &body, air_time, n >= 2));
    }
    link
}

#[test]
fn dcc_marks_data_with_the_links_probability_systems_11_7() {
    let (n, now) = (20_000, ms(126));
    let parcel = Parcel { ect: true, ..Parcel::default() };
    for queue in [QueueConfig::DropTail, QueueConfig::FqCodel(FqCodelConfig::default())] {
        let (plain, marked, _) = fate(&mut busy_link(queue), now, parcel, n);
        assert!(within(marked, n, 0.118827) && plain + marked == n, "{marked} marked");
    }
    // ACKs are not marked, nor are packets whose transport would not react. Packets of another link
    // are only marked because of that link's losses.
    let mut link = busy_link(QueueConfig::DropTail);
    assert_eq!(fate(&mut link, now, Parcel { ack: true, ..parcel }, 1000), (1000, 0, 0));
    assert_eq!(fate(&mut link, now, Parcel::default(), 1000), (1000, 0, 0));
    for _ in 0..1000 {
        link.push(now, towards(5, parcel), None, |_, _| {});
        assert_eq!(link.pop(now, |_, _| {}).map(|p| data(&p).ce), Some(false));
    }
}

#[test]
fn dcc_forgets_a_link_that_has_gone_quiet() {
    let parcel = Parcel { ect: true, ..Parcel::default() };
    assert_eq!(fate(&mut busy_link(QueueConfig::DropTail), ms(251), parcel, 1000), (1000, 0, 0));
}

#[test]
fn dcc_counts_acks_and_routing_only_as_read() {
    // Losses of ACKs raise the probability for data only if they are counted. Losses of routing
    // messages never do.
    let mut link = discipline(QueueConfig::DropTail, MarkerConfig::Dcc(DccConfig::default()));
    let attempt = |body: &Body<Parcel>, link: &mut Discipline<Parcel>| {
        let air_time = Duration::from_millis(60);
        link.on_attempt(ms(1), ended(NEXT, body, air_time, false));
    };
    assert!(link.wants_attempts());
    attempt(&Body::Data(Parcel { ack: true, ..Parcel::default() }), &mut link);
    attempt(&routing().body, &mut link);
    let parcel = Parcel { ect: true, ..Parcel::default() };
    assert_eq!(fate(&mut link, ms(126), parcel, 1000).1, 0);
}

#[test]
fn equal_seeds_mark_equal_packets() {
    let marks = || {
        let mut link = busy_link(QueueConfig::DropTail);
        let parcel = Parcel { ect: true, ..Parcel::default() };
        (0..200).map(|_| fate(&mut link, ms(126), parcel, 1).1).collect::<Vec<_>>()
    };
    assert_eq!(marks(), marks());
}

#[test]
fn plain_drop_tail_is_the_bare_queue() {
    let mut rng = Rng::stream(3, Purpose::Test, 0);
    let mut link = discipline(QueueConfig::DropTail, MarkerConfig::None);
    let mut bare = DropTail::new(50, &Rules::NS2);
    assert!(!link.wants_hops() && !link.wants_attempts() && !link.wants_overheard());
    for number in 0..5000 {
        let next_hop = rng.below(3) as u16;
        match rng.below(20) {
            0 => {
                let taken = link.take_for(NodeId(next_hop));
                assert_eq!(taken, bare.take_for(NodeId(next_hop)));
            }
            1..=8 => assert_eq!(link.pop(ms(number), |_, _| panic!("nothing is dropped here")), bare.pop()),
            what => {
                let parcel = Parcel { id: number as u32, ..Parcel::default() };
                let packet = if what == 9 { routing() } else { towards(next_hop, parcel) };
                let mut lost = None;
                link.push(ms(number), packet, None, |packet, why| {
                    assert_eq!(why, QueueLoss::Full);
                    lost = Some(packet);
                });
                assert_eq!(lost, bare.push(packet));
            }
        }
        assert_eq!(link.len(), bare.len());
        assert_eq!(link.next_wakeup(), Time::NEVER);
    }
}

#[test]
fn llap_and_a_marker_go_together() {
    let mut link = discipline(QueueConfig::Llap(LlapConfig::default()), MarkerConfig::Lred(LredConfig::default()));
    assert!(link.wants_hops() && link.wants_overheard());
    for number in 0..3 {
        link.push(ms(0), towards(NEXT.0, Parcel { id: number, ..Parcel::default() }), Some(4), |_, _| {});
    }
    assert_eq!(link.pop(ms(0), |_, _| {}).map(|p| id(&p)), Some(0));
    // Three retries: avg 0.375, above the threshold. The backoff is longer by one exchange.
    assert_eq!(link.on_sent(ms(5), NEXT, 3, DATA_AIR), DATA_AIR + Duration::from_micros(314));
    link.on_overheard(ms(15), NEXT, &Parcel::default());
    // Packets released before NHT was known may leave. A new packet follows 4 * 10 ms after the
    // last release.
    while link.pop(ms(16), |_, _| {}).is_some() {}
    assert!(link.is_empty());
    link.push(ms(16), towards(NEXT.0, Parcel { id: 3, ..Parcel::default() }), Some(4), |_, _| {});
    assert_eq!(link.next_wakeup(), ms(40));
    link.on_timer(ms(40));
    assert_eq!(link.next_wakeup(), Time::NEVER);
}
