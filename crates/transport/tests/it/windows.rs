//! Worked examples of the window rules, each named after its source, checked to half a unit of the
//! last digit given.

use meshpace_core::{Duration, Rate, Time};
use meshpace_transport::tcp::window::{Config, Cubic, CubicConfig, HopRule, LIMIT, few_increase};
use meshpace_transport::tcp::{self, Flags, Segment as Tcp};
use meshpace_transport::{Arrival, Config as Transport, Endpoint, Machine, PathInfo, Role, Segment, names};

fn shows(what: &str, actual: f64, shown: &str) {
    let decimals = shown.split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
    let half_unit = 0.5 * 10f64.powi(-decimals);
    let expected: f64 = shown.parse().unwrap();
    assert!((actual - expected).abs() <= half_unit * (1.0 + 1e-9), "{what}: {actual}, expected {shown}");
}

#[test]
fn few_adds_a_hundredth_per_round_trip() {
    // DCC, section 5: cwnd += 0.01 / cwnd per ACK. By hand: 2 + 0.01/2 = 2.005; 2.005 + 0.01/2.005 = 2.009988; ...
    let mut window = Config::Few { increment: 0.01 }.build(64, 64);
    window.restart(4);
    window.on_fast_retransmit(0);
    assert_eq!((window.cwnd(), window.ssthresh()), (2.0, 2));
    for shown in ["2.005000", "2.009988", "2.014963", "2.019926"] {
        window.on_ack(1);
        shows("FeW", window.cwnd(), shown);
    }
    // Below the threshold the window grows like NewReno's slow start.
    shows("slow start", few_increase(3.0, 8, 0.01), "4.000000");
}

#[test]
fn limits_by_hops() {
    // Chen et al. by round-trip hops, and h/4, for systems of 1 to 15 hops. AP05: 1 for a 4-hop
    // chain, below 4 up to 10 hops.
    let table = [2, 2, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5];
    let quarter = [1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3];
    for h in 1..=15u8 {
        assert_eq!(HopRule::Table.segments(h), table[usize::from(h) - 1], "{h} hops");
        assert_eq!(HopRule::Quarter.segments(h), quarter[usize::from(h) - 1], "{h} hops");
    }
    assert_eq!(HopRule::Table.segments(255), 5);
    assert_eq!((HopRule::Table.segments(0), HopRule::Quarter.segments(0)), (2, 1));
}

/// Number of data segments in flight from a sender with an endless supply, after `acks` ACKs of
/// everything.
fn outstanding(end: &mut Endpoint, hops: u8, acks: u64) -> u64 {
    let now = |n: u64| Time::ZERO + Duration::from_millis(10) * n;
    end.on_path(PathInfo { hops, rate: Rate::from_mbps(2), received_power_dbm: None });
    let answer = |flags, ack| {
        Segment::Tcp(Tcp { seq: 0, ack, window: 64 * 1460, ts_val: 0, ts_ecr: 0, payload: 0, flags, ..Tcp::default() })
    };
    end.open(now(0));
    end.write_endless(now(0));
    assert!(end.poll(now(0)).segment().is_some());
    end.on_segment(now(1), &answer(Flags::SYN.with(Flags::ACK), 0), Arrival::default());
    let mut sent = 0;
    let mut last = 0;
    for n in 2..2 + acks {
        last = 0;
        while end.poll(now(n)).segment().is_some() {
            sent += 1;
            last += 1;
        }
        end.on_segment(now(n), &answer(Flags::ACK, sent * 1460), Arrival::default());
    }
    last
}

#[test]
fn the_limit_follows_the_path() {
    let cwl = names::lookup("cwl").unwrap();
    for (hops, limit) in [(1, 2), (4, 1), (7, 3), (12, 4), (20, 5)] {
        let mut end = Endpoint::new(&cwl, Role::Sender);
        assert_eq!(outstanding(&mut end, hops, 20), limit, "{hops} hops");
    }
    // A longer route increases the window, a shorter one decreases it.
    let mut window = Config::HopLimit(HopRule::Table).build(64, 64);
    window.restart(20);
    for (hops, usable) in [(4, 1), (14, 5), (8, 1 + 2)] {
        window.on_hops(hops);
        assert_eq!(window.usable(0), usable);
    }
    // A smaller window of the receiver takes precedence.
    let mut window = Config::HopLimit(HopRule::Table).build(2, 2);
    window.restart(20);
    window.on_hops(14);
    assert_eq!(window.usable(0), 2);
}

