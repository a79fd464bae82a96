//! Our TCP in one network namespace, an ordinary host in another, and a lossy link between them.
#![allow(dead_code, reason = "each test uses its part")]

use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, Rate, Rng, Time};
use meshpace_live::Clock;
use meshpace_live::tcp::{Device, Id, Interface, Limits, Stack};
use meshpace_live::testbed::tun_link::{ADDRESSES, DEVICE};
use meshpace_live::testbed::{Impairment, Link, Loss};
use meshpace_testing::{Class, skipped};
use meshpace_transport::tcp::End;
use meshpace_transport::{Config, PathInfo, names, tcp};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::{Child, Command, Stdio};

/// The host behind which our address lies.
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// Our address.
pub const OURS: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
/// Address of the ordinary host.
pub const PEER: Ipv4Addr = ADDRESSES[1];
/// Its port, or ours.
pub const PORT: u16 = 5000;

/// Bytes of a transfer over the bad link: `MESHPACE_BAD_MB` megabytes. The default is 5, which
/// takes seconds.
pub fn some() -> u64 {
    std::env::var("MESHPACE_BAD_MB").map_or(5, |text| text.parse::<u64>().expect("a number")) * 1_000_000
}

/// The link, with our host on side 0 and the ordinary host on side 1.
pub struct World {
    pub link: Link,
}

impl World {
    /// `None`, with a report, on a machine that cannot have a link.
    pub fn new(there: Impairment, back: Impairment, mtu: u16, recording: bool) -> Option<World> {
        if let Some(reason) = Link::missing() {
            skipped(Class::Rights, reason);
            return None;
        }
        let link = Link::new(there, back, mtu, recording).unwrap();
        link.sides[0].run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
        let via = ADDRESSES[0].to_string();
        link.sides[1].run(|| ip(&["route", "add", "10.78.0.0/24", "via", &via, "dev", DEVICE]));
        Some(World { link })
    }

    pub fn plain() -> Option<World> {
        World::new(Impairment::default(), Impairment::default(), 1500, false)
    }

    /// Creates a link that, in each direction, loses 0.5 % of the packets, holds 1 % back so that
    /// others overtake them, and duplicates 0.2 %.
    pub fn bad(recording: bool) -> Option<World> {
        let way = |seed| Impairment {
            delay: Duration::from_micros(500),
            loss: Loss::Random(0.005),
            duplicate: 0.002,
            reorder: 0.01,
            reorder_delay: Duration::from_millis(2),
            seed,
            ..Impairment::default()
        };
        World::new(way(11), way(12), 1500, recording)
    }

    /// Our TCP behind a TUN device of our host. This function, and all code that uses its result,
    /// must run within [`World::ours`].
    pub fn device(mtu: u16) -> Stack<Device> {
        let mut stack = Stack::new(Device::create("ours", HOST, OURS, mtu).unwrap(), Limits::default()).unwrap();
        // Path for adaptive pacing: the channel is not a bottleneck.
        stack.set_path(PathInfo { hops: 1, rate: Rate::from_mbps(1000), received_power_dbm: None }, false);
        stack
    }

    /// Runs `work` on our host.
    pub fn ours<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.link.sides[0].run(work)
    }

    /// Sets a parameter of the ordinary host's kernel.
    pub fn sysctl(&self, name: &str, value: &str) {
        let path = format!("/proc/sys/net/ipv4/{name}");
        self.link.sides[1].run(|| std::fs::write(&path, value).unwrap_or_else(|e| panic!("{path}: {e}")));
    }

    /// Starts a program on the ordinary host.
    pub fn peer(&self, program: &str, arguments: &[&str]) -> Peer {
        self.link.sides[1].run(|| Peer::start(program, arguments))
    }

    /// Starts a Python program on the ordinary host, and waits for its first line, "ready".
    pub fn python(&self, program: &str) -> Peer {
        self.link.sides[1].run(|| Peer::python(program))
    }
}

/// A process that ends with its owner.
pub struct Peer(pub Child);

