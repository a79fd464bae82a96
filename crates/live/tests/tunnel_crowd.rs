//! Tests a tunnel's listener against strangers. Some send nothing, some open all the streams that
//! they can get and leave them idle. The limit of descriptors and the number of threads belong to
//! the process, so this test has a process of its own.
#![expect(clippy::disallowed_methods, reason = "threads come and go in real time")]

#[path = "it/common/mod.rs"]
mod common;

use common::{ms, quick};
use meshpace_live::tpa::{TpaPort, TpaStream};
use meshpace_live::tunnel::{Allowed, Exit};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

/// Answers of an exit.
const CONNECTED: u8 = 0;
const CROWDED: u8 = 5;

/// Number of threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Sends the target of a connection to the exit, without waiting for the answer.
fn say(mut stream: &TpaStream, target: SocketAddr) {
    let target = target.to_string();
    stream.write_all(&[&[1, target.len() as u8], target.as_bytes()].concat()).unwrap();
}

/// A connection to the exit.
fn connect(port: &TpaPort, exit: SocketAddr) -> TpaStream {
    let stream = port.connect(exit).unwrap();
    stream.set_read_timeout(Some(ms(60_000))).unwrap();
    // The targets never close.
    stream.set_linger(ms(0)).unwrap();
    stream
}

/// Opens a stream to a target.
fn ask(port: &TpaPort, exit: SocketAddr, target: SocketAddr) -> TpaStream {
    let stream = connect(port, exit);
    say(&stream, target);
    stream
}

/// Answer of the exit.
fn answer(mut stream: &TpaStream) -> u8 {
    let mut answer = [0];
    stream.read_exact(&mut answer).expect("it is not reset");
    answer[0]
}

#[test]
fn strangers_take_neither_the_threads_nor_the_descriptors_of_others() {
    let options = quick();
    let bound = |address: &str| TpaPort::with_options(address, options.clone()).unwrap();
    let (listening, stranger, honest) = (bound("127.0.0.1:0"), bound("127.0.0.1:0"), bound("127.0.0.2:0"));
    let address = listening.local_addr().unwrap();
    // Connections to this listener are not accepted, so each takes only a descriptor of the exit.
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target.local_addr().map(|address| (target, address)).unwrap();
    Exit::new(Allowed::Anywhere).serve(listening.listen(1024).unwrap(), |_| {}).unwrap();
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 256, most).unwrap();

    // A connection that sends nothing takes no thread, and is closed after a while.
    let before = threads();
    let silent: Vec<TpaStream> = (0..150).map(|_| connect(&stranger, address)).collect();
    assert_eq!(answer(&ask(&honest, address, target.1)), CONNECTED);
    let more = threads() - before;
    assert!(more < 20, "{more} more threads");
    let error = (&silent[0]).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    drop(silent);

    // A stranger that opens all the streams that it can get leaves twice as many for others.
    let idle: Vec<TpaStream> = (0..200).map(|_| ask(&stranger, address, target.1)).collect();
    let answers: Vec<u8> = idle.iter().map(answer).collect();
    let connected = answers.iter().filter(|answer| **answer == CONNECTED).count();
    assert!((60..=64).contains(&connected), "{connected} of {answers:?}");
    assert!(answers.iter().all(|answer| [CONNECTED, CROWDED].contains(answer)), "{answers:?}");
    let others: Vec<TpaStream> = (0..20).map(|_| ask(&honest, address, target.1)).collect();
    assert!(others.iter().all(|other| answer(other) == CONNECTED));

    // If other code has taken all descriptors, a stream waits for one.
    let late = connect(&honest, address);
    let mut fillers = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        fillers.push(file);
    }
    say(&late, target.1);
    let began = Instant::now();
    std::thread::sleep(ms(1500));
    drop(fillers);
    assert_eq!(answer(&late), CONNECTED, "after {:?}", began.elapsed());
}