#[test]
fn clamps_of_the_tpa_paper() {
    for (name, limit) in [("tcp-2", 2), ("tcp-3", 3)] {
        let Some(Transport::Tcp(config)) = names::lookup(name) else { panic!() };
        assert_eq!(config.window, Config::Clamp { segments: limit });
        assert_eq!(config.ack, tcp::ack::Config::Delayed(tcp::ack::Delayed::default()));
        let mut end = Endpoint::new(&Transport::Tcp(config), Role::Sender);
        assert_eq!(outstanding(&mut end, 7, 30), u64::from(limit));
    }
}

#[test]
fn a_constant_window_stays() {
    let mut window = Config::Constant { segments: 6 }.build(64, 64);
    for _ in 0..3 {
        assert_eq!((window.usable(0), window.usable(3)), (6, 6));
        window.restart(1);
        window.on_ack(1);
        window.on_fast_retransmit(0);
        window.deflate(2);
        window.on_timeout(0);
    }
    assert_eq!(Config::Constant { segments: 6 }.build(3, 3).usable(0), 3);
}

#[test]
fn cubic_curve_rfc_9438_section_4_2() {
    // C = 0.4, beta = 0.7, W_max = 100, so the window is 70 after the loss. K = cbrt(30/0.4). The
    // curve starts at 70, is flat at 100 after K, and is as far above 100 after 2 K as it was below
    // at 0.
    let k = Cubic::time_to_maximum(0.4, 100.0, 70.0);
    shows("K", k, "4.217163");
    for (t, shown) in [(0.0, "70.0000"), (1.0, "86.6808"), (k, "100.0000"), (2.0 * k, "130.0000")] {
        shows("W_cubic", Cubic::curve(0.4, 100.0, k, t), shown);
    }
}

#[test]
fn cubic_grows_and_backs_off_rfc_9438_sections_4_3_to_4_7() {
    let mut cubic = Cubic::new(&CubicConfig::default());
    shows("4.6: beta of the window", cubic.on_loss(100.0), "70.00");
    // At t = 0 the curve is at 70 and W_est at 70 + 0.529412/70: Reno-friendly.
    let cwnd = cubic.next_cwnd(70.0, 70, 1, Time(5_000_000_000), 0.1);
    shows("4.3: Reno-friendly", cwnd, "70.007563");
    // One second later: target W_cubic(1.1) = 87.8846, cwnd += (target - cwnd) / cwnd. W_est has
    // grown by the same amount again.
    let cwnd = cubic.next_cwnd(cwnd, 70, 1, Time(6_000_000_000), 0.1);
    shows("4.4: concave", cwnd, "70.262921");
    // Far beyond K the target is at most 1.5 cwnd.
    let grown = cubic.next_cwnd(80.0, 70, 1, Time(30_000_000_000), 0.1);
    shows("4.2: target at most 1.5 cwnd", grown, "80.500000");
    // 4.7: a loss at 80, below W_max = 100, gives W_max = 80 * 1.7/2 = 68. The curve from 56 has K
    // = cbrt(12/0.4).
    shows("4.6", cubic.on_loss(80.0), "56.00");
    let cwnd = cubic.next_cwnd(56.0, 56, 1, Time(40_000_000_000), 0.0);
    let cwnd = cubic.next_cwnd(cwnd, 56, 1, Time(43_107_233_000), 0.0);
    // At K = 3.107233 s the target is 68.
    shows("4.7: fast convergence", cwnd, "56.22353");
    // Slow start is that of RFC 5681.
    shows("slow start", cubic.next_cwnd(4.0, 70, 1, Time(50_000_000_000), 0.1), "5");
    // 4.8: after a timeout the curve is flat where congestion avoidance begins: at t = 0 the window
    // only grows like Reno's.
    cubic.on_loss(60.0);
    cubic.start_flat();
    let cwnd = cubic.next_cwnd(42.0, 42, 1, Time(60_000_000_000), 0.0);
    shows("4.8", cwnd, "42.012605");
}

#[test]
fn cubic_keeps_to_the_receiver_window_and_to_two_segments() {
    let mut window = Config::Cubic(CubicConfig::default()).build(10, 10);
    window.restart(2);
    for second in 0..100 {
        window.on_clock(Time(second * 1_000_000_000), 0.1);
        window.on_ack(1);
    }
    assert_eq!(window.cwnd(), 10.0);
    for _ in 0..20 {
        window.on_fast_retransmit(0);
    }
    assert_eq!((window.cwnd(), window.ssthresh()), (2.0, 2));
    window.on_timeout(0);
    assert_eq!((window.cwnd(), window.ssthresh()), (1.0, 2));
}

