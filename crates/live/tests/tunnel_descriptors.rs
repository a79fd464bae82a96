//! Tests a tunnel's end in a process that has no descriptor left. The limit belongs to the process,
//! so this test has a process of its own.
#![expect(clippy::disallowed_methods, reason = "processor time is measured over a while")]

#[path = "it/common/mod.rs"]
mod common;

use common::{ms, nowhere, quick};
use meshpace_live::tpa::TpaPort;
use meshpace_live::tunnel::Connector;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Processor time of this process in seconds.
fn cpu() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

#[test]
fn who_finds_no_descriptor_waits_for_one_without_using_the_processor() {
    let port = TpaPort::with_options("127.0.0.1:0", quick()).unwrap();
    let at = Connector::new(port, nowhere()).serve_socks("127.0.0.1:0", |_| {}).unwrap();
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 64, most).unwrap();
    let mut fillers = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        fillers.push(file);
    }
    // The client takes the last descriptor. Its connection exists, but no descriptor is left to
    // accept it.
    drop(fillers.pop());
    let mut client = TcpStream::connect(at).unwrap();
    let before = cpu();
    std::thread::sleep(ms(1500));
    let used = cpu() - before;
    // A thread that retries without a pause takes 0.15 s, even if other programs leave it a tenth
    // of a processor.
    assert!(used < 0.1, "{used} s of processor time in 1.5 s");
    drop(fillers);
    client.set_read_timeout(Some(ms(20_000))).unwrap();
    client.write_all(&[5, 1, 0]).unwrap();
    let mut chosen = [0; 2];
    client.read_exact(&mut chosen).unwrap();
    assert_eq!(chosen, [5, 0], "it is served once there is one");
}
