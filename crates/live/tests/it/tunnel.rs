//! Tests of TCP connections through a tunnel: complete transfers, many at once, half-closed
//! connections, and resets.
#![expect(clippy::disallowed_methods, reason = "transfers take their time")]

use crate::common::{ms, noise, quick};
use meshpace_core::{Duration, Rate};
use meshpace_live::testbed::tun_link::ADDRESSES;
use meshpace_live::testbed::{Impairment, Link, Loss, Relay};
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_live::tunnel::{Allowed, CarriedBy, Connector, Counters, Exit, Forward, Totals};
use meshpace_testing::{Class, is_slow_run, skipped};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Both ends of a tunnel in this process, with a relay between them if requested.
pub struct Tunnel {
    pub connector: Connector,
    pub exit: Exit,
    /// Address at which the exit listens, without the relay.
    pub far: SocketAddr,
    relay: Option<Relay>,
}

impl Tunnel {
    pub fn new(by: CarriedBy, options: &Options, allowed: Allowed, over: Option<[Impairment; 2]>) -> Tunnel {
        let port = TpaPort::with_options("127.0.0.1:0", options.clone()).unwrap();
        let far = port.local_addr().unwrap();
        let exit = Exit::new(allowed);
        exit.serve(port.listen(1024).unwrap(), |_| {}).unwrap();
        let relay = over.map(|[there, back]| Relay::new(far, there, back, false).unwrap());
        let address = relay.as_ref().map_or(far, Relay::address);
        let own = TpaPort::with_options("127.0.0.1:0", options.clone()).unwrap();
        let connector = match by {
            CarriedBy::Tpa => Connector::new(own, address),
            CarriedBy::Session | CarriedBy::Bbr => Connector::in_session(own, address),
        };
        Tunnel { connector, exit, far, relay }
    }

    /// Local address where connections for `target` are accepted.
    pub fn to(&self, target: SocketAddr) -> SocketAddr {
        to(&self.connector, target)
    }

    /// The relay between the ends.
    pub fn relay(&self) -> &Relay {
        self.relay.as_ref().expect("a tunnel over a relay")
    }

    /// Counts of both ends once no stream is open.
    pub fn totals(&self) -> [Totals; 2] {
        [settled(&self.connector.counters()), settled(&self.exit.counters())]
    }
}

/// Local address where connections for `target` are accepted.
pub fn to(connector: &Connector, target: SocketAddr) -> SocketAddr {
    let forward = Forward { local: "127.0.0.1:0".into(), target: target.to_string() };
    connector.serve(&forward, |_| {}).unwrap()
}

/// Counts once no stream is open.
pub fn settled(counters: &Counters) -> Totals {
    let start = Instant::now();
    while counters.totals().open > 0 && start.elapsed() < ms(30_000) {
        std::thread::sleep(ms(5));
    }
    let totals = counters.totals();
    assert_eq!(totals.open, 0, "{totals:?}");
    totals
}

/// Sends `said` and returns the echo.
pub fn exchange(at: SocketAddr, said: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(ms(60_000)))?;
    stream.write_all(said)?;
    // The echo is sent only after this: one direction ends before the other begins.
    stream.shutdown(Shutdown::Write)?;
    let mut got = Vec::new();
    stream.read_to_end(&mut got)?;
    Ok(got)
}

/// Starts a server that handles every connection on a thread of its own.
pub fn server(serve: impl Fn(TcpStream) + Send + Copy + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Sends everything back once the other side has closed.
pub fn echo(mut stream: TcpStream) {
    let mut got = Vec::new();
    if stream.read_to_end(&mut got).is_ok() {
        let _ = stream.write_all(&got);
    }
}

/// Starts an echo server that accepts no connection before 0.5 s have passed. Its backlog is full
/// until then, so a connection is established only when the kernel repeats its request after 1 s.
fn late_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // With a backlog of 0 the kernel keeps one connection.
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let first = TcpStream::connect(address).unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(ms(500));
        drop(first);
        listener.incoming().flatten().for_each(echo);
    });
    address
}

