//! A program in C and one in Rust exchange bytes over TPA, both ways at once, either of them opening the connection; also
//! over a link that loses, reorders and delays.
//!
//! `MESHPACE_EXCHANGE_MB` sets the megabytes each way over a good link (default 20), `MESHPACE_LOSSY_MB` over a bad one
//! (default 10).

use meshpace_core::Duration;
use meshpace_live::Clock;
use meshpace_live::testbed::{Impairment, Loss, Relay};
use meshpace_live::tpa::{Options, Security, TpaListener, TpaPort, TpaStream, keys};
use meshpace_testing::ports::spare_port;
use meshpace_testing::{Class, is_slow_run, skipped};
use meshpace_transport::Stats;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The generator of the C program's buffers: xorshift64*.
struct Noise(u64);

impl Noise {
    fn fill(&mut self, into: &mut [u8]) {
        for word in into.chunks_exact_mut(8) {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            word.copy_from_slice(&self.0.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
        }
    }
}

/// The programs in C, compiled: the peer of these tests, and the example.
struct Programs {
    _directory: tempfile::TempDir,
    peer: PathBuf,
    poll: PathBuf,
    echo_client: PathBuf,
    bind: PathBuf,
    fork: PathBuf,
    keys: PathBuf,
    manners: PathBuf,
    leave: PathBuf,
    hub: PathBuf,
    /// `None` if the files for development of libuv are not installed.
    uv: Option<PathBuf>,
}

/// The options that programs with libuv are compiled with. `None` if pkg-config does not find it.
fn libuv() -> Option<Vec<String>> {
    let output =
        Command::new("pkg-config").args(["--cflags", "--libs", "libuv"]).stderr(Stdio::null()).output().ok()?;
    let options = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| options.split_whitespace().map(str::to_owned).collect())
}

/// Installs the library into a temporary directory and compiles the programs in C against what pkg-config would say. None
/// without a C compiler.
fn programs() -> Option<&'static Programs> {
    static PROGRAMS: OnceLock<Option<Programs>> = OnceLock::new();
    let made = PROGRAMS.get_or_init(|| {
        Command::new("cc").arg("--version").stdout(Stdio::null()).status().ok()?;
        let directory = tempfile::tempdir().expect("a place for it");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Cargo puts the libraries of this very build beside the test.
        let test = std::env::current_exe().expect("this test");
        let built = test.parent().expect("a file's directory");
        let installed = Command::new(root.join("install")).arg(directory.path()).arg(built).status().expect("bash");
        assert!(installed.success(), "install failed");
        let page = std::fs::read_to_string(directory.path().join("lib/pkgconfig/meshpace.pc")).expect("installed");
        let prefix = page.lines().next().and_then(|line| line.strip_prefix("prefix=")).expect("its first line");
        let line = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name)).expect(name);
            line.replace("${libdir}", "${prefix}/lib")
                .replace("${includedir}", "${prefix}/include")
                .replace("${prefix}", prefix)
        };
        let compile_with = |source: &str, more: &[String]| {
            let source = root.join(source);
            let program = directory.path().join(source.file_stem().expect("a name"));
            let compiled = Command::new("cc")
                .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
                .arg(&program)
                .args(line("Cflags:").split_whitespace())
                .arg(&source)
                .args(line("Libs:").split_whitespace())
                .args(["-lpthread", &format!("-Wl,-rpath,{prefix}/lib")])
                .args(more)
                .status()
                .expect("cc runs");
            assert!(compiled.success(), "{} does not compile", source.display());
            program
        };
        let compile = |source: &str| compile_with(source, &[]);
        let [peer, poll, bind, fork, keys, manners, leave] =
            ["peer", "poll", "bind", "fork", "keys", "manners", "leave"]
                .map(|name| compile(&format!("tests/it/{name}.c")));
        let [echo_client, hub] = ["echo_client", "hub"].map(|name| compile(&format!("../../examples/{name}.c")));
        let uv = libuv().map(|options| compile_with("tests/it/uv.c", &options));
        Some(Programs { peer, poll, echo_client, bind, fork, keys, manners, leave, hub, uv, _directory: directory })
    });
    if made.is_none() {
        skipped(Class::Tools, "cc is not installed (apt-get install gcc)");
    }
    made.as_ref()
}

fn start(role: &str, address: SocketAddr, bytes: usize, own: u64, other: u64) -> Option<Child> {
    let numbers = [address.port() as u64, bytes as u64, own, other].map(|number| number.to_string());
    let child = Command::new(&programs()?.peer)
        .args([role, &address.ip().to_string()])
        .args(numbers)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was compiled");
    Some(child)
}

