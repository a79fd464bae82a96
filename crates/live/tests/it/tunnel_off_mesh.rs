//! A tunnel over paths that are no mesh, beside the kernel's TCP over the same link, one after the other.
#![expect(clippy::disallowed_methods, reason = "transfers take their time")]

use meshpace_core::{Duration, Rate};
use meshpace_live::testbed::tun_link::ADDRESSES;
use meshpace_live::testbed::{Impairment, Link, Loss};
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_live::tunnel::{Allowed, Connector, Exit, Forward};
use meshpace_testing::is_slow_run;
use meshpace_transport::{Config, names};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Mbit/s, ms there and back, share that is lost there.
const PATHS: [(u64, u64, f64); 4] = [(5, 40, 0.02), (20, 10, 0.0), (20, 200, 0.005), (1, 4, 0.0)];
/// Share of the better of the kernel's two that may not be fallen short of.
const LEAST: f64 = 0.9;

/// Runs of each, of which the median counts, and how long one lasts; what comes in the first part does not count.
const RUNS: usize = 3;
const START: std::time::Duration = std::time::Duration::from_millis(3000);
const COUNTED: std::time::Duration = std::time::Duration::from_millis(10_000);

/// The ways that are compared.
#[derive(Clone, Copy, Debug)]
enum Way {
    Kernel(&'static str),
    Tunnel,
}

const WAYS: [Way; 3] = [Way::Kernel("cubic"), Way::Kernel("bbr"), Way::Tunnel];

fn link((megabits, rtt, loss): (u64, u64, f64), seed: u64) -> Link {
    let holds = (megabits * 1000 * rtt / 12_000) as usize;
    let there = Impairment {
        delay: Duration::from_micros(500 * rtt),
        loss: Loss::Random(loss),
        rate: Some(Rate::from_mbps(megabits)),
        queue: holds.max(50),
        seed,
        ..Impairment::default()
    };
    let back = Impairment { loss: Loss::Random(0.0), ..there.clone() };
    Link::new(there, back, 1500, false).unwrap()
}

/// Takes connections on the far side and counts what comes.
fn sink(link: &Link) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = link.sides[1].run(|| TcpListener::bind((ADDRESSES[1], 0)).unwrap());
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let counted = Arc::clone(&counted);
            std::thread::spawn(move || {
                let mut block = [0; 65_536];
                while let Ok(length @ 1..) = stream.read(&mut block) {
                    counted.fetch_add(length as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (address, count)
}

fn port(side: usize) -> TpaPort {
    let Some(Config::Train(trains)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    let Some(Config::Tpa(tpa)) = names::lookup("tpa-3") else { panic!("no TPA") };
    let options = Options { trains: Some(trains), bbr: true, takes_tpa: true, ..meshpace_live::tunnel::options(tpa) };
    TpaPort::with_options((ADDRESSES[side], 0), options).unwrap()
}

/// Goodput, Mbit/s.
fn measure(link: &Link, way: Way) -> f64 {
    let (address, count) = sink(link);
    let mut tunnel = None;
    let mut stream = match way {
        Way::Kernel(name) => link.sides[0].run(|| {
            let stream = TcpStream::connect(address).unwrap();
            rustix::net::sockopt::set_tcp_congestion(&stream, name).unwrap();
            stream
        }),
        Way::Tunnel => {
            let far = link.sides[1].run(|| port(1));
            let listener = far.listen(4).unwrap();
            let exit = Exit::new(Allowed::Anywhere);
            // It connects from the thread that serves, which is of that side.
            let service = link.sides[1].run(|| exit.serve(listener, |text| eprintln!("far end: {text}")).unwrap());
            let connector = link.sides[0].run(|| Connector::in_session(port(0), far.local_addr().unwrap()));
            let forward = Forward { local: "127.0.0.1:0".into(), target: address.to_string() };
            // Its threads open what a session needs from where they are.
            let near = || connector.serve(&forward, |text| eprintln!("near end: {text}")).unwrap();
            let local = link.sides[0].run(near);
            tunnel = Some((connector, service));
            link.sides[0].run(|| TcpStream::connect(local).unwrap())
        }
    };
    let other = stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || while stream.write_all(&[7; 16_384]).is_ok() {});
    std::thread::sleep(START);
    let (began, before) = (Instant::now(), count.load(Ordering::Relaxed));
    std::thread::sleep(COUNTED);
    let megabits = (count.load(Ordering::Relaxed) - before) as f64 * 8e-6 / began.elapsed().as_secs_f64();
    let _ = other.shutdown(std::net::Shutdown::Both);
    writing.join().unwrap();
    if let Some((connector, service)) = tunnel {
        connector.end();
        service.end();
    }
    megabits
}

#[test]
fn it_carries_what_the_kernels_best_tcp_does() {
    if !is_slow_run("sends through a tunnel and by the kernel's CUBIC and BBR over four links, for eight minutes") {
        return;
    }
    if let Some(why) = Link::missing() {
        return meshpace_testing::skipped(meshpace_testing::Class::Rights, &why);
    }
    let mut short = Vec::new();
    println!("| link | cubic | bbr | tunnel | of the better |");
    for path @ (megabits, rtt, loss) in PATHS {
        let mut all = [(); 3].map(|()| Vec::new());
        for run in 0..RUNS {
            for (way, results) in WAYS.into_iter().zip(&mut all) {
                results.push(measure(&link(path, 1 + run as u64), way));
            }
        }
        let [cubic, bbr, ours] = all.each_mut().map(|results| {
            results.sort_by(f64::total_cmp);
            results[RUNS / 2]
        });
        let share = ours / cubic.max(bbr);
        if share < LEAST {
            short.push(format!(
                "{megabits} Mbit/s, {rtt} ms: {share:.2} of the better of the kernel's two, not {LEAST}"
            ));
        }
        println!("| {megabits} Mbit/s, {rtt} ms, {loss} | {cubic:.2} | {bbr:.2} | {ours:.2} | {share:.2} |");
    }
    assert!(short.is_empty(), "{short:?}");
}