#[test]
fn a_target_that_accepts_late_is_connected() {
    for by in [CarriedBy::Tpa, CarriedBy::Session] {
        let tunnel = Tunnel::new(by, &Options::default(), Allowed::Anywhere, None);
        let at = tunnel.to(late_server());
        let sent = noise(1, 5000);
        assert!(exchange(at, &sent).unwrap() == sent, "{by:?}");
    }
}

#[test]
fn two_hundred_streams_at_once_closed_by_halves() {
    let tunnel = Tunnel::new(CarriedBy::Tpa, &Options::default(), Allowed::Anywhere, None);
    let at = tunnel.to(server(echo));
    std::thread::scope(|scope| {
        for seed in 0..200 {
            scope.spawn(move || {
                let sent = noise(seed, 5000 + 100 * seed as usize);
                let got = exchange(at, &sent).unwrap();
                assert!(got == sent, "stream {seed}: {} bytes", got.len());
            });
        }
    });
    for totals in tunnel.totals() {
        assert_eq!((totals.open, totals.opened, totals.refused, totals.aborted), (0, 200, 0, 0), "{totals:?}");
        assert_eq!(totals.sent, totals.received);
        assert_eq!(totals.sent, (0..200).map(|seed| 5000 + 100 * seed).sum::<u64>());
    }
}

#[test]
fn a_slow_reader_holds_its_own_writer_back_and_nobody_else() {
    let tunnel = Tunnel::new(CarriedBy::Tpa, &Options::default(), Allowed::Anywhere, None);
    // The server reads nothing until the test allows it.
    static SEEN: AtomicBool = AtomicBool::new(false);
    let slow = tunnel.to(server(|stream| {
        while !SEEN.load(Ordering::Relaxed) {
            std::thread::sleep(ms(10));
        }
        echo(stream);
    }));
    let mut writer = TcpStream::connect(slow).unwrap();
    writer.set_write_timeout(Some(ms(300))).unwrap();
    let sent = noise(1, 40_000_000);
    let mut written = 0;
    while written < sent.len()
        && let Ok(length) = writer.write(&sent[written..])
    {
        written += length;
    }
    assert!(written < sent.len(), "somebody takes without end");
    assert_eq!(exchange(tunnel.to(server(echo)), b"quick").unwrap(), b"quick");
    SEEN.store(true, Ordering::Relaxed);
    drop(writer);
}

#[test]
fn what_is_broken_off_is_not_taken_for_an_end() {
    let tunnel = Tunnel::new(CarriedBy::Tpa, &quick(), Allowed::Anywhere, None);
    // The server sends something and aborts.
    let at = tunnel.to(server(|mut stream| {
        stream.write_all(b"half of it").unwrap();
        let _ = stream.read(&mut [0]);
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
    }));
    let mut stream = TcpStream::connect(at).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream.write_all(b"?").unwrap();
    let error = stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    let totals = tunnel.totals();
    assert!(totals.iter().all(|totals| totals.aborted == 1), "{totals:?}");
}

/// Writes until no more is accepted, and aborts.
fn flood(mut stream: TcpStream) {
    stream.set_write_timeout(Some(ms(500))).unwrap();
    while stream.write(&[7; 1 << 16]).is_ok() {}
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
}

#[test]
fn what_is_broken_off_does_not_wait_for_a_client_that_reads_nothing() {
    breaks_off_before_a_client_that_reads_nothing(&Tunnel::new(CarriedBy::Tpa, &quick(), Allowed::Anywhere, None));
}