/// Our side of the exchange.
fn exchange(stream: TpaStream, bytes: usize, own: u64, other: u64) -> Stats {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut noise, mut chunk, mut left) = (Noise(own), vec![0; 8192], bytes);
            while left > 0 {
                noise.fill(&mut chunk);
                let part = left.min(chunk.len());
                (&stream).write_all(&chunk[..part]).unwrap();
                left -= part;
            }
        });
        let (mut noise, mut expected, mut got, mut left) = (Noise(other), vec![0; 8192], vec![0; 8192], bytes);
        while left > 0 {
            noise.fill(&mut expected);
            let part = left.min(got.len());
            (&stream).read_exact(&mut got[..part]).unwrap();
            assert!(got[..part] == expected[..part], "another byte than was sent, {left} before the end");
            left -= part;
        }
    });
    let stats = stream.stats();
    stream.close().unwrap();
    stats
}

fn finish(mut child: Child) {
    let mut said = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success() && said.ends_with("done\n"), "the C program said {said:?}");
}

fn megabytes(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number")) * 1_000_000
}

#[test]
fn c_connects_to_rust() {
    let listener = TpaPort::bind("127.0.0.1:0").unwrap().listen(1).unwrap();
    let bytes = megabytes("MESHPACE_EXCHANGE_MB", 20);
    let Some(child) = start("connect", listener.local_addr().unwrap(), bytes, 11, 12) else { return };
    exchange(listener.accept().unwrap().0, bytes, 12, 11);
    finish(child);
}

/// Both ways at once over a link that loses 2 %, reorders 2 % and delays by 10 ms; how long, and what the Rust end counted.
fn over_a_bad_link(mut options: Options, bytes: usize) -> Option<()> {
    let free = SocketAddr::from(([127, 0, 0, 1], spare_port()));
    let mut child = start("listen", free, bytes, 21, 22)?;
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut said).unwrap();
    assert_eq!(said, "listening\n");
    let bad = |seed| Impairment {
        delay: Duration::from_millis(10),
        loss: Loss::Random(0.02),
        reorder: 0.02,
        seed,
        ..Impairment::default()
    };
    let relay = Relay::new(free, bad(1), bad(2), false).unwrap();
    // The default waits three seconds for the handshake's packets, and they may be lost too.
    options.transport.rto.initial = Duration::from_millis(500);
    let stream = TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(relay.address()).unwrap();
    let began = Clock.now();
    let stats = exchange(stream, bytes, 22, 21);
    let took = Clock.now().since(began).as_secs_f64();
    finish(child);
    eprintln!(
        "{:.1} MB each way in {took:.1} s; {} segments sent, {} of them again, {} timeouts; {} came twice",
        bytes as f64 * 1e-6,
        stats.segments_sent,
        stats.retransmissions,
        stats.timeouts,
        stats.duplicate_segments_received
    );
    assert!(stats.retransmissions > 0, "nothing was lost");
    Some(())
}

#[test]
fn rust_connects_to_c_over_a_bad_link() {
    let _ = over_a_bad_link(Options::named("tpa-3").unwrap(), 500_000);
}

/// The window that the header allows and segments as long as jumbo frames: the C program takes both from who opens.
#[test]
fn a_wide_window_over_a_bad_link() {
    let mut options = Options::default();
    options.transport.congestion.window = 12;
    options.transport.segment = 8960;
    let _ = over_a_bad_link(options, megabytes("MESHPACE_LOSSY_MB", 10));
}

#[test]
fn options_halves_and_descriptors_to_poll() {
    let Some(programs) = programs() else { return };
    let free = spare_port();
    let output = Command::new(&programs.poll).arg(free.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"done\n", "{said}");
}

#[test]
fn a_server_and_twenty_clients_share_a_loop_of_libuv() {
    let Some(programs) = programs() else { return };
    let Some(uv) = &programs.uv else {
        // Only `./check slow` installs libuv.
        if is_slow_run("a server and twenty clients on a loop of libuv, which is not installed for C here") {
            skipped(Class::Tools, "libuv is not installed for C (apt-get install libuv1-dev pkg-config)");
        }
        return;
    };
    let output = Command::new(uv).args([&spare_port().to_string(), "20", "100000"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"done\n", "{said}");
}

#[test]
fn signals_sends_names_and_sentences_are_as_with_kernel_sockets() {
    let Some(programs) = programs() else { return };
    let arguments = [&spare_port().to_string(), env!("CARGO_PKG_VERSION")];
    let output = Command::new(&programs.manners).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"done\n", "{said}");
}

/// A program that connects, sends and ends at once, and its connection here.
fn leaving(listener: &TpaListener, bytes: usize, linger: u32) -> Option<(Child, TpaStream)> {
    let port = listener.local_addr().unwrap().port();
    let arguments = [port.to_string(), bytes.to_string(), linger.to_string()];
    let mut command = Command::new(&programs()?.leave);
    let child = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Some((child, listener.accept().unwrap().0))
}

