//! Compares a tunnel over paths that are not meshes with the kernel's TCP over the same link, alone
//! and through WireGuard, one after the other.
#![expect(clippy::disallowed_methods, reason = "transfers take their time")]

use meshpace_core::{Duration, Rate};
use meshpace_live::testbed::tun_link::ADDRESSES;
use meshpace_live::testbed::{Impairment, Link, Loss};
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_live::tunnel::{Allowed, Connector, Exit, Forward};
use meshpace_testing::is_slow_run;
use meshpace_transport::{Config, names};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Paths: rate in Mbit/s, round-trip time in ms, and share of packets lost on the way to the far
/// side.
const PATHS: [(u64, u64, f64); 4] = [(5, 40, 0.02), (20, 10, 0.0), (20, 200, 0.005), (1, 4, 0.0)];
/// Least share of the better of the kernel's two results that the tunnel has to reach.
const LEAST: f64 = 0.9;

/// Number of runs of each, of which the median counts. Length of the first part of a run, which
/// does not count, and of the second, which does.
const RUNS: usize = 3;
const START: std::time::Duration = std::time::Duration::from_millis(3000);
const COUNTED: std::time::Duration = std::time::Duration::from_millis(10_000);

/// The ways of transfer that are compared.
#[derive(Clone, Copy, Debug)]
enum Way {
    Kernel(&'static str),
    /// The kernel's TCP through WireGuard in user space.
    WireGuard(&'static str),
    Tunnel,
}

const WAYS: [Way; 5] =
    [Way::Kernel("cubic"), Way::Kernel("bbr"), Way::WireGuard("cubic"), Way::WireGuard("bbr"), Way::Tunnel];

/// Both ends of a WireGuard tunnel: `wireguard-go` in each of the two network namespaces.
struct WireGuard([Child; 2]);

impl WireGuard {
    const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 97, 0, 1), Ipv4Addr::new(10, 97, 0, 2)];