impl Peer {
    /// Starts a program in the calling thread's namespace.
    pub fn start(program: &str, arguments: &[&str]) -> Peer {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Peer(command.spawn().unwrap_or_else(|e| panic!("{program}: {e}")))
    }

    /// Starts a Python program in the calling thread's namespace, and waits for its first line,
    /// "ready".
    pub fn python(program: &str) -> Peer {
        let mut peer = Peer::start("python3", &["-c", program]);
        let mut line = [0; 6];
        peer.0.stdout.as_mut().unwrap().read_exact(&mut line).unwrap_or_else(|_| panic!("{}", peer.complaint()));
        assert_eq!(&line, b"ready\n");
        peer
    }

    /// True if the host has acknowledged bytes for `port` that the process has not read yet
    /// (proc(5), /proc/pid/net/tcp).
    pub fn leaves_unread(&self, port: u16) -> bool {
        let pid = self.0.id();
        ["tcp", "tcp6"].iter().any(|table| {
            let table = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap();
            table.lines().skip(1).any(|line| {
                let mut fields = line.split_whitespace();
                let (local, queues) = (fields.nth(1).unwrap(), fields.nth(2).unwrap());
                let unread = u32::from_str_radix(queues.split_once(':').unwrap().1, 16).unwrap();
                local.ends_with(&format!(":{port:04X}")) && unread > 0
            })
        })
    }

