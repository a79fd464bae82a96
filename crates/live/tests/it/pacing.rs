//! Tests of pacing in real time: segments with an interval of 5 ms leave on time, and lateness does
//! not accumulate.
//!
//! Means and medians have to stay within a limit. Tails are only printed, because they mostly
//! depend on the other work of the machine. Between segments the lateness of a plain sleep is
//! measured, and segments are judged relative to it. The difference is caused by our code.
#![expect(clippy::disallowed_methods, reason = "waiting for a transfer to end")]

use crate::common::{ms, noise, quick};
use meshpace_core::{Duration, Rate, Time};
use meshpace_live::clock::{Clock, sharpen_timers};
use meshpace_live::poll::Poller;
use meshpace_live::testbed::{Impairment, Relay};
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_transport::{Config, Endpoint, Role, pump, udp};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock that runs one test at a time, because they would disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const INTERVAL: Duration = Duration::from_millis(5);

/// The quantile `share` of the sorted values.
fn quantile(sorted: &[u64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize] as f64 / 1e6
}

fn describe(what: &str, mut lateness: Vec<u64>) -> f64 {
    lateness.sort_unstable();
    let [median, p99, most] = [0.5, 0.99, 1.0].map(|share| quantile(&lateness, share));
    println!(
        "{what}: late by {median:.3} ms (median), {p99:.3} ms (p99), {most:.3} ms (most), {} times",
        lateness.len()
    );
    median
}

#[test]
fn datagrams_leave_every_five_milliseconds() {
    let _alone = alone();
    sharpen_timers();
    // Segments of 1000 bytes at 1.6 Mbit/s.
    let config = udp::Config { segment: 1000, rate: Some(Rate(1_600_000)) };
    let mut endpoint = Endpoint::new(&Config::Udp(config), Role::Sender);
    let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    from.connect(to.local_addr().unwrap()).unwrap();
    let poller = Poller::new().unwrap();
    let mut ready = Vec::new();
    let start = Clock.now();
    endpoint.open(start);
    endpoint.write_endless(start);
    let mut due = start;
    let mut sent: Vec<(Time, Time)> = Vec::new();
    // Lateness of plain sleeps, and of the datagrams that were due right after one: the machine was
    // equally busy for both.
    let (mut bare, mut after_bare) = (Vec::new(), Vec::new());
    let mut has_slept = false;
    while sent.len() < 1000 {
        let planned = due;
        let now = Clock.now();
        let mut count = 0;
        due = pump(&mut endpoint, now, |_, _| {
            // Several datagrams leave at once only after a wake-up that came a whole interval late.
            let at = Clock.now();
            if count == 0 && has_slept {
                after_bare.push(at.since(planned).0);
            }
            sent.push((planned + INTERVAL * count, at));
            count += 1;
            from.send(&[0; 1000]).unwrap();
        });
        // Half of the interval is spent in a separate sleep.
        let half = Clock.now() + Duration::from_micros(2_500);
        has_slept = half < due;
        if has_slept {
            poller.wait(half, &mut ready).unwrap();
            bare.push(Clock.now().since(half).0);
        }
        poller.wait(due, &mut ready).unwrap();
    }
    // The mean uses the times at which datagrams were due. It shows whether one that is held up
    // delays all later ones. The lateness of datagrams is checked afterwards.
    let (first, last) = (sent[0].0, sent[sent.len() - 1].0);
    let mean = last.since(first).as_secs_f64() * 1e3 / (sent.len() - 1) as f64;
    describe("datagrams", sent.iter().map(|(due, at)| at.since(*due).0).collect());
    let median = describe("datagrams after a bare sleep", after_bare);
    println!("mean interval {mean:.4} ms");
    assert!((mean / 5.0 - 1.0).abs() < 0.01, "{mean} ms");
    let bare = describe("bare sleeps", bare);
    assert!(median <= 0.1 + 2.0 * bare, "{median} ms late, where bare sleeps end {bare} ms late");
}

#[test]
fn tpa_with_adaptive_pacing_keeps_the_interval_it_computes() {
    let _alone = alone();
    // The sender assumes a path of 4 hops. It spaces segments by its estimate of the four-hop
    // delay.
    let path = meshpace_transport::PathInfo { hops: 4, rate: Rate::from_mbps(2), received_power_dbm: None };
    let mut options = Options { path: Some(std::sync::Arc::new(meshpace_live::tpa::path::Fixed(path))), ..quick() };
    let Some(Config::Tpa(transport)) = meshpace_transport::names::lookup("tpa-ap-3") else { panic!("no TPA-AP") };
    let rto = options.transport.rto.clone();
    options.transport = meshpace_transport::tpa::Config { rto, ..transport };
    let listener = TpaPort::with_options("127.0.0.1:0", options.clone()).unwrap().listen(1).unwrap();
    let link = || Impairment { delay: Duration::from_millis(10), ..Impairment::default() };
    let relay = Relay::new(listener.local_addr().unwrap(), link(), link(), true).unwrap();
    let mut client = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(relay.address()).unwrap();
    let sent = noise(1, 300 * 1460);
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut got).unwrap();
        got
    });
    client.write_all(&sent).unwrap();
    while client.unacknowledged() > 0 {
        std::thread::sleep(ms(5));
    }
    let stats = client.stats();
    client.close().unwrap();
    assert!(reader.join().unwrap() == sent);
    // Acknowledgements are short. Segments are shorter than usual if the handshake was answered
    // late. Two segments never leave closer together than the shortest interval in use. The record
    // of the link has the times at which they left.
    let times: Vec<Time> =
        relay.take_record().iter().filter(|p| p.from == 0 && p.bytes.len() > 200).map(|p| p.at).collect();
    let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
    gaps.sort_unstable();
    let asked = stats.interval_sum_s / stats.interval_samples as f64 * 1e3;
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64 / 1e6;
    println!(
        "asked for {asked:.3} ms on average; gaps {:.3} ms (5 %), {:.3} ms (median), {mean:.3} ms (mean)",
        quantile(&gaps, 0.05),
        quantile(&gaps, 0.5)
    );
    assert!(stats.interval_samples >= 300 && asked > 1.0, "it did not pace: {asked} ms");
    // Means are compared, because a busy machine makes some RTTs long, and thereby some intervals.
    assert!(mean > 0.9 * asked, "segments left closer together than asked for");
}