pub fn breaks_off_before_a_client_that_reads_nothing(tunnel: &Tunnel) {
    let mut client = TcpStream::connect(tunnel.to(server(flood))).unwrap();
    client.read_exact(&mut [0]).unwrap();
    // The client's data meets a target that has aborted, once the data of the target is no longer
    // accepted. The client still reads nothing.
    let [near, far] = [tunnel.connector.counters(), tunnel.exit.counters()];
    // On a busy machine the pacing interval is long, and the buffers on the path fill slowly. Two
    // minutes are enough for that. A reset is reported once, to the first read or write.
    let mut told = None;
    let ended = (0..6000).any(|_| {
        if let Err(error) = client.write(b"?") {
            told.get_or_insert(error);
        }
        std::thread::sleep(ms(20));
        (near.totals().aborted, far.totals().aborted) == (1, 1)
    });
    assert!(ended, "{:?}, {:?}", near.totals(), far.totals());
    // The client receives a reset too.
    let error = told.unwrap_or_else(|| std::io::copy(&mut client, &mut std::io::sink()).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn targets_that_are_not_there_or_not_allowed() {
    refuses_targets_that_are_not_there_or_not_allowed(CarriedBy::Tpa, &quick());
}

pub fn refuses_targets_that_are_not_there_or_not_allowed(by: CarriedBy, options: &Options) {
    let [echoes, other] = [server(echo), server(echo)];
    let nobody = crate::common::nowhere();
    let allowed = Allowed::These(vec![echoes.to_string(), nobody.to_string()]);
    let tunnel = Tunnel::new(by, options, allowed, None);
    for target in [other, nobody] {
        let mut stream = TcpStream::connect(tunnel.to(target)).unwrap();
        assert!(stream.read(&mut [0]).is_err(), "{target}: a reset and no end");
    }
    assert_eq!(exchange(tunnel.to(echoes), b"in").unwrap(), b"in");
    let [near, far] = tunnel.totals();
    assert_eq!((near.opened, near.refused, far.refused, far.aborted), (3, 2, 2, 0), "{near:?} {far:?}");
}

/// A SOCKS 5 client that requests a target by name or address. Returns the reply code and the
/// connection.
fn by_socks(at: SocketAddr, host: &str, port: u16) -> (u8, TcpStream) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).unwrap();
    assert_eq!(chosen, [5, 0]);
    stream.write_all(&[&[5, 1, 0, 3, host.len() as u8], host.as_bytes(), &port.to_be_bytes()].concat()).unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!((reply[0], reply[2..4].to_vec()), (5, vec![0, 1]));
    (reply[1], stream)
}

#[test]
fn clients_of_socks_say_where_they_go() {
    let [echoes, other] = [server(echo), server(echo)];
    let nobody = crate::common::nowhere();
    let name = |port: u16| format!("localhost:{port}");
    let allowed = [echoes.port(), nobody.port()].map(name).to_vec();
    let tunnel = Tunnel::new(CarriedBy::Tpa, &quick(), Allowed::These(allowed), None);
    let at = tunnel.connector.serve_socks("127.0.0.1:0", |_| {}).unwrap();
    let (told, mut stream) = by_socks(at, "localhost", echoes.port());
    assert_eq!(told, 0);
    stream.write_all(b"there and back").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text, "there and back");
    // A target that is not allowed, and one that does not exist: the replies of RFC 1928, then the
    // end of the connection.
    for (port, answer) in [(other.port(), 2), (nobody.port(), 5)] {
        let (told, mut stream) = by_socks(at, "localhost", port);
        assert_eq!((told, stream.read(&mut [0]).unwrap()), (answer, 0), "port {port}");
    }
    let [near, far] = tunnel.totals();
    assert_eq!((near.opened, near.refused, far.refused, far.aborted), (3, 2, 2, 0), "{near:?} {far:?}");
}