    /// Output of the process until it ends.
    pub fn output(&mut self) -> String {
        let mut text = String::new();
        self.0.stdout.as_mut().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success(), "{}", self.complaint());
        text.trim().to_owned()
    }

    fn complaint(&mut self) -> String {
        let _ = self.0.kill();
        let mut text = String::new();
        let _ = self.0.stderr.as_mut().unwrap().read_to_string(&mut text);
        text
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Python program that accepts one connection and prints the number of bytes received, and their
/// SHA-256.
pub fn python_receiver() -> String {
    python_receiver_on(PEER)
}

/// The same program at another address.
pub fn python_receiver_on(address: Ipv4Addr) -> String {
    format!(
        "import socket, hashlib\n\
         s = socket.create_server(('{address}', {PORT}))\n\
         print('ready', flush=True)\n\
         c, _ = s.accept()\n\
         h = hashlib.sha256(); n = 0\n\
         while True:\n    b = c.recv(65536)\n    if not b: break\n    h.update(b); n += len(b)\n\
         c.close()\n\
         print(n, h.hexdigest())\n"
    )
}

/// A Python program that connects to us, sends `bytes` bytes and prints their SHA-256.
pub fn python_sender(bytes: u64) -> String {
    python_sender_to(OURS, bytes)
}

/// The same program with another destination.
pub fn python_sender_to(address: Ipv4Addr, bytes: u64) -> String {
    format!(
        "import socket, hashlib, random\n\
         print('ready', flush=True)\n\
         c = socket.create_connection(('{address}', {PORT}))\n\
         h = hashlib.sha256(); r = random.Random(7)\n\
         left = {bytes}\n\
         while left:\n    b = r.randbytes(min(left, 65536)); c.sendall(b); h.update(b); left -= len(b)\n\
         c.shutdown(socket.SHUT_WR)\n\
         assert c.recv(1) == b''\n\
         print({bytes}, h.hexdigest())\n"
    )
}

pub fn ip(arguments: &[&str]) {
    meshpace_live::tun::ip(arguments).unwrap();
}

/// The TCP called `name`.
pub fn transport(name: &str) -> tcp::Config {
    match names::lookup(name) {
        Some(Config::Tcp(config)) => config,
        _ => panic!("{name} is no TCP"),
    }
}

pub fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// Sends `bytes` random bytes and closes. Returns their number and SHA-256 once the peer has closed
/// too.
pub fn send<I: Interface>(stack: &mut Stack<I>, id: Id, bytes: u64, within: Duration) -> String {
    let [sent, _] = converse(stack, id, Source::new(bytes, 0), false, within);
    sent
}

/// Receives everything until the peer closes, then closes. Returns the number of bytes and their
/// SHA-256.
pub fn receive<I: Interface>(stack: &mut Stack<I>, id: Id, within: Duration) -> String {
    let [_, heard] = converse(stack, id, Source::new(0, 0), true, within);
    heard
}

/// Sends the random bytes of `side` and receives the peer's at the same time. Returns numbers and
/// SHA-256 of the bytes sent and of those received.
pub fn exchange<I: Interface>(stack: &mut Stack<I>, id: Id, bytes: u64, side: u64, within: Duration) -> [String; 2] {
    converse(stack, id, Source::new(bytes, side), false, within)
}

/// Source of random bytes to send.
struct Source {
    rng: Rng,
    left: u64,
    block: Vec<u8>,
    /// Part of the block that the connection has not accepted yet.
    waiting: std::ops::Range<usize>,
    sent: (u64, Sha256),
}

impl Source {
    fn new(bytes: u64, side: u64) -> Source {
        let rng = Rng::stream(bytes, Purpose::Test, side);
        Source { rng, left: bytes, block: vec![0; 65_536], waiting: 0..0, sent: (bytes, Sha256::new()) }
    }

    /// Writes as much as the connection accepts. Returns true if that was all.
    fn pour<I: Interface>(&mut self, stack: &mut Stack<I>, id: Id) -> bool {
        while self.left > 0 || !self.waiting.is_empty() {
            if self.waiting.is_empty() {
                let length = self.left.min(self.block.len() as u64) as usize;
                for word in self.block[..length].chunks_mut(8) {
                    let random = self.rng.next_u64().to_le_bytes();
                    word.copy_from_slice(&random[..word.len()]);
                }
                self.sent.1.update(&self.block[..length]);
                self.left -= length as u64;
                self.waiting = 0..length;
            }
            let taken = stack.write(id, &self.block[self.waiting.clone()]);
            self.waiting.start += taken;
            if taken == 0 {
                return false;
            }
        }
        true
    }
}

/// Sends the bytes of `source` and receives everything. Closes when everything is written; if
/// `last`, only after the peer has closed.
fn converse<I: Interface>(
    stack: &mut Stack<I>,
    id: Id,
    mut source: Source,
    last: bool,
    within: Duration,
) -> [String; 2] {
    let end = Clock.now() + within;
    let (mut heard, mut block) = ((0, Sha256::new()), vec![0; 65_536]);
    loop {
        let all = source.pour(stack, id);
        loop {
            let taken = stack.read(id, &mut block);
            if taken == 0 {
                break;
            }
            heard.0 += taken as u64;
            heard.1.update(&block[..taken]);
        }
        let status = stack.status(id).expect("not released");
        if all && (status.at_end || !last) {
            stack.close(id);
        }
        match status.end {
            Some(End::Closed) => {
                return [source.sent, heard].map(|(count, hash)| format!("{count} {}", hex(&hash.finalize())));
            }
            Some(end) => panic!("{end:?} {:?}", status.unreachable),
            None => assert!(
                Clock.now() < end,
                "not done: {} bytes came, {status:?} {:?}",
                heard.0,
                stack.connection(id).unwrap().stats()
            ),
        }
        stack.step(end).unwrap();
    }
}

/// Waits for a connection.
pub fn accept<I: Interface>(stack: &mut Stack<I>, port: u16, within: Duration) -> Id {
    let end = Clock.now() + within;
    loop {
        if let Some((id, _)) = stack.accept(port) {
            return id;
        }
        assert!(Clock.now() < end, "nobody came: {:?}", stack.trouble());
        stack.step(end).unwrap();
    }
}

/// Runs the stack for a while.
pub fn run_for<I: Interface>(stack: &mut Stack<I>, span: Duration) {
    let end = Clock.now() + span;
    while Clock.now() < end {
        stack.step(end).unwrap();
    }
}

pub fn peer() -> SocketAddrV4 {
    SocketAddrV4::new(PEER, PORT)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Current time, for [`Stack::step`].
pub fn now() -> Time {
    Clock.now()
}
