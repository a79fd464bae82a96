//! `meshpace tunnel` as a reader of docs/tunnel.md uses it: keys in files, two processes, and an
//! ordinary program.

use meshpace_live::testbed::{Impairment, Namespace, Relay};
use meshpace_testing::ports::spare_port;
use meshpace_testing::{Class, has, skipped};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Time limit of everything that has to happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// End of a tunnel: a process, and the lines that it prints.
pub(super) struct End {
    pub(super) child: Child,
    pub(super) results: Receiver<String>,
    pub(super) complaints: Receiver<String>,
}

/// Returns the lines of `from` as they arrive.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl End {
    pub(super) fn start(arguments: &[&str]) -> End {
        let mut command = Command::new(env!("CARGO_BIN_EXE_meshpace"));
        command.arg("tunnel").args(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let results = lines(child.stdout.take().unwrap());
        let complaints = lines(child.stderr.take().unwrap());
        End { child, results, complaints }
    }

    /// Waits for a line on standard error that contains `what`.
    pub(super) fn says(&self, what: &str) -> String {
        loop {
            let line = self.complaints.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nobody says {what:?}"));
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Waits for a live line for which `is_wanted` is true.
    pub(super) fn reports(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.results.recv_timeout(PATIENCE).expect("a live line every second");
            let object = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if is_wanted(&object) {
                return object;
            }
        }
    }

    /// Interrupts the process as Ctrl-C does, and waits for its end.
    fn interrupt(mut self) -> ExitStatus {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes the private and the public key of `name` into separate files.
fn keys(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (private, public) = (directory.join(format!("{name}.key")), directory.join(format!("{name}.pub")));
    let output =
        Command::new(env!("CARGO_BIN_EXE_meshpace")).args(["tunnel", "keygen"]).arg(&private).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::write(&public, output.stdout).unwrap();
    (private, public)
}

/// Returns the content of a file in which all parts are different.
fn content(length: u32) -> Vec<u8> {
    (0..length / 4).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect()
}

/// Starts an HTTP/1.0 server that has one file.
fn web(file: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = BufReader::new(stream.try_clone().unwrap()).lines();
            while request.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
            let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", file.len());
            let _ = stream.write_all(&file).and_then(|()| stream.shutdown(Shutdown::Write));
        }
    });
    address
}

/// Fetches the file at `at` with curl, or with nc if curl is missing. Returns `None`, with a
/// message, if both are missing.
fn fetch(at: &str) -> Option<(bool, Vec<u8>)> {
    let curl = Command::new("curl").args(["-sS", "--max-time", "60", &format!("http://{at}/file")]).output();
    if let Ok(output) = curl {
        return Some((output.status.success(), output.stdout));
    }
    let (host, port) = at.rsplit_once(':').unwrap();
    let nc = Command::new("nc").args(["-w", "60", host, port]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut nc) = nc else {
        skipped(Class::Tools, "neither curl nor nc is installed (apt-get install curl)");
        return None;
    };
    nc.stdin.as_mut().unwrap().write_all(b"GET /file HTTP/1.0\r\n\r\n").unwrap();
    let output = nc.wait_with_output().unwrap();
    let head = output.stdout.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
    Some((head > 0, output.stdout[head..].to_vec()))
}

