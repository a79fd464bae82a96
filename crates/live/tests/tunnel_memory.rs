//! Tests a tunnel's exit with little memory against a far end that tries to use all of it. The
//! process of the exit may use 40 MB more than at its start. The kernel kills it if it uses more.
#![expect(clippy::disallowed_methods, reason = "a far end attacks for a while of real time")]

#[path = "it/common/mod.rs"]
mod common;
#[path = "it/confined/mod.rs"]
mod confined;

use common::{ms, noise, quick};
use confined::{ATTACKED, Confined};
use meshpace_live::tpa::{Options, TpaPort, TpaStream};
use meshpace_live::tunnel::{self, Allowed, Connector, Exit, Forward};
use meshpace_testing::{Class, skipped};
use meshpace_transport::train;
use nix::sys::socket::{setsockopt, sockopt};
use std::any::Any;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::thread;

/// Memory that the exit may use in addition to that at its start, bytes.
const SPARE: u64 = 40 << 20;
/// Number of streams or flows that the far end opens from each of its addresses. An exit grants a
/// third of half of 40 MB to the first address, which is 94 streams, and 227 streams to all four.
const OPENED: u32 = 100;
const HOSTS: std::ops::RangeInclusive<u8> = 5..=8;
const GRANTED: usize = 227;

/// Options of both ends, with BBR.
fn options() -> Options {
    Options { trains: Some(train::Config::default()), bbr: true, takes_tpa: true, ..tunnel::options(quick().transport) }
}

/// Number of streams or flows that the far end has, and the value that keeps them open.
type Attack = (usize, Box<dyn Any>);

/// The exit's process.
#[test]
fn the_exit_of_the_other_tests() {
    if std::env::var_os(ATTACKED).is_none() {
        return;
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let listener = TpaPort::with_options("127.0.0.1:0", options()).unwrap().listen(128).unwrap();
    println!("\nlistens at {}", listener.local_addr().unwrap());
    let exit = Exit::new(Allowed::Anywhere);
    let service = exit.serve(listener, |_| {}).unwrap();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    println!("\ncarried {} streams", exit.counters().totals().opened);
    service.end();
}

/// Sessions of a far end whose frames the test writes itself, and which reads nothing. Returns the
/// connections from each address, express first.
fn sessions(server: SocketAddr) -> Vec<[TpaStream; 2]> {
    let session = |host| {
        let port = TpaPort::with_options(format!("127.0.0.{host}:0"), options()).unwrap();
        [0, 1].map(|carrier| {
            let mut stream = port.connect(server).unwrap();
            stream.set_linger(ms(0)).unwrap();
            stream.write_all(&[&[2, carrier][..], &[host; 16]].concat()).unwrap();
            stream
        })
    };
    HOSTS.map(session).collect()
}

/// The frame OPEN, or the frame FLOW with class 0 and its first datagram.
fn open(number: u32, target: SocketAddr, is_flow: bool) -> Vec<u8> {
    let (number, target) = (number.to_be_bytes(), target.to_string());
    let target = [&[target.len() as u8], target.as_bytes()].concat();
    match is_flow {
        false => [&[1][..], &number, &target].concat(),
        true => [&[7][..], &number, &[0; 5], &target, &[8], &number, &[0, 1, 7]].concat(),
    }
}

/// Opens `streams` streams to a target in each session, as far as they are granted. Returns the
/// target's ends of these, and the sessions.
fn connected(server: SocketAddr, streams: u32) -> (Vec<TcpStream>, Vec<[TpaStream; 2]>) {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = target.local_addr().unwrap();
    target.set_nonblocking(true).unwrap();
    let mut sessions = sessions(server);
    let mut connected = Vec::new();
    for [express, _] in &mut sessions {
        for number in 1..=streams {
            express.write_all(&open(number, address, false)).unwrap();
        }
        let (before, mut idle) = (connected.len(), 0);
        while connected.len() < before + streams as usize && idle < 300 {
            match target.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true).unwrap();
                    connected.push(stream);
                    idle = 0;
                }
                Err(_) => {
                    thread::sleep(ms(10));
                    idle += 1;
                }
            }
        }
    }
    (connected, sessions)
}

/// Opens streams without any data. With threads and sockets of their own they would take 60 MB.
fn silent(server: SocketAddr) -> Attack {
    let held = connected(server, 320);
    (held.0.len(), Box::new(held))
}

/// Opens streams whose targets send more than there is credit for.
fn queues(server: SocketAddr) -> Attack {
    let (mut connected, sessions) = connected(server, OPENED);
    // Each target sends 300 kB, as far as they are accepted.
    for _ in 0..60 {
        connected.iter_mut().for_each(|stream| drop(stream.write(&[7; 10_000])));
        thread::sleep(ms(50));
    }
    (connected.len(), Box::new((connected, sessions)))
}