    fn new(link: &Link) -> WireGuard {
        let name = WireGuard::name;
        let ends = [0, 1].map(|side| {
            let mut command = Command::new("wireguard-go");
            command.args(["--foreground", &name(side)]).stdout(Stdio::null()).stderr(Stdio::null());
            link.sides[side].run(move || command.spawn().unwrap())
        });
        let keys = [0, 1].map(|_| output("wg", &["genkey"], ""));
        let files = tempfile::tempdir().unwrap();
        for side in 0..2 {
            let peer = output("wg", &["pubkey"], &keys[1 - side]);
            let text = format!(
                "[Interface]\nPrivateKey = {}\nListenPort = 51820\n[Peer]\nPublicKey = {peer}\nEndpoint = {}:51820\nAllowedIPs = 10.97.0.0/24\n",
                keys[side],
                ADDRESSES[1 - side]
            );
            let file = files.path().join(name(side));
            std::fs::write(&file, text).unwrap();
            link.sides[side].run(|| {
                let began = Instant::now();
                while !WireGuard::socket(side).exists() {
                    assert!(began.elapsed().as_secs() < 20, "wireguard-go does not start");
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                output("wg", &["setconf", &name(side), file.to_str().unwrap()], "");
                output("ip", &["address", "add", &format!("{}/24", Self::ADDRESSES[side]), "dev", &name(side)], "");
                output("ip", &["link", "set", &name(side), "up", "mtu", "1420"], "");
            });
        }
        WireGuard(ends)
    }

    /// Name of its interface on a side.
    fn name(side: usize) -> String {
        format!("mp{side}-{}", std::process::id())
    }

    /// Socket by which it is configured. It is in the file system, which both namespaces share.
    fn socket(side: usize) -> PathBuf {
        Path::new("/var/run/wireguard").join(WireGuard::name(side) + ".sock")
    }
}

impl Drop for WireGuard {
    fn drop(&mut self) {
        for (side, end) in self.0.iter_mut().enumerate() {
            let _ = end.kill();
            let _ = end.wait();
            // A killed process leaves the socket. The next process would then appear to be ready
            // too early.
            let _ = std::fs::remove_file(WireGuard::socket(side));
        }
    }
}

/// Output of a program that reads `input`.
fn output(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", output.status);
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

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

/// Accepts connections on the far side at `address` and counts the bytes that arrive.
fn sink(link: &Link, address: Ipv4Addr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = link.sides[1].run(|| TcpListener::bind((address, 0)).unwrap());
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

/// Goodput in Mbit/s.
fn measure(link: &Link, way: Way) -> f64 {
    let wireguard = matches!(way, Way::WireGuard(_)).then(|| WireGuard::new(link));
    let (address, count) = sink(link, if wireguard.is_some() { WireGuard::ADDRESSES[1] } else { ADDRESSES[1] });
    let mut tunnel = None;
    let mut stream = match way {
        Way::Kernel(name) | Way::WireGuard(name) => link.sides[0].run(|| {
            let stream = TcpStream::connect(address).unwrap();
            rustix::net::sockopt::set_tcp_congestion(&stream, name).unwrap();
            stream
        }),
        Way::Tunnel => {
            let far = link.sides[1].run(|| port(1));
            let listener = far.listen(4).unwrap();
            let exit = Exit::new(Allowed::Anywhere);
            // The exit opens connections from the thread that serves, which is in the namespace of
            // that side.
            let service = link.sides[1].run(|| exit.serve(listener, |text| eprintln!("far end: {text}")).unwrap());
            let connector = link.sides[0].run(|| Connector::in_session(port(0), far.local_addr().unwrap()));
            let forward = Forward { local: "127.0.0.1:0".into(), target: address.to_string() };
            // Its threads open the sockets of a session in their own namespace.
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
    if !is_slow_run("sends through a tunnel and by the kernel's CUBIC and BBR over four links, for 14 minutes") {
        return;
    }
    if let Some(why) = Link::missing() {
        return meshpace_testing::skipped(meshpace_testing::Class::Rights, &why);
    }
    // Without WireGuard the tunnel is compared with the kernel's TCP alone.
    let has_wireguard =
        meshpace_testing::has("wireguard-go", "wireguard-go") && meshpace_testing::has("wg", "wireguard-tools");
    let ways: Vec<Way> = WAYS.into_iter().filter(|way| has_wireguard || !matches!(way, Way::WireGuard(_))).collect();
    let mut short = Vec::new();
    println!(
        "| link | {} | of the better | of the better through WireGuard |",
        ways.iter().map(|way| format!("{way:?}")).collect::<Vec<_>>().join(" | ")
    );
    for path @ (megabits, rtt, loss) in PATHS {
        let mut all = vec![Vec::new(); ways.len()];
        for run in 0..RUNS {
            for (way, results) in ways.iter().zip(&mut all) {
                results.push(measure(&link(path, 1 + run as u64), *way));
            }
        }
        let medians: Vec<f64> = all
            .iter_mut()
            .map(|results| {
                results.sort_by(f64::total_cmp);
                results[RUNS / 2]
            })
            .collect();
        let [others @ .., ours] = &medians[..] else { unreachable!() };
        let shares: Vec<f64> = others.chunks(2).map(|pair| ours / pair[0].max(pair[1])).collect();
        for (share, around) in shares.iter().zip(["", " through WireGuard"]) {
            if *share < LEAST {
                short.push(format!(
                    "{megabits} Mbit/s, {rtt} ms: {share:.2} of the better of the kernel's two{around}, not {LEAST}"
                ));
            }
        }
        let cells: Vec<String> = medians.iter().chain(&shares).map(|value| format!("{value:.2}")).collect();
        println!("| {megabits} Mbit/s, {rtt} ms, {loss} | {} |", cells.join(" | "));
    }
    assert!(short.is_empty(), "{short:?}");
}