/// Returns the text that follows `before` in a line, up to the next blank.
pub(super) fn word_after(line: &str, before: &str) -> String {
    let rest = line.split_once(before).unwrap_or_else(|| panic!("no {before:?} in {line:?}")).1;
    rest.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn two_processes_with_keys_in_files_carry_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let [near, far, stranger] = ["near", "far", "stranger"].map(|name| keys(directory.path(), name));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (far_key, near_pub) = (path(&far.0), path(&near.1));
    let listen = ["listen", "--address", "127.0.0.1", "--port", "0", "--key", &far_key, "--peers", &near_pub, "--json"];
    let listen = End::start(&listen);
    let address: SocketAddr = word_after(&listen.says("listening"), "UDP ").parse().unwrap();
    let file = content(500_000);
    let (port, forward) = (address.port().to_string(), format!("0:{}", web(file.clone())));
    let connect = |key: &Path| {
        let (key, peers) = (path(key), path(&far.1));
        End::start(&[
            "connect",
            "127.0.0.1",
            "--port",
            &port,
            "-L",
            &forward,
            "--key",
            &key,
            "--peers",
            &peers,
            "--json",
        ])
    };
    let connect_known = connect(&near.0);
    let at = word_after(&connect_known.says(" goes to "), "meshpace: ");
    let Some((whole, got)) = fetch(&at) else { return };
    assert!(whole && got == file, "{} of {} bytes", got.len(), file.len());
    // The live lines of both ends agree with each other, and with the data that was carried.
    let over = |object: &Value| object["opened"] == 1 && object["streams"] == 0;
    let (here, there) = (connect_known.reports(over), listen.reports(over));
    for object in [&here, &there] {
        let of = |name: &str| object[name].as_u64().unwrap_or_else(|| panic!("{name} in {object}"));
        assert_eq!((of("refused"), of("aborted")), (0, 0), "{object}");
        assert!(of("segments_sent") > 0 && of("retransmissions") <= of("segments_sent"), "{object}");
        assert!(object["timeouts"].is_u64() && object.get("interval_s").is_some(), "{object}");
        assert_eq!(object["hops"], 1, "{object}");
    }
    assert!(here["received_bytes"].as_u64() > Some(file.len() as u64), "{here}");
    assert_eq!(here["received_bytes"], there["sent_bytes"]);
    assert_eq!(here["sent_bytes"], there["received_bytes"]);
    // A peer with an unknown key gets no connection, and learns the reason.
    let unknown = connect(&stranger.0);
    let at = word_after(&unknown.says(" goes to "), "meshpace: ");
    let (whole, got) = fetch(&at).unwrap();
    assert!(!whole && got.is_empty());
    unknown.says("it does not admit this end's key");
    unknown.reports(|object| object["refused"] == 1);
    for end in [unknown, connect_known, listen] {
        assert_eq!(end.interrupt().code(), Some(130));
    }
}

/// Runs bulk traffic for about twelve seconds through a tunnel with these arguments, over a delay
/// of 200 ms in each direction. Returns the number of segments that the near end sends.
fn segments_in_a_while(arguments: &[&str]) -> u64 {
    let listen = End::start(&["listen", "--address", "127.0.0.1", "--port", "0", "--allow", "any"]);
    let far: SocketAddr = word_after(&listen.says("listening"), "UDP ").parse().unwrap();
    let slow = || Impairment { delay: meshpace_core::Duration::from_millis(200), ..Impairment::default() };
    let relay = Relay::new(far, slow(), slow(), false).unwrap();
    let (port, sink) = (relay.address().port().to_string(), TcpListener::bind("127.0.0.1:0").unwrap());
    let forward = format!("0:{}", sink.local_addr().unwrap());
    let common = ["connect", "127.0.0.1", "--port", &port, "-L", &forward, "--json"];
    let connect = End::start(&[&common, arguments].concat());
    let at = word_after(&connect.says(" goes to "), "meshpace: ");
    let mut stream = TcpStream::connect(at).unwrap();
    let mut taken = sink.accept().unwrap().0;
    let writing = std::thread::spawn(move || while stream.write_all(&[7; 16_384]).is_ok() {});
    let reading = std::thread::spawn(move || std::io::copy(&mut taken, &mut std::io::sink()));
    let segments = |object: &Value| object["segments_sent"].as_u64().unwrap();
    let counts: Vec<u64> = (0..12).map(|_| segments(&connect.reports(|object| object["streams"] == 1))).collect();
    drop((connect, listen));
    writing.join().unwrap();
    let _ = reading.join();
    counts[11] - counts[0]
}

#[test]
fn the_window_grows_unless_an_option_says_how_many_segments() {
    // The measurements run at the same time, so that the load of the machine is the same for all.
    let tpa = ["--transport", "tpa-3"];
    let ways = [&["--window", "auto"][..], &["--window", "3"], &[]].map(|window| [&tpa, window].concat());
    let sent = std::thread::scope(|scope| {
        ways.clone()
            .map(|arguments| scope.spawn(move || segments_in_a_while(&arguments)))
            .map(|one| one.join().unwrap())
    });
    // A growing window carries a block of 12 in one round trip instead of four.
    let [growing, three, named] = sent;
    assert!(growing > 2 * three.max(named), "{ways:?}: {sent:?}");
}

