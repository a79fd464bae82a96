//! Compares our NewReno with the kernel's reno over the same lossy link of 2 Mbit/s. AP10, table 3,
//! found differences of 1.2 to 3.4 % between its user-space NewReno and the kernel's.
//!
//! Both have the same conditions: no SACK, no RACK, no tail loss probes, no F-RTO, an initial
//! window of 2 segments, a smallest RTO of 200 ms, segments of 1448 bytes, the same loss
//! probabilities with the same seeds, and the same receiver. The receiver sends an ACK for every
//! segment in one comparison, and delayed ACKs in the other. Ours counts bytes (RFC 3465), as the
//! kernel does.
//!
//! Pairs run at the same time, each in namespaces of its own. `MESHPACE_PAIRS` sets their number
//! (default 5).

use crate::tcp_common::{World, ip, peer, python_receiver, secs, transport};
use meshpace_core::{Duration, Rate};
use meshpace_live::generator::kernel::Kernel;
use meshpace_live::generator::tcp::Tcp;
use meshpace_live::generator::{Carrier, Load, send};
use meshpace_live::testbed::tun_link::{ADDRESSES, DEVICE};
use meshpace_live::testbed::{Impairment, Loss};
use std::sync::atomic::AtomicBool;

fn world(seed: u64, loss: f64, quick_acks: bool) -> Option<World> {
    let way = |seed| Impairment {
        delay: Duration::from_millis(20),
        loss: Loss::Random(loss),
        rate: Some(Rate::from_mbps(2)),
        seed,
        ..Impairment::default()
    };
    // Acknowledgements are never lost.
    let back = Impairment { loss: Loss::Random(0.0), ..way(seed + 1000) };
    let world = World::new(way(seed), back, 1500, false)?;
    let settings = [("tcp_sack", "0"), ("tcp_recovery", "0"), ("tcp_early_retrans", "0"), ("tcp_frto", "0")];
    for side in &world.link.sides {
        side.run(|| {
            for (name, value) in settings {
                std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
        });
    }
    let to = ADDRESSES[1].to_string();
    world.ours(|| ip(&["route", "replace", &to, "dev", DEVICE, "initcwnd", "2", "rto_min", "200ms"]));
    let from = "10.78.0.0/24";
    let via = ADDRESSES[0].to_string();
    if quick_acks {
        world.link.sides[1].run(|| {
            ip(&["route", "replace", &via, "dev", DEVICE, "quickack", "1"]);
            ip(&["route", "replace", from, "via", &via, "dev", DEVICE, "quickack", "1"]);
        });
    }
    Some(world)
}

/// Goodput over half a minute, in bit/s.
fn measure(mut carrier: impl Carrier) -> f64 {
    let measured = send(&mut carrier, Load::For(secs(30)), &AtomicBool::new(false), |_| {}).unwrap();
    let stats = measured.progress.stats;
    eprintln!(
        "  {:.0} bytes, {} segments, {} again, {} timeouts",
        measured.progress.acknowledged, stats.segments_sent, stats.retransmissions, stats.timeouts
    );
    measured.progress.acknowledged as f64 * 8.0 / measured.duration.as_secs_f64()
}

/// Goodput of our TCP and of the kernel's, each in a world of its own.
fn pair(name: &str, seed: u64, quick_acks: bool) -> Option<[f64; 2]> {
    let ours = world(seed, 0.01, quick_acks)?;
    let kernels = world(seed, 0.01, quick_acks)?;
    let _receivers = [&ours, &kernels].map(|world| world.python(&python_receiver()));
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| ours.ours(|| measure(Tcp::new(World::device(1500), peer(), &transport(name)))));
        let kernels = kernels.ours(|| measure(Kernel::new(peer(), Some("reno".into())).unwrap()));
        Some([ours.join().unwrap(), kernels])
    })
}

/// Quantile of Student's t distribution for 97.5 %, by degrees of freedom from 1.
const STUDENT: [f64; 15] =
    [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131];

/// After the first loss the two send different packets through the same sequence of random numbers,
/// so single pairs differ by a tenth. The mean of several pairs has a confidence interval. The test
/// fails if the whole interval is more than 5 % away.
fn compare(name: &str, quick_acks: bool) {
    let pairs = std::env::var("MESHPACE_PAIRS").map_or(5, |text| text.parse().expect("2 to 16"));
    let measured: Vec<Option<[f64; 2]>> = std::thread::scope(|scope| {
        let start = |seed| scope.spawn(move || pair(name, seed, quick_acks));
        let running: Vec<_> = (1..=pairs).map(start).collect();
        running.into_iter().map(|pair| pair.join().unwrap()).collect()
    });
    let Some(measured) = measured.into_iter().collect::<Option<Vec<_>>>() else { return };
    let ratios: Vec<f64> = measured.iter().map(|[ours, kernels]| ours / kernels).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let ratio = mean(&ratios);
    let variance = ratios.iter().map(|r| (r - ratio).powi(2)).sum::<f64>() / (ratios.len() - 1) as f64;
    let half_width = STUDENT[ratios.len() - 2] * (variance / ratios.len() as f64).sqrt();
    eprintln!("{name}, ours and the kernel's {measured:.0?}, ratio {ratio:.3} +- {half_width:.3}");
    assert!(
        ratio - half_width <= 1.05 && ratio + half_width >= 0.95,
        "clearly more than 5 % apart: {ratio:.3} +- {half_width:.3}"
    );
}

#[test]
fn newreno_is_as_fast_as_the_kernels_reno() {
    compare("newreno+abc", true);
}

#[test]
fn newreno_is_as_fast_as_the_kernels_reno_with_delayed_acks() {
    compare("newreno+abc", false);
}