#[test]
fn whole_networks_go_through_and_nothing_is_left_behind() {
    let link = match Link::new(Impairment::default(), Impairment::default(), 1500, false) {
        Ok(link) => link,
        Err(error) => {
            skipped(Class::Rights, format_args!("no namespaces joined by TUN devices here ({error}); needs root"));
            return;
        }
    };
    if !meshpace_testing::has("nft", "nftables") {
        return;
    }
    let ip = meshpace_live::tun::ip;
    let tables = || link.sides[0].run(|| meshpace_live::tcp::filter::tables().unwrap());
    let rules = || {
        let list = |family: &str| Command::new("ip").args([family, "rule", "show"]).output().unwrap().stdout;
        link.sides[0].run(|| ["-4", "-6"].map(|family| String::from_utf8(list(family)).unwrap()))
    };
    // Networks behind the far site; IPv6 only if the kernel supports it.
    let versions = 1 + usize::from(std::path::Path::new("/proc/net/if_inet6").exists());
    let networks = &["10.200.0.0/24", "fd00:200::/64"][..versions];
    let before = rules();
    // The far site has a network behind it and serves there.
    let (far, echoes) = link.sides[1].run(|| {
        let hosts = &["10.200.0.7", "fd00:200::7"][..versions];
        // Duplicate address detection is switched off. The kernel starts it later, and nobody can
        // listen at the address before it ends.
        let at_once = |host: &str| if host.contains(':') { &["nodad"][..] } else { &[] };
        hosts.iter().for_each(|host| ip(&[&["address", "add", host, "dev", "lo"], at_once(host)].concat()).unwrap());
        let port = TpaPort::with_options((ADDRESSES[1], 0), quick()).unwrap();
        let far = port.local_addr().unwrap();
        let exit = Exit::new(Allowed::Anywhere);
        exit.serve(port.listen(16).unwrap(), |_| {}).unwrap();
        let serve = |host: &&str| {
            let listener = TcpListener::bind((*host, 0)).unwrap();
            let at = listener.local_addr().unwrap();
            std::thread::spawn(move || listener.incoming().flatten().for_each(echo));
            at
        };
        (far, hosts.iter().map(serve).collect::<Vec<_>>())
    });
    let connector = link.sides[0].run(|| {
        // Without these routes there are no packets that could be marked.
        ip(&["route", "add", "10.200.0.0/16", "dev", "lossy"]).unwrap();
        if versions == 2 {
            ip(&["route", "add", "fd00:200::/32", "dev", "lo"]).unwrap();
        }
        Connector::new(TpaPort::with_options((ADDRESSES[0], 0), quick()).unwrap(), far)
    });
    let transparent = link.sides[0].run(|| {
        connector.serve_networks(&networks.iter().map(|network| network.parse().unwrap()).collect::<Vec<_>>(), |_| {})
    });
    let transparent = match transparent {
        Ok(transparent) => transparent,
        Err(error) => {
            skipped(Class::Rights, format_args!("no transparent sockets here ({error})"));
            return;
        }
    };
    assert_eq!(tables().len(), versions);
    (0..versions).for_each(|version| assert_ne!(rules()[version], before[version]));
    // Programs that know nothing of the tunnel.
    let said = noise(9, 100_000);
    for echoes in echoes {
        let got = link.sides[0].run(|| {
            let mut stream = TcpStream::connect(echoes).unwrap();
            assert_eq!(stream.peer_addr().unwrap(), echoes);
            stream.write_all(&said).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            got
        });
        assert!(got == said, "{} bytes", got.len());
    }
    let (totals, each) = (connector.counters().totals(), versions as u64);
    let seen = (totals.opened, totals.sent, totals.received);
    assert_eq!(seen, (each, each * 100_000, each * 100_000), "{totals:?}");
    link.sides[0].run(|| drop(transparent));
    assert_eq!((tables().len(), rules()), (0, before));
}

/// Size of the page of the test: 300 kB in a quick run, 20 MB in the full one.
pub fn page_bytes() -> usize {
    std::env::var("MESHPACE_TUNNEL_MB")
        .ok()
        .and_then(|mb| mb.parse::<usize>().ok())
        .map_or(300_000, |mb| mb * 1_000_000)
}

/// Answers an HTTP/1.0 request with the page.
pub fn page(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
        request.extend(byte);
    }
    let body = noise(7, page_bytes());
    let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(&body);
}