#[test]
fn a_session_of_quiet_trains_carries_a_file_and_outlives_its_far_end() {
    let directory = tempfile::tempdir().unwrap();
    let [near, far] = ["near", "far"].map(|name| keys(directory.path(), name));
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let (far_key, near_pub, near_key, far_pub) = (path(&far.0), path(&near.1), path(&near.0), path(&far.1));
    let listen = |port: &str| {
        let keys = ["--key", &far_key, "--peers", &near_pub, "--json"];
        End::start(&[&["listen", "--address", "127.0.0.1", "--port", port], &keys[..]].concat())
    };
    let mut listening = listen("0");
    let address: SocketAddr = word_after(&listening.says("listening"), "UDP ").parse().unwrap();
    let file = content(300_000);
    let port = address.port().to_string();
    // The program waits until the far end sends something.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let forwards = [web(file.clone()), silent.local_addr().unwrap()].map(|to| format!("0:{to}"));
    let rest = [
        "--key",
        &near_key,
        "--peers",
        &far_pub,
        "--json",
        "--transport",
        "quiet-train",
        "--channel-rate",
        "54 Mbit/s",
    ];
    let connect = ["connect", "127.0.0.1", "--port", &port, "-L", &forwards[0], "-L", &forwards[1]];
    let connect = End::start(&[&connect[..], &rest].concat());
    connect.says("transport quiet-train");
    let [at, silently] = [(); 2].map(|()| word_after(&connect.says(" goes to "), "meshpace: "));
    let Some((whole, got)) = fetch(&at) else { return };
    assert!(whole && got == file, "{} of {} bytes", got.len(), file.len());
    let over = |object: &Value| object["opened"] == 1 && object["streams"] == 0;
    let (here, there) = (connect.reports(over), listening.reports(over));
    for object in [&here, &there] {
        assert_eq!(
            (&object["transport"], &object["aborted"], &object["hops"]),
            (&"quiet-train".into(), &0.into(), &1.into())
        );
        assert!(object["segments_sent"].as_u64() > Some(0) && object["interval_s"].is_f64(), "{object}");
    }
    assert_eq!(here["received_bytes"], there["sent_bytes"]);
    // The far end is killed. Open streams are aborted, counted and reported.
    let mut waiting = TcpStream::connect(silently).unwrap();
    waiting.set_read_timeout(Some(PATIENCE)).unwrap();
    let _taken = silent.accept().unwrap();
    connect.reports(|object| object["streams"] == 1);
    listening.child.kill().unwrap();
    listening.child.wait().unwrap();
    // The kernel of the far end answers data that is sent to the closed port. An end that sends no
    // data sends a keep-alive every 15 s.
    waiting.write_all(b"anybody?").unwrap();
    assert_eq!(waiting.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    connect.says("is over");
    connect.reports(|object| object["aborted"] == 1 && object["streams"] == 0);
    // The far end is started again. The next connection gets a new session.
    let listening = listen(&port);
    listening.says("listening");
    let (whole, got) = fetch(&at).unwrap();
    assert!(whole && got == file, "{} of {} bytes", got.len(), file.len());
    let again = connect.reports(|object| object["opened"] == 3 && object["streams"] == 0);
    assert_eq!((&again["refused"], &again["aborted"]), (&0.into(), &1.into()));
    assert_eq!(connect.interrupt().code(), Some(130));
}

#[test]
fn without_802_11_on_the_way_it_is_bbr_and_that_is_told() {
    let listen = End::start(&["listen", "--address", "127.0.0.1", "--port", "0", "--allow", "any", "--json"]);
    let far: SocketAddr = word_after(&listen.says("listening"), "UDP ").parse().unwrap();
    let port = far.port().to_string();
    let connect = End::start(&["connect", "127.0.0.1", "--port", &port, "-L", "0:127.0.0.1:9", "--json"]);
    let told = connect.says("transport bbr, because packets to 127.0.0.1 do not leave through 802.11");
    assert!(told.contains("use the transport quiet-train+contending"), "{told}");
    assert_eq!(connect.reports(|_| true)["transport"], "bbr");
    assert_eq!(listen.reports(|_| true)["transport"], Value::Null, "nobody has connected yet");
}

#[test]
fn nobody_at_the_far_end_is_told_with_the_first_connection() {
    let free = spare_port().to_string();
    let connect = End::start(&["connect", "127.0.0.1", "--port", &free, "-L", "0:127.0.0.1:9"]);
    let at = word_after(&connect.says(" goes to "), "meshpace: ");
    let mut stream = TcpStream::connect(at).unwrap();
    assert!(stream.read(&mut [0]).is_err(), "a reset and no end");
    connect.says(&format!("nobody listens on UDP port 127.0.0.1:{free}"));
}

#[test]
fn what_a_transparent_end_changes_is_cleaned_up_after_kill_minus_nine() {
    if !has("nft", "nftables") {
        return;
    }
    let network = match Namespace::new() {
        Ok(network) => network,
        Err(error) => {
            skipped(Class::Rights, format_args!("no network namespace here ({error}); needs root"));
            return;
        }
    };
    network.run(|| {
        let rules = || Command::new("ip").args(["rule", "show"]).output().unwrap().stdout;
        let tables = || meshpace_live::tcp::filter::tables().unwrap().len();
        let before = rules();
        let mut connect = End::start(&["connect", "127.0.0.1", "--transparent", "10.200.0.0/24"]);
        // The first line says what carries the streams, and why.
        let carried = connect.complaints.recv_timeout(PATIENCE).expect("a word");
        assert!(carried.contains("transport "), "{carried}");
        let line = connect.complaints.recv_timeout(PATIENCE).expect("another");
        if !line.contains("connections to 10.200.0.0/24 are carried to") {
            skipped(Class::Rights, format_args!("no transparent sockets here ({line})"));
            return;
        }
        connect.child.kill().unwrap();
        connect.child.wait().unwrap();
        assert_eq!(tables(), 1, "a killed process cannot clean up");
        assert_ne!(rules(), before);
        let output = Command::new(env!("CARGO_BIN_EXE_meshpace")).args(["doctor", "--clean"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!((tables(), rules()), (0, before));
    });
}

#[test]
fn datagrams_go_to_their_target_and_back_and_both_ends_count_them() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&buffer[..length], from);
        }
    });
    let allowed = format!("udp:{target}");
    let listen =
        End::start(&["listen", "--address", "127.0.0.1", "--port", "0", "--plain", "--allow", &allowed, "--json"]);
    let address: SocketAddr = word_after(&listen.says("listening"), "UDP ").parse().unwrap();
    // Datagrams work with every transport of the streams.
    for transport in ["quiet-train", "bbr", "tpa-3"] {
        let (port, forward) = (address.port().to_string(), format!("0:{target},latest"));
        let arguments = ["connect", "127.0.0.1", "--port", &port, "-U", &forward, "--plain", "--json"];
        let connect = End::start(&[&arguments[..], &["--transport", transport]].concat());
        let at: SocketAddr = word_after(&connect.says(" carries datagrams to "), "meshpace: ").parse().unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut got = [0; 2048];
        for length in [1, 1000] {
            client.send_to(&content(1000)[..length], at).unwrap();
            let (came, from) = client.recv_from(&mut got).unwrap();
            assert_eq!((&got[..came], from), (&content(1000)[..length], at));
        }
        let here = connect.reports(|object| object["datagrams_received"] == 2);
        assert_eq!(
            (&here["flows"], &here["datagrams_sent"], &here["datagrams_dropped"]),
            (&1.into(), &2.into(), &0.into())
        );
        assert_eq!((&here["sent_bytes"], &here["streams"]), (&1001.into(), &0.into()));
        listen.reports(|object| object["datagrams_sent"].as_u64() >= Some(2) && object["flows"] == 1);
        assert_eq!(connect.interrupt().code(), Some(130));
        listen.reports(|object| object["flows"] == 0);
    }
}

