//! Tests a listener with little memory against peers that try to use all of it. Its process is in a
//! control group that allows 64 MB more than at the start. The kernel kills the process if it uses
//! more.
#![expect(clippy::disallowed_methods, reason = "peers attack for a while of real time")]

#[path = "it/common/mod.rs"]
mod common;
#[path = "it/confined/mod.rs"]
mod confined;
#[path = "it/puppet/mod.rs"]
mod puppet;

use common::{ms, noise};
use confined::{ATTACKED, Confined};
use meshpace_core::Duration;
use meshpace_live::tpa::handshake::Kind;
use meshpace_live::tpa::{Options, TpaPort, TpaStream};
use meshpace_testing::{Class, skipped};
use meshpace_transport::train;
use puppet::{Puppet, plain};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Memory that the listener may use in addition to that at its start, bytes.
const SPARE: u64 = 64 << 20;
/// Number of addresses of hostile peers, and number of connections from each.
const SOURCES: u8 = 4;
const CONNECTIONS: usize = 250;
/// Address of honest peers.
const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn options() -> Options {
    Options {
        trains: Some(train::Config::default()),
        bbr: true,
        keep_alive: Some(Duration::from_secs(30)),
        connect_timeout: Duration::from_secs(60),
        silence_timeout: Duration::from_secs(120),
        ..plain()
    }
}

/// The listener's process. It sends the data of honest peers back to them, and reads nothing from
/// others.
#[test]
fn the_listener_of_the_other_test() {
    if std::env::var_os(ATTACKED).is_none() {
        return;
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let listener = TpaPort::with_options("127.0.0.1:0", options()).unwrap().listen(128).unwrap();
    println!("\nlistens at {}", listener.local_addr().unwrap());
    let mut others = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            listener.close();
        });
        while let Ok((stream, peer)) = listener.accept() {
            if peer.ip() == HONEST {
                scope.spawn(move || answer(stream));
            } else {
                others.push(stream);
            }
        }
    });
    let ended = others.iter().filter(|stream| stream.is_open().is_err()).count();
    println!("\naccepted {} hostile connections, of which {ended} were ended", others.len());
    others.iter().for_each(TpaStream::abort);
}

fn answer(mut stream: TpaStream) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

/// A hostile peer that opens a BBR connection.
fn open(source: u8, server: SocketAddr) -> Option<Puppet> {
    let mut puppet = Puppet::from(&format!("127.0.0.{source}:0"), server);
    (puppet.opening.trains, puppet.opening.segment.congested) = (true, true);
    puppet.socket.set_read_timeout(Some(ms(300))).unwrap();
    for _ in 0..200 {
        puppet.request();
        match puppet.answer() {
            Some(answer) if answer.kind == Kind::Challenge => {
                (puppet.opening.cookie, puppet.opening.terms) = (answer.cookie, answer.terms);
            }
            Some(answer) if answer.kind == Kind::Acceptance => {
                puppet.other_tag = answer.acceptor;
                return begin(&puppet).then_some(puppet);
            }
            // There are too many handshakes at this time. It tries again later.
            _ => thread::sleep(ms(50)),
        }
    }
    None
}

/// Sends a byte until it is acknowledged. Returns true if the connection is open then.
fn begin(puppet: &Puppet) -> bool {
    (0..200).any(|_| {
        let mut buffer = [0; 2048];
        say(puppet, 0, 1, b"x");
        // A repeated acceptance has no tag.
        puppet.socket.recv(&mut buffer).is_ok() && buffer[..8] != [0; 8]
    })
}

/// Sends data of BBR.
fn say(puppet: &Puppet, number: u64, offset: u64, payload: &[u8]) {
    let six = |value: u64| value.to_be_bytes()[2..].to_vec();
    let datagram = [&puppet.other_tag.to_be_bytes()[..], &[0], &six(number), &six(offset), payload].concat();
    let _ = puppet.socket.send(&datagram);
    if number % 16 == 15 {
        thread::sleep(ms(1));
    }
}

/// Opens connections. In each it sends one byte of every page of 4 MiB, or of the largest window
/// that a peer may be granted, and then 64 KiB without their first byte, so that nothing can be
/// read.
fn attack(source: u8, server: SocketAddr) -> usize {
    let mut opened = Vec::new();
    for connection in 0..CONNECTIONS {
        let Some(puppet) = open(source, server) else { break };
        let pages = if connection < 20 { 1024 } else { 64 };
        (1..pages).for_each(|page| say(&puppet, page, 4096 * page * (1024 / pages) + 1, b"x"));
        (0..46).for_each(|piece| say(&puppet, pages + piece, 1 + 1400 * piece, &[7; 1400]));
        opened.push(puppet);
    }
    opened.len()
}

/// An honest peer sends data and receives the same data.
fn exchange(server: SocketAddr, seed: u64) {
    let port = TpaPort::with_options((HONEST, 0), options()).unwrap();
    let mut stream = port.connect(server).unwrap();
    let bytes = noise(seed, 200_000);
    stream.write_all(&bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert!(heard == bytes, "{} bytes of {}", heard.len(), bytes.len());
}

#[test]
fn a_thousand_hostile_connections_take_no_more_than_64_megabytes_and_honest_ones_are_served() {
    let mut listener = match Confined::new("the_listener_of_the_other_test", SPARE) {
        Ok(listener) => listener,
        Err(why) => return skipped(Class::Rights, why),
    };
    let server: SocketAddr = listener.told("listens at ").unwrap().parse().unwrap();
    let attacking = AtomicUsize::new(usize::from(SOURCES));
    let (mut opened, mut served) = (0, 0);
    thread::scope(|scope| {
        let attacks: Vec<_> = (0..SOURCES)
            .map(|source| {
                let attacking = &attacking;
                scope.spawn(move || {
                    let opened = attack(source + 2, server);
                    attacking.fetch_sub(1, Ordering::Relaxed);
                    opened
                })
            })
            .collect();
        while attacking.load(Ordering::Relaxed) > 0 {
            exchange(server, served);
            served += 1;
            thread::sleep(ms(50));
        }
        opened = attacks.into_iter().map(|attack| attack.join().unwrap()).sum();
    });
    (0..3).for_each(|number| exchange(server, 1000 + number));
    let peak = listener.peak();
    assert!(listener.is_alive(), "the listener has ended, {served} honest peers were served");
    listener.input.take();
    let accepted = listener.told("accepted ").unwrap();
    assert!(listener.child.wait().unwrap().success());
    eprintln!("{opened} opened, accepted {accepted}; {served} honest ones meanwhile; {peak} bytes at most");
    assert!(opened == usize::from(SOURCES) * CONNECTIONS && served >= 1, "{opened} opened, {served} served");
    let number: usize = accepted.split(' ').next().unwrap().parse().unwrap();
    // About 250 of them fill the part of the memory that buffers may use, a quarter. Connections
    // that come when nothing is left end before they can be accepted.
    assert!(number >= 100 && peak > SPARE / 5, "{accepted}; {peak} bytes at most");
}