#[test]
fn curl_over_a_lossy_link_that_goes_down_meanwhile() {
    if Command::new("curl").arg("--version").output().is_err() {
        skipped(Class::Tools, "curl is not installed");
        return;
    }
    let full = page_bytes() > 300_000;
    let outage = if full {
        (Duration::from_secs(5), Duration::from_secs(10))
    } else {
        (Duration::from_millis(500), Duration::from_millis(1500))
    };
    let bad = |seed| Impairment {
        delay: Duration::from_millis(5),
        loss: Loss::Random(0.02),
        reorder: 0.02,
        outage: Some(outage),
        seed,
        ..Impairment::default()
    };
    let mut options = quick();
    options.transport.congestion.window = 12;
    let tunnel = Tunnel::new(CarriedBy::Tpa, &options, Allowed::Anywhere, Some([bad(1), bad(2)]));
    let at = tunnel.to(server(page));
    let start = Instant::now();
    let output =
        Command::new("curl").args(["-sS", "--max-time", "550", &format!("http://{at}/page")]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let [near, far] = tunnel.totals();
    eprintln!(
        "{} bytes in {:.1} s; segments {}, repeated {}",
        output.stdout.len(),
        start.elapsed().as_secs_f64(),
        far.stats.segments_sent,
        far.stats.retransmissions
    );
    assert_eq!(Sha256::digest(&output.stdout), Sha256::digest(noise(7, page_bytes())));
    assert!(far.stats.retransmissions > 0, "the link lost nothing");
    // This is longer than the link was down after the transfer had begun.
    assert!(start.elapsed() >= ms(1500), "the link was not down: {:?}", start.elapsed());
    assert_eq!((near.aborted, far.aborted), (0, 0));
}

/// Sends every byte back at once.
pub fn parrot(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut block = [0; 1024];
    while let Ok(length) = stream.read(&mut block) {
        if length == 0 || stream.write_all(&block[..length]).is_err() {
            return;
        }
    }
}

/// Times of the echo of a keystroke in ms: the shortest, the median, the 95th percentile.
fn echo_times(mut keyboard: impl Write, mut screen: impl Read, keystrokes: usize) -> [f64; 3] {
    let mut times: Vec<f64> = (0..keystrokes)
        .map(|_| {
            let start = Instant::now();
            keyboard.write_all(b"k").unwrap();
            screen.read_exact(&mut [0]).unwrap();
            let took = start.elapsed().as_secs_f64() * 1e3;
            std::thread::sleep(ms(50));
            took
        })
        .collect();
    times.sort_by(f64::total_cmp);
    [times[0], times[keystrokes / 2], times[keystrokes * 95 / 100]]
}

/// A connection that sends every byte at once.
fn typist(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

#[test]
fn a_keystroke_does_not_wait_for_others() {
    let tunnel =
        Tunnel::new(CarriedBy::Tpa, &meshpace_live::tunnel::options(quick().transport), Allowed::Anywhere, None);
    let at = tunnel.to(server(parrot));
    // If blocks waited until they are full, 100 ms in each direction, no echo would take less than
    // 200 ms. A busy machine delays some of the echoes, but not every one.
    let keys = typist(at);
    let [shortest, ..] = echo_times(&keys, &keys, 40);
    assert!(shortest < 150.0, "{shortest} ms");
}

/// Tunnels over 10 Mbit/s and 10 ms in each direction, with the paper's window and with the largest
/// one. Returns the window too.
fn narrow_tunnels() -> impl Iterator<Item = (u8, Tunnel)> {
    let bad = |seed| Impairment {
        delay: Duration::from_millis(10),
        rate: Some(Rate::from_mbps(10)),
        seed,
        ..Impairment::default()
    };
    [3, 12].into_iter().map(move |window| {
        let mut options = meshpace_live::tunnel::options(Options::default().transport);
        options.transport.congestion.window = window;
        (window, Tunnel::new(CarriedBy::Tpa, &options, Allowed::Anywhere, Some([bad(1), bad(2)])))
    })
}

/// Types 200 times alone, and 200 times beside a bulk transfer through the same tunnel.
fn type_beside_bulk(window: u8, tunnel: &Tunnel, mut keyboard: impl Write, mut screen: impl Read) {
    let alone = echo_times(&mut keyboard, &mut screen, 200);
    let sink = tunnel.to(server(|mut stream| while stream.read(&mut [0; 65_536]).is_ok_and(|length| length > 0) {}));
    let mut bulk = TcpStream::connect(sink).unwrap();
    let stop = AtomicBool::new(false);
    let (beside, sent) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut sent = 0;
            while !stop.load(Ordering::Relaxed) {
                sent += bulk.write(&[7; 16_384]).unwrap();
            }
            sent
        });
        std::thread::sleep(ms(1000));
        let beside = echo_times(&mut keyboard, &mut screen, 200);
        stop.store(true, Ordering::Relaxed);
        (beside, sending.join().unwrap())
    });
    eprintln!(
        "cwnd_max {window}: echo median {:.1} ms, p95 {:.1} ms alone; {:.1} ms, {:.1} ms beside {:.1} MB of bulk",
        alone[1],
        alone[2],
        beside[1],
        beside[2],
        sent as f64 * 1e-6
    );
    // A link queue full of bulk data would add 60 ms. The least possible time is two delays of 10
    // ms.
    assert!(sent > 1_000_000 && beside[0] < 200.0 && beside[0] >= 20.0, "cwnd_max {window}: {alone:?} {beside:?}");
}