#[test]
fn datagrams_go_again_once_the_far_end_has_begun_anew() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "5f".repeat(32)).unwrap();
    let secret = secret.to_str().unwrap();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&buffer[..length], from);
        }
    });
    let listen = |port: &str| End::start(&["listen", "--address", "127.0.0.1", "--port", port, "--secret", secret]);
    let mut listening = listen("0");
    let address: SocketAddr = word_after(&listening.says("listening"), "UDP ").parse().unwrap();
    let (port, forward) = (address.port().to_string(), format!("0:{target},reliable"));
    let connect = End::start(&["connect", "127.0.0.1", "--port", &port, "-U", &forward, "--secret", secret, "--json"]);
    let at: SocketAddr = word_after(&connect.says(" carries datagrams to "), "meshpace: ").parse().unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(at).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    // The program repeats its datagram until it is answered, as programs over UDP do.
    let answered = |what: u8| {
        let mut heard = [0];
        (0..600).any(|_| {
            client.send(&[what]).unwrap();
            std::iter::from_fn(|| client.recv(&mut heard).ok().map(|_| heard[0])).any(|heard| heard == what)
        })
    };
    assert!(answered(1));
    connect.says("meshpace: session with");
    listening.child.kill().unwrap();
    listening.child.wait().unwrap();
    let listening = listen(&port);
    listening.says("listening");
    assert!(answered(2));
    // The program did not have to wait until the former session was declared dead.
    let next = connect.says("session with");
    assert!(next.starts_with("meshpace: session with"), "{next}");
    let again = connect.reports(|object| object["datagrams_received"].as_u64() >= Some(2));
    assert_eq!(again["flows"], 1, "the old one is over: {again}");
}