#[test]
fn parameters_outside_their_meaning_are_refused() {
    let refused = |window: Config| tcp::Config { window, ..tcp::Config::default() }.check().unwrap_err().name;
    assert_eq!(refused(Config::Constant { segments: 0 }), "window.segments");
    assert_eq!(refused(Config::Clamp { segments: 0 }), "window.segments");
    for increment in [0.0, 1.1, -1.0, f64::NAN] {
        assert_eq!(refused(Config::Few { increment }), "window.increment");
    }
    assert_eq!(refused(Config::Cubic(CubicConfig { beta: 1.0, ..CubicConfig::default() })), "window.beta");
    assert_eq!(refused(Config::Cubic(CubicConfig { c: f64::INFINITY, ..CubicConfig::default() })), "window.c");
}

#[test]
fn byte_counting_rfc_3465_sections_2_1_to_2_3() {
    let mut window = Config::NewReno.build(64, 64).counting_bytes(LIMIT);
    let mut after = |step: &dyn Fn(&mut meshpace_transport::tcp::window::Window)| {
        step(&mut window);
        window.cwnd()
    };
    // Slow start: the window grows by the segments that an ACK covers, at most L = 2.
    after(&|w| w.restart(4));
    assert_eq!(after(&|w| w.on_ack(1)), 5.0);
    assert_eq!(after(&|w| w.on_ack(2)), 7.0);
    assert_eq!(after(&|w| w.on_ack(5)), 9.0);
    assert_eq!(after(&|w| w.on_ack(1)), 10.0);
    // Congestion avoidance from 5: one more for 5 segments, however many ACKs they take. The
    // remainder is kept.
    assert_eq!(after(&|w| w.on_fast_retransmit(0)), 5.0);
    assert_eq!(after(&|w| w.on_recovered(9)), 5.0, "sent before the loss");
    assert_eq!(after(&|w| (0..2).for_each(|_| w.on_ack(2))), 5.0);
    assert_eq!(after(&|w| w.on_ack(2)), 6.0);
    assert_eq!(after(&|w| w.on_ack(4)), 6.0);
    assert_eq!(after(&|w| w.on_ack(1)), 7.0);
    // After a timeout L = 1 until slow start ends, at the threshold 3.
    assert_eq!(after(&|w| w.on_timeout(0)), 1.0);
    assert_eq!(after(&|w| w.on_ack(8)), 2.0);
    assert_eq!(after(&|w| w.on_ack(2)), 3.0);
    assert_eq!(after(&|w| w.on_ack(3)), 4.0);
}

#[test]
fn byte_counting_makes_up_for_delayed_acks() {
    // 60 segments from a window of 10 in congestion avoidance, acknowledged one by one or two by
    // two.
    let grown = |counts: bool, per_ack: u64| {
        let window = Config::NewReno.build(64, 64);
        let mut window = if counts { window.counting_bytes(LIMIT) } else { window };
        window.restart(20);
        window.on_fast_retransmit(0);
        (0..60 / per_ack).for_each(|_| window.on_ack(per_ack));
        window.cwnd()
    };
    // 10 + 11 + 12 + 13 = 46 segments make four steps, and 14 more a fifth.
    assert_eq!((grown(true, 1), grown(true, 2)), (15.0, 15.0));
    assert!(grown(false, 1) > 14.5 && grown(false, 2) < 13.0, "without: half as fast");
}

#[test]
fn byte_counting_leaves_other_rules_their_own() {
    let mut few = Config::Few { increment: 0.01 }.build(64, 64).counting_bytes(LIMIT);
    few.restart(4);
    few.on_fast_retransmit(0);
    few.on_ack(2);
    shows("FeW", few.cwnd(), "2.010000");
    let mut constant = Config::Constant { segments: 3 }.build(64, 64).counting_bytes(LIMIT);
    constant.on_ack(2);
    assert_eq!(constant.cwnd(), 3.0);
    let cubic = |counts: bool| {
        let window = Config::Cubic(CubicConfig::default()).build(64, 64);
        let mut window = if counts { window.counting_bytes(LIMIT) } else { window };
        window.restart(10);
        window.on_fast_retransmit(0);
        window.on_clock(Time::ZERO + Duration::from_secs(1), 0.1);
        window.on_ack(2);
        window.cwnd()
    };
    assert_eq!(cubic(true), cubic(false), "counts by itself");
}