/// Opens flows whose targets answer more than is read.
fn flows(server: SocketAddr) -> Attack {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(ms(3000))).unwrap();
    let address = target.local_addr().unwrap();
    let mut sessions = sessions(server);
    let mut known = Vec::new();
    for [express, _] in &mut sessions {
        for number in 1..=OPENED {
            express.write_all(&open(number, address, true)).unwrap();
            // One after the other, because the buffer of the target's socket is limited.
            let Ok((_, peer)) = target.recv_from(&mut [0; 10]) else { break };
            known.push(peer);
        }
    }
    for _ in 0..10 {
        known.iter().for_each(|peer| drop(target.send_to(&[7; 30_000], peer)));
        thread::sleep(ms(300));
    }
    (known.len(), Box::new((target, sessions)))
}

/// Number of streams that use a whole window at some time.
const WINDOWS: usize = 14;

/// Opens streams that once held a whole window, and now hold a part of it.
fn windows(server: SocketAddr) -> Attack {
    const OPENS_WINDOW: usize = 1100 << 10;
    const REST: usize = 200 << 10;
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    // The kernel buffers little for the target.
    setsockopt(&target, sockopt::RcvBuf, &4096).unwrap();
    let connector = Connector::in_session(TpaPort::with_options("127.0.0.5:0", options()).unwrap(), server);
    let forward = Forward { local: "127.0.0.1:0".into(), target: target.local_addr().unwrap().to_string() };
    let at = connector.serve(&forward, |_| {}).unwrap();
    let kept: Vec<_> = (0..WINDOWS)
        .map_while(|_| {
            let mut stream = TcpStream::connect(at).unwrap();
            let (mut reader, _) = target.accept().unwrap();
            reader.set_read_timeout(Some(ms(60_000))).unwrap();
            let mut writer = stream.try_clone().unwrap();
            let first = thread::spawn(move || writer.write_all(&vec![7; OPENS_WINDOW]));
            reader.read_exact(&mut vec![0; OPENS_WINDOW]).ok()?;
            first.join().unwrap().ok()?;
            // Writes as much as is accepted while nobody reads.
            stream.set_write_timeout(Some(ms(1500))).unwrap();
            let mut filled = 0;
            while let Ok(length @ 1..) = stream.write(&[7; 1 << 16]) {
                filled += length;
            }
            let _ = stream.shutdown(Shutdown::Write);
            reader.read_exact(&mut vec![0; filled.saturating_sub(REST)]).ok()?;
            Some((stream, reader))
        })
        .collect();
    (kept.len(), Box::new((kept, connector)))
}

/// True if another far end is served, that is if its data is sent back.
fn is_served(server: SocketAddr, seed: u64) -> bool {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = target.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = target.accept().unwrap();
        let mut block = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut block) {
            stream.write_all(&block[..length]).unwrap();
        }
    });
    let connector = Connector::in_session(TpaPort::with_options("127.0.0.1:0", options()).unwrap(), server);
    let forward = Forward { local: "127.0.0.1:0".into(), target: address.to_string() };
    let mut stream = TcpStream::connect(connector.serve(&forward, |_| {}).unwrap()).unwrap();
    stream.set_read_timeout(Some(ms(60_000))).unwrap();
    let said = noise(seed, 50_000);
    let (mut writer, own) = (stream.try_clone().unwrap(), said.clone());
    let writing = thread::spawn(move || writer.write_all(&own));
    let mut heard = vec![0; said.len()];
    let is_heard = stream.read_exact(&mut heard).is_ok() && heard == said;
    writing.join().unwrap().is_ok() && is_heard
}

/// Attacks an exit. Returns the number of streams or flows of the far end, and the largest memory
/// use of the exit.
fn attacked(attack: fn(SocketAddr) -> Attack) -> Option<(usize, u64)> {
    // One after the other, because each attack uses a processor.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock();
    let mut exit = match Confined::new("the_exit_of_the_other_tests", SPARE) {
        Ok(exit) => exit,
        Err(why) => {
            skipped(Class::Rights, why);
            return None;
        }
    };
    let server: SocketAddr = exit.told("listens at ").unwrap().parse().unwrap();
    let (opened, held) = attack(server);
    let is_served = is_served(server, 1);
    let peak = exit.peak();
    assert!(exit.is_alive(), "the exit has ended; the far end had opened {opened}");
    eprintln!("{opened} opened, {peak} bytes at most");
    assert!(is_served, "another far end is served");
    drop(held);
    exit.input.take();
    assert!(exit.child.wait().unwrap().success());
    Some((opened, peak))
}

#[test]
fn streams_that_say_nothing_leave_an_exit_its_memory() {
    assert!(attacked(silent).is_none_or(|(opened, _)| opened >= GRANTED));
}

#[test]
fn streams_that_are_given_no_credit_leave_an_exit_its_memory() {
    assert!(attacked(queues).is_none_or(|(opened, _)| opened >= GRANTED));
}

#[test]
fn flows_that_nobody_reads_leave_an_exit_its_memory() {
    assert!(attacked(flows).is_none_or(|(opened, _)| opened >= GRANTED));
}

#[test]
fn streams_that_once_held_a_window_leave_an_exit_its_memory() {
    let result = attacked(windows);
    // The buffers of the source may use an eighth of the memory, about 5.5 MB. The process uses
    // about as much without them. If each stream kept the largest buffer that it ever had, the
    // total would be 24 MB.
    assert!(result.is_none_or(|(kept, peak)| kept >= WINDOWS / 2 && peak < 16 << 20), "streams and bytes: {result:?}");
}