#[test]
fn wrong_command_lines_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (private, public) = keys(directory.path(), "own");
    let (private, public) = (private.to_str().unwrap(), public.to_str().unwrap());
    let both = directory.path().join("both");
    std::fs::write(&both, std::fs::read_to_string(public).unwrap().repeat(2)).unwrap();
    let both = both.to_str().unwrap();
    let refused = |arguments: &[&str], what: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_meshpace")).arg("tunnel").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(what), "{arguments:?}: {said}");
        assert!(!said.contains("trying again"), "it is over: {arguments:?}: {said}");
    };
    let forward = ["-L", "0:host:80"];
    let connect = |more: &[&'static str]| [&["connect", "127.0.0.1"][..], more].concat();
    refused(&["listen"], "--allow");
    for wrong in ["nonsense", "host", "host:http", "udp:host", ":80", "host:99999"] {
        refused(&["listen", "--port", "0", "--allow", wrong], &format!("--allow {wrong}: expected HOST:PORT"));
    }
    refused(&["connect", "127.0.0.1:7800", "-L", "0:host:80"], "127.0.0.1:7800: expected only the host");
    refused(&["listen", "--key", private], "--peers");
    refused(&["listen", "--transport", "tcp-ap"], "not for tunnels. A tunnel takes one of ");
    refused(&["listen", "--transport", "quiet-train+marks"], "not for tunnels. A tunnel takes one of ");
    refused(&["listen", "--transport", "quiet-trains"], "did you mean quiet-train? A tunnel takes");
    refused(&["listen", "--transport", "tpa3"], "did you mean tpa-3? A tunnel takes");
    refused(&["listen", "--transport", "kernel"], "--transport kernel: there is no such transport. A tunnel takes");
    refused(&["listen", "--secret", "/nowhere/secret"], "/nowhere/secret");
    refused(&connect(&[]), "-L");
    refused(&["listen", "--window", "0"], "expected auto, or 1 to 12 segments");
    refused(&["listen", "--window", "13"], "expected auto, or 1 to 12 segments");
    refused(&[&connect(&forward)[..], &["--window", "wide"]].concat(), "expected auto, or 1 to 12 segments");
    refused(&connect(&["-D", "x"]), "expected [ADDRESS:]PORT");
    refused(&connect(&["--transparent", "10.0.0.7/24"]), "has bits beyond the first 24");
    refused(&connect(&["-L", "80:host"]), "expected [ADDRESS:]PORT:HOST:PORT");
    refused(&connect(&["-U", "53:host"]), "expected [ADDRESS:]PORT:HOST:PORT[,CLASS]");
    refused(&connect(&["-U", "53:host:53,fast"]), "datagrams are reliable, latest or expires=SECONDS");
    refused(&[&connect(&forward)[..], &["--key", private, "--peers", both]].concat(), "exactly one");
    refused(&[&connect(&forward)[..], &["--secret", public, "--plain"]].concat(), "--plain");
    // An existing key is not overwritten.
    let output = Command::new(env!("CARGO_BIN_EXE_meshpace")).args(["tunnel", "keygen", private]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(private) && said.contains("give the name of a new file"), "{said}");
}

#[test]
fn what_is_left_open_to_others_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "5f".repeat(32)).unwrap();
    let begin = |mode: u32, socks: &str| {
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
        let file = secret.to_str().unwrap();
        let end =
            End::start(&["connect", "127.0.0.1", "--port", "9", "-D", socks, "--secret", file, "--seconds", "0.5"]);
        let mut said = String::new();
        while let Ok(line) = end.complaints.recv_timeout(PATIENCE) {
            said += &line;
        }
        said
    };
    let said = begin(0o640, "0.0.0.0:0");
    assert!(said.contains("can read this secret (mode 640); run chmod 600"), "{said}");
    assert!(said.contains("anybody who reaches this address can use the tunnel"), "{said}");
    let said = begin(0o600, "127.0.0.1:0");
    assert!(!said.contains("chmod") && !said.contains("anybody who reaches"), "{said}");
}
