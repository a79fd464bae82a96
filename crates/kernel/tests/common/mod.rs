//! Shared code of the tests on a running kernel: congestion controls with unique names, a network
//! of their own, and TCP connections through it.
#![allow(dead_code, reason = "each test uses its part")]

pub mod capture;
pub mod standstill;

use meshpace_core::Rate;
use meshpace_kernel::object::{self, Request};
use meshpace_kernel::{Form, Path, machine};
use meshpace_live::testbed::{Namespace, veth};
use meshpace_live::tun::ip;
use meshpace_testing::{Class, has, skipped};
use nix::sys::socket::{setsockopt, sockopt};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// True if this machine cannot run the tests on a kernel. The skip is then reported.
#[track_caller]
pub fn is_missing() -> bool {
    let lacks = machine::examine().into_iter().find(|check| {
        // A missing file system is not an obstacle: loading mounts it.
        check.subject != "eBPF file system" && check.found.is_err()
    });
    if let Some(check) = &lacks {
        let found = check.found.as_ref().unwrap_err();
        skipped(Class::Rights, format_args!("{}: {found}; {}", check.subject, check.remedy));
    }
    lacks.is_some()
}

/// A request for a congestion control with a unique name. The congestion control is unloaded at the
/// end of the test.
pub struct Loaded(pub Request);

impl Loaded {
    /// The name is `mp`, the number of the process and `letter`.
    pub fn request(letter: char) -> Request {
        Request {
            name: format!("mp{}{letter}", std::process::id()),
            form: Form::Ap05,
            usual: Path::new(4, Rate::from_mbps(11)),
            paths: Vec::new(),
            factor: 200,
            initial_window: 10,
            allow_users: false,
            devices: Vec::new(),
            radios: Vec::new(),
        }
    }

    pub fn new(request: Request) -> Loaded {
        object::load(&request).unwrap();
        Loaded(request)
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // Some tests have already unloaded it.
        let _ = object::unload(&self.0.name);
    }
}

/// Name of the device on both sides.
pub const DEVICE: &str = "veth";
/// Address of the sender, and the first address of the receiver.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
pub const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

/// Two network namespaces that are connected by a veth pair.
pub fn network() -> [Namespace; 2] {
    let sides = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    veth::join([&sides[0], &sides[1]], DEVICE, [SENDER, RECEIVER], 1500).unwrap();
    // Bursts that the kernel itself forms would disturb tests of spacing.
    sides[0].run(|| ip(&["link", "set", "dev", DEVICE, "gso_max_segs", "1"])).unwrap();
    sides
}

/// Chooses a congestion control for a socket, as a program would.
pub fn choose(socket: &TcpStream, name: &str) -> io::Result<()> {
    setsockopt(socket, sockopt::TcpCongestion, &OsString::from(name)).map_err(io::Error::from)
}

/// A connection that sends as much as possible.
pub struct Flow {
    stop: Arc<AtomicBool>,
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Number of bytes that have arrived.
    pub arrived: Arc<AtomicU64>,
    ends: Vec<JoinHandle<()>>,
}

impl Flow {
    /// Starts a flow from the first side to `address` on the second, with the congestion control
    /// `name`.
    pub fn start(sides: &[Namespace; 2], address: impl Into<IpAddr>, name: &str) -> Flow {
        let address = address.into();
        Flow::between(sides, address, address, name)
    }

    /// Starts a flow to `address` on the second side, which the first side addresses as `called`.
    pub fn between(sides: &[Namespace; 2], address: IpAddr, called: IpAddr, name: &str) -> Flow {
        // A small buffer, so that the last bytes written do not keep a slow connection open for
        // long.
        Flow::buffered(sides, address, called, name, 16_384)
    }

    /// Starts a flow with a send buffer of `buffer` bytes. A large buffer keeps segments ready to
    /// send on a busy machine, which seldom runs the writer.
    pub fn buffered(sides: &[Namespace; 2], address: IpAddr, called: IpAddr, name: &str, buffer: usize) -> Flow {
        let listener = sides[1].run(|| TcpListener::bind((address, 0))).unwrap();
        let to = SocketAddr::new(called, listener.local_addr().unwrap().port());
        let stop = Arc::new(AtomicBool::new(false));
        let arrived = Arc::new(AtomicU64::new(0));
        let receiver = std::thread::spawn({
            let arrived = arrived.clone();
            move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut bytes = vec![0; 1 << 16];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    arrived.fetch_add(count as u64, Relaxed);
                }
            }
        });
        let mut stream = sides[0].run(|| TcpStream::connect(to)).unwrap();
        let from = stream.local_addr().unwrap();
        choose(&stream, name).unwrap();
        setsockopt(&stream, sockopt::SndBuf, &buffer).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = std::thread::spawn({
            let stop = stop.clone();
            move || {
                let bytes = vec![0; buffer / 2];
                while !stop.load(Relaxed) && stream.write(&bytes).is_ok() {}
            }
        });
        Flow { stop, from, arrived, ends: vec![receiver, sender] }
    }

    /// Stops sending and waits until all data has arrived.
    pub fn finish(self) {
        self.stop.store(true, Relaxed);
        for end in self.ends {
            end.join().unwrap();
        }
    }
}

/// Stops all these connections at once, so that they empty their buffers at the same time. Waits
/// until all data has arrived.
pub fn finish_all(flows: Vec<Flow>) {
    for flow in &flows {
        flow.stop.store(true, Relaxed);
    }
    flows.into_iter().for_each(Flow::finish);
}

/// Evaluates `so` every few milliseconds until it is true, for at most `most`.
#[expect(clippy::disallowed_methods, reason = "the kernel takes its time")]
pub fn eventually(most: Duration, mut so: impl FnMut() -> bool) -> bool {
    let start = std::time::Instant::now();
    loop {
        if so() {
            return true;
        }
        if start.elapsed() > most {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs tests of this program on Debian's kernel 6.1 in a machine emulated by qemu. `filter`
/// chooses the tests, and `expected` is the text of the last line of their result. Skipped where
/// qemu or the kernel is not available.
#[track_caller]
pub fn debian_6_1(filter: &str, expected: &str) {
    let tools = [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("busybox", "busybox-static"),
        ("cpio", "cpio"),
        ("ip", "iproute2"),
    ];
    if !tools.iter().all(|(program, package)| has(program, package)) {
        return;
    }
    let itself = std::env::current_exe().unwrap();
    let done = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/debian-6.1"))
        .arg(concat!(env!("CARGO_TARGET_TMPDIR"), "/debian-6.1"))
        .arg(format!("{}:{filter}", itself.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    if done.status.code() == Some(77) {
        skipped(Class::Tools, format_args!("no kernel 6.1 from apt-get: {said}"));
        return;
    }
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("6.1.0-") && said.contains(expected), "{said}");
    println!("{said}");
}