#[test]
fn an_echo_stays_quick_beside_a_bulk_transfer() {
    if !is_slow_run("types 800 times through a tunnel of 10 Mbit/s, with and without a bulk transfer beside it") {
        return;
    }
    for (window, tunnel) in narrow_tunnels() {
        let keys = typist(tunnel.to(server(parrot)));
        type_beside_bulk(window, &tunnel, &keys, &keys);
    }
}

/// An OpenSSH server for one connection, which accepts the key in `keys`.
fn ssh_server(stream: TcpStream, keys: &std::path::Path) {
    let file = |name: &str| keys.join(name).display().to_string();
    let options = [
        format!("HostKey={}", file("host")),
        format!("AuthorizedKeysFile={}", file("user.pub")),
        "StrictModes=no".to_owned(),
        "UsePAM=no".to_owned(),
        "PermitRootLogin=yes".to_owned(),
    ];
    let mut command = Command::new("/usr/sbin/sshd");
    command.args(["-i", "-e", "-f", "/dev/null"]).args(options.iter().flat_map(|option| ["-o", option]));
    let stdin: std::os::fd::OwnedFd = stream.try_clone().unwrap().into();
    let stdout: std::os::fd::OwnedFd = stream.into();
    let _ = command.stdin(stdin).stdout(stdout).stderr(Stdio::null()).status();
}

#[test]
fn ssh_stays_usable_beside_a_bulk_transfer() {
    if !is_slow_run(
        "types 800 times in OpenSSH through a tunnel of 10 Mbit/s, with and without a bulk transfer beside it",
    ) {
        return;
    }
    if !["/usr/sbin/sshd", "/usr/bin/ssh", "/run/sshd"].iter().all(|file| std::path::Path::new(file).exists()) {
        // The program is not installed unasked: on most machines it would begin to serve strangers.
        skipped(Class::Rights, "no OpenSSH: apt-get install openssh-server openssh-client; mkdir -p /run/sshd");
        return;
    }
    let keys = tempfile::tempdir().unwrap();
    let keys = keys.path();
    for name in ["host", "user"] {
        let done =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(keys.join(name)).status();
        assert!(done.unwrap().success());
    }
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap().trim().to_owned();
    for (window, tunnel) in narrow_tunnels() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = tunnel.to(listener.local_addr().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| ssh_server(listener.accept().unwrap().0, keys));
            let mut command = Command::new("ssh");
            command.args(["-tt", "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]);
            // Newer versions send keystrokes at fixed times, to hide when they were typed.
            command.args(["-o", "IgnoreUnknown=ObscureKeystrokeTiming", "-o", "ObscureKeystrokeTiming=no", "-i"]);
            command.arg(keys.join("user")).args(["-p", &at.port().to_string(), &format!("{user}@127.0.0.1")]);
            command.arg("echo ready; exec cat");
            let mut ssh = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            let (keyboard, mut screen) = (ssh.stdin.take().unwrap(), ssh.stdout.take().unwrap());
            let mut said = Vec::new();
            while !said.ends_with(b"ready\r\n") {
                let mut byte = [0];
                assert_eq!(screen.read(&mut byte).unwrap(), 1, "ssh ended: {:?}", String::from_utf8_lossy(&said));
                said.push(byte[0]);
            }
            type_beside_bulk(window, &tunnel, keyboard, screen);
            ssh.kill().unwrap();
            ssh.wait().unwrap();
        });
    }
}
