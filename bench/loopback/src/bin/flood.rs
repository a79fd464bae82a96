//! Measures how long an honest client takes to open a connection while a listener receives a flood
//! of requests, and what the flood costs the listener.
//!
//! `cargo run --release --bin flood -- [ROUNDS] [REQUESTS_PER_SECOND] [OTHER]`. In each round the
//! listener, the flood and the client are separate processes, first with encryption, then without.
//! The flood comes from 250 addresses of the loopback for 12 s. The client opens 40 connections,
//! one after the other, from 1.5 s on. OTHER is this program, built from another version, which
//! runs first in each round.

use meshpace_core::Duration as Span;
use meshpace_live::tpa::cipher::{Suite, processor_has_aes};
use meshpace_live::tpa::handshake::{Kind, Opening, Protection, Terms};
use meshpace_live::tpa::{Options, Security, TpaPort};
use meshpace_transport::tpa::{Config, Flags, Segment};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Environment variable that switches encryption off.
const PLAIN: &str = "PLAIN";

/// Length of the flood, and time for which the listener is measured, s.
const FLOOD: u64 = 12;
const SERVES: u64 = 17;

/// Number of connections opened beside the flood, and time limit for opening them.
const OPENS: usize = 40;
const OPENS_WITHIN: Duration = Duration::from_secs(10);

/// Number of addresses from which the flood comes.
const SOURCES: u64 = 250;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    let number = |index: usize, default: u64| argument(index).map_or(default, |text| text.parse().expect("a number"));
    match argument(0) {
        Some("serve") => serve(argument(1).expect("an address"), number(2, SERVES)),
        Some("connect") => connect(argument(1).expect("an address"), number(2, 40)),
        Some("flood") => flood(argument(1).expect("an address"), number(2, 200_000), number(3, FLOOD)),
        _ => rounds(number(0, 3), number(1, 200_000), argument(2)),
    }
}

fn is_plain() -> bool {
    std::env::var_os(PLAIN).is_some()
}

fn options() -> Options {
    match is_plain() {
        true => Options { security: Security::Plain, ..Options::default() },
        false => Options::default(),
    }
}

/// A request without a cookie, with which every connection begins.
fn request(number: u64) -> Vec<u8> {
    let segment = Segment { block: (number % 4096) as u16, window: 255, flags: Flags::SYN, ..Segment::default() };
    let (protection, suite) = match is_plain() {
        true => (Protection::Plain, Suite::default()),
        false => (Protection::Nn, Suite::asking(processor_has_aes())),
    };
    let terms = Terms::of(&Config::default());
    let opener = number + 1;
    Opening {
        kind: Kind::Request,
        protection,
        suite,
        trains: false,
        terms,
        opener,
        acceptor: 0,
        cookie: [0; 16],
        segment,
    }
    .encode(&[], 0)
}

/// Memory of this process, KiB. statm counts pages, which have 4 KiB on the machines for which this
/// is intended.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4
}

/// Processor time of this process, s.
fn cpu() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the kernel counts");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Listens, answers the first bytes of each connection, and prints the memory and processor time
/// used.
fn serve(address: &str, seconds: u64) {
    let listener = TpaPort::with_options(address, options()).expect("a free port").listen(64).expect("listens");
    let before = memory();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let _ = stream.set_linger(Duration::from_millis(1));
                let mut bytes = [0; 16];
                let length = stream.read(&mut bytes).unwrap_or(0);
                let _ = stream.write_all(&bytes[..length]);
                let _ = stream.read(&mut bytes);
            });
        }
    });
    let mut most = 0;
    for _ in 0..seconds * 10 {
        sleep(Duration::from_millis(100));
        most = most.max(memory());
    }
    println!("  listener: {before} KiB before, at most {most} KiB, CPU {:.1} s of {seconds}", cpu());
}

/// Opens connections one after the other, and prints how long each took.
fn connect(address: &str, count: u64) {
    let (mut times, mut failed) = (Vec::new(), 0);
    for _ in 0..count {
        let start = Instant::now();
        let port = TpaPort::with_options("127.0.0.1:0", options()).expect("a free port");
        match port.connect_timeout(address, Span::from_secs(15)) {
            Ok(mut stream) => {
                times.push(start.elapsed().as_secs_f64());
                let _ = stream.set_linger(Duration::from_millis(100));
                let _ = stream.write_all(b"hello");
                stream.abort();
            }
            Err(error) => {
                failed += 1;
                println!("  {error} after {:.1} s", start.elapsed().as_secs_f64());
            }
        }
        sleep(Duration::from_millis(50));
    }
    times.sort_by(f64::total_cmp);
    let quantile =
        |part: f64| times.get(((times.len() as f64 - 1.0) * part) as usize).copied().unwrap_or(f64::NAN) * 1e3;
    let [least, median, nine, most] = [0.0, 0.5, 0.9, 1.0].map(quantile);
    println!(
        "  client: {} opened, {failed} failed; ms: least {least:.1} median {median:.1} p90 {nine:.1} most {most:.1}",
        times.len()
    );
}

/// Sends requests. The answers are not read.
fn flood(address: &str, rate: u64, seconds: u64) {
    let bound = |i: u64| {
        let socket = UdpSocket::bind(format!("127.0.{}.{}:0", 1 + i / 200, 1 + i % 200)).expect("loopback");
        socket.connect(address).expect("loopback");
        socket.set_nonblocking(true).expect("possible");
        socket
    };
    let sockets: Vec<UdpSocket> = (0..SOURCES).map(bound).collect();
    let start = Instant::now();
    let (mut sent, mut refused) = (0, 0);
    while start.elapsed().as_secs() < seconds {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        for number in sent + refused..due.min(sent + refused + 2000) {
            match sockets[(number % SOURCES) as usize].send(&request(number)) {
                Ok(_) => sent += 1,
                Err(_) => refused += 1,
            }
        }
        sleep(Duration::from_micros(200));
    }
    println!("  flood: {sent} sent, {refused} refused, {:.0} per s", sent as f64 / start.elapsed().as_secs_f64());
}

fn rounds(rounds: u64, rate: u64, other: Option<&str>) {
    let own = std::env::current_exe().expect("it has a name");
    let own = own.to_str().expect("of text");
    for round in 1..=rounds {
        let turns = other.map(|other| ("other", other, false)).into_iter();
        for (name, program, plain) in turns.chain([("encrypted", own, false), ("plain", own, true)]) {
            println!("round {round}, {name}");
            turn(program, plain, rate);
        }
    }
}

/// Runs one listener under one flood.
fn turn(program: &str, plain: bool, rate: u64) {
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").to_string();
    let start = |arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).env_remove(PLAIN);
        if plain {
            command.env(PLAIN, "1");
        }
        command.spawn().expect("the program runs")
    };
    let end = |mut child: Child| child.wait().expect("a child of ours");
    let end_within = |mut child: Child, limit: Duration| {
        let late = Instant::now() + limit;
        while child.try_wait().expect("a child of ours").is_none() {
            if Instant::now() > late {
                println!("  client: not done within {} s", limit.as_secs());
                child.kill().expect("a child of ours");
            }
            sleep(Duration::from_millis(10));
        }
    };
    let listener = start(&["serve", &free, &SERVES.to_string()]);
    sleep(Duration::from_secs(1));
    end(start(&["connect", &free, "10"]));
    let flood = start(&["flood", &free, &rate.to_string(), &FLOOD.to_string()]);
    sleep(Duration::from_millis(1500));
    end_within(start(&["connect", &free, &OPENS.to_string()]), OPENS_WITHIN);
    end(flood);
    end(listener);
}