#[test]
fn what_a_program_that_ends_has_sent_arrives() {
    let listener = TpaPort::bind("127.0.0.1:0").unwrap().listen(4).unwrap();
    let mut took = Vec::new();
    for _ in 0..3 {
        let Some((child, mut stream)) = leaving(&listener, 200_000, 30) else { return };
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (got.len(), output.stdout.as_slice(), output.stderr.as_slice()),
            (200_000, &b"200000\n"[..], &b""[..])
        );
        // The program has ended: closing here is no error, and waits for no answer that cannot come.
        let began = Clock.now();
        stream.close().unwrap();
        took.push(Clock.now().since(began).as_secs_f64());
    }
    // Without a word of the kernel about the port it would be two seconds. A busy machine adds to some.
    assert!(took.iter().any(|seconds| *seconds < 1.0), "{took:?}");
}

#[test]
fn what_nobody_reads_holds_a_program_for_its_linger_time_and_is_told() {
    let listener = TpaPort::bind("127.0.0.1:0").unwrap().listen(4).unwrap();
    let Some((child, stream)) = leaving(&listener, 3_000_000, 1) else { return };
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && output.stdout != b"-1\n");
    assert!(said.starts_with("meshpace: the process ends, and of ") && said.ends_with("within 1 s\n"), "{said:?}");
    assert_eq!(said.lines().count(), 1);
    stream.abort();
}

#[test]
fn a_listener_decides_by_keys_that_can_change() {
    let Some(programs) = programs() else { return };
    let output = Command::new(&programs.keys).arg(spare_port().to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout == b"done\n", "{said}");
}

/// What a hub at `to` answers to the holder of a private key.
fn ask(to: SocketAddr, own: [u8; 32], hub: [u8; 32], request: &str) -> String {
    let options = Options { security: Security::Keys { own, peers: vec![hub] }, ..Options::default() };
    let stream = match TpaPort::with_options("127.0.0.1:0", options).unwrap().connect(to) {
        Ok(stream) => stream,
        Err(error) => return error.to_string(),
    };
    (&stream).write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    answer
}

#[test]
fn the_hub_in_c_gives_each_peer_its_rights() {
    let Some(programs) = programs() else { return };
    let [hub, writer, reader, stranger] = [(); 4].map(|()| keys::generate().unwrap());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "{}", keys::write(&hub.0)).unwrap();
    let to = SocketAddr::from(([127, 0, 0, 1], spare_port()));
    let mut child = Command::new(&programs.hub)
        .arg(to.port().to_string())
        .arg(file.path())
        .args([writer.1, reader.1].map(|key| keys::write(&key)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut said).unwrap();
    assert_eq!(said, "listening\n");
    let asked = [(writer, "put closed"), (reader, "get"), (reader, "put open"), (writer, "get"), (stranger, "get")]
        .map(|(pair, request)| ask(to, pair.0, hub.1, request));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(asked[..4], ["done\n", "closed\n", "denied\n", "closed\n"]);
    assert!(asked[4].contains("does not admit this end's key"), "{}", asked[4]);
}

/// The first of two neighbouring ports that are free.
fn two_free_ports() -> u16 {
    let mut one = spare_port();
    loop {
        let other = spare_port();
        if other == one + 1 {
            return one;
        }
        one = other;
    }
}

#[test]
fn a_child_after_fork_has_sockets_of_its_own_alone() {
    let Some(programs) = programs() else { return };
    let output = Command::new(&programs.fork).args([&two_free_ports().to_string(), "100"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.ends_with(b"done\n"), "{:?}: {said}", output.status);
}

#[test]
fn sockets_come_and_go_under_valgrind() {
    let Some(programs) = programs() else { return };
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skipped(Class::Tools, "valgrind is not installed (apt-get install valgrind)");
    }
    // What is lost for good is a leak; what the thread of the connections still has is not.
    let options = ["--quiet", "--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite"];
    let output = Command::new("valgrind")
        .args(options)
        .arg("--errors-for-leak-kinds=definite")
        .arg(&programs.bind)
        .output()
        .expect("it is there");
    let said = String::from_utf8_lossy(&output.stderr);
    let faults = ["Invalid read", "Invalid write", "uninitialised", "definitely lost", "Process terminating"];
    assert!(faults.iter().all(|fault| !said.contains(fault)), "{said}");
    // Releases before epoll_pwait2 was added do not let the thread of the connections wait, of which the program is told.
    let lacks_call = said.contains("unhandled amd64-linux syscall: 441");
    assert!(lacks_call || (output.status.success() && output.stdout == b"done\n"), "{:?}: {said}", output.status);
}

#[test]
fn the_example_in_c_gets_back_what_it_said() {
    let Some(programs) = programs() else { return };
    let listener = TpaPort::bind("127.0.0.1:0").unwrap().listen(1).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let text = "over the hills and far away ".repeat(1000);
    let client = Command::new(&programs.echo_client).args(["127.0.0.1", &port, &text]).stdout(Stdio::piped()).spawn();
    let stream = listener.accept().unwrap().0;
    // As examples/echo.rs does.
    std::io::copy(&mut &stream, &mut &stream).unwrap();
    stream.close().unwrap();
    let output = client.unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), text + "\n");
}
