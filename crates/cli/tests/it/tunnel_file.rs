//! `meshpace tunnel run`: ends that are configured in a file, which is read again at SIGHUP, and
//! the metrics of a process.

use super::tunnel::{End, PATIENCE, word_after};
use meshpace_testing::ports::spare_port;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// Starts a server that echoes what it receives.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
        }
    });
    address
}

fn open(at: &str) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// True if the data is echoed.
fn echoes(stream: &mut TcpStream, what: &[u8]) -> bool {
    let mut heard = vec![0; what.len()];
    stream.write_all(what).and_then(|()| stream.read_exact(&mut heard)).is_ok() && heard == what
}

fn hangup(end: &End) {
    let pid = nix::unistd::Pid::from_raw(end.child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
}

/// Returns the value of a series in the metrics.
fn metric(socket: &Path, series: &str) -> f64 {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
}

#[test]
fn a_file_that_is_read_again_disturbs_nothing_that_stayed_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("secret"), "5f".repeat(32)).unwrap();
    let port = spare_port();
    let target = echo();
    let (file, metrics) = (at("tunnel.toml"), at("metrics"));
    let ends = |names: &[&str]| {
        let head = format!(
            "metrics = {metrics:?}\n[[listen]]\nname = \"far\"\naddress = \"127.0.0.1\"\nport = {port}\nsecret = \"secret\"\n"
        );
        let connect = |name: &&str| {
            format!(
                "[[connect]]\nname = \"{name}\"\nhost = \"127.0.0.1\"\nport = {port}\nsecret = \"secret\"\nforward = \"0:{target}\"\n"
            )
        };
        head + &names.iter().map(connect).collect::<String>()
    };
    std::fs::write(&file, ends(&["one", "two"])).unwrap();
    let process = End::start(&["run", file.to_str().unwrap()]);
    process.says("far: listening");
    let one = word_after(&process.says("one: 127.0.0.1"), "one: ");
    let two = word_after(&process.says("two: 127.0.0.1"), "two: ");
    let (mut first, mut second) = (open(&one), open(&two));
    assert!(echoes(&mut first, b"hello") && echoes(&mut second, b"hello"));
    // The file has one more end, and one fewer.
    std::fs::write(&file, ends(&["one", "three"])).unwrap();
    hangup(&process);
    let three = word_after(&process.says("three: 127.0.0.1"), "three: ");
    process.says("read again: 2 ends continue, 1 ended, 1 started");
    assert!(echoes(&mut first, b"undisturbed"));
    let mut third = open(&three);
    assert!(echoes(&mut third, b"hello"));
    // The connection of a removed end is reset, not closed, and its port is free.
    assert_eq!(second.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    drop(TcpListener::bind(&two).unwrap());
    // A file with a mistake changes nothing. The message names the place of the mistake.
    std::fs::write(&file, ends(&["one"]) + "chanel_rate = \"2 Mbit/s\"\n").unwrap();
    hangup(&process);
    process.says("tunnel.toml:13: connect.0.chanel_rate: no such key: did you mean channel_rate?");
    process.says("not used; the previous configuration continues");
    assert!(echoes(&mut first, b"still") && echoes(&mut third, b"still"));
    // The end takes connections at one more port. Its other ports are not disturbed.
    std::fs::write(&file, ends(&["one", "three"]).replace("forward = \"0:", "socks = \"0\"\nforward = \"0:")).unwrap();
    hangup(&process);
    process.says("one: 127.0.0.1");
    process.says("read again: 3 ends continue, 0 ended, 0 started");
    assert!(echoes(&mut first, b"and on") && echoes(&mut third, b"and on"));
    for (series, value) in [
        ("up{tunnel=\"one\",role=\"connect\"}", 1.0),
        ("streams{tunnel=\"one\",role=\"connect\"}", 1.0),
        ("sent_bytes_total{tunnel=\"one\",role=\"connect\"}", 5.0 + 11.0 + 5.0 + 6.0),
        ("streams{tunnel=\"far\",role=\"listen\"}", 2.0),
        ("streams_aborted_total{tunnel=\"far\",role=\"listen\"}", 1.0),
        ("reloads_total{result=\"taken\"}", 2.0),
        ("reloads_total{result=\"refused\"}", 1.0),
    ] {
        assert_eq!(metric(&metrics, &format!("meshpace_tunnel_{series}")), value, "{series}");
    }
}

/// Starts a server that sends every datagram back.
fn parrot() -> SocketAddr {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&buffer[..length], from);
        }
    });
    address
}

/// True if a datagram is sent back.
fn returns(client: &UdpSocket, at: &str, what: &[u8]) -> bool {
    let mut heard = [0; 2048];
    client.send_to(what, at).unwrap();
    let (length, from) = client.recv_from(&mut heard).unwrap();
    &heard[..length] == what && from == at.parse().unwrap()
}

/// Waits until a port is free. A session may still be delivering its last data.
#[expect(clippy::disallowed_methods, reason = "waiting for another process")]
fn wait_until_free(port: &str) {
    let start = std::time::Instant::now();
    while let Err(error) = UdpSocket::bind(port) {
        assert!(start.elapsed() < PATIENCE, "{port}: {error}");
        std::thread::yield_now();
    }
}

#[test]
fn ports_of_datagrams_in_a_file_begin_and_end_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("secret"), "5f".repeat(32)).unwrap();
    let port = spare_port();
    let targets = [parrot(), parrot()];
    let (file, metrics) = (at("tunnel.toml"), at("metrics"));
    let write = |allow: &[SocketAddr], datagrams: &[SocketAddr]| {
        let list = |before: &str, of: &[SocketAddr]| {
            of.iter().map(|target| format!("\"{before}{target}\"")).collect::<Vec<_>>().join(", ")
        };
        let (allow, datagrams) = (list("udp:", allow), list("0:", datagrams));
        let common = format!("port = {port}\nsecret = \"secret\"");
        let text = format!(
            "metrics = {metrics:?}\n[[listen]]\nname = \"far\"\naddress = \"127.0.0.1\"\n{common}\nallow = [{allow}]\n\
             [[connect]]\nname = \"near\"\nhost = \"127.0.0.1\"\n{common}\ndatagrams = [{datagrams}]\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    let flows = |of: &str| metric(&metrics, &format!("meshpace_tunnel_flows{{{of}}}"));
    let (near, far) = ("tunnel=\"near\",role=\"connect\"", "tunnel=\"far\",role=\"listen\"");
    let client = || {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    };
    write(&targets, &targets[..1]);
    let process = End::start(&["run", file.to_str().unwrap()]);
    let first = word_after(&process.says(" carries datagrams to "), "near: ");
    let undisturbed = client();
    assert!(returns(&undisturbed, &first, b"hello"));
    // The file has one more port, and a flow uses it.
    write(&targets, &targets);
    hangup(&process);
    let second = word_after(&process.says(" carries datagrams to "), "near: ");
    process.says("read again: 2 ends continue, 0 ended, 0 started");
    assert!(returns(&client(), &second, b"a second"));
    assert!(returns(&undisturbed, &first, b"on"));
    assert_eq!((flows(near), flows(far)), (2.0, 2.0));
    // One port is removed: it is free, and its flow ends at both ends. The other flow continues,
    // also if its port is no longer allowed.
    write(&targets[1..], &targets[..1]);
    hangup(&process);
    process.says(&format!("near: {second} accepts no more datagrams"));
    process.says("read again: 2 ends continue, 0 ended, 0 started");
    wait_until_free(&second);
    assert!(returns(&undisturbed, &first, b"and on"));
    assert_eq!((flows(near), flows(far)), (1.0, 1.0));
    for (series, of, value) in [
        ("datagrams_sent_total", near, 4.0),
        ("datagrams_received_total", near, 4.0),
        ("datagrams_dropped_total", near, 0.0),
        ("datagrams_sent_total", far, 4.0),
        ("datagrams_received_total", far, 4.0),
        ("sent_bytes_total", near, (5 + 8 + 2 + 6).into()),
        ("sessions_opened_total", near, 1.0),
    ] {
        assert_eq!(metric(&metrics, &format!("meshpace_tunnel_{series}{{{of}}}")), value, "{series} of {of}");
    }
    // The end with the port is removed from the file. Its port is free, and its flow has ended.
    std::fs::write(&file, std::fs::read_to_string(&file).unwrap().split("[[connect]]").next().unwrap()).unwrap();
    hangup(&process);
    process.says("read again: 1 ends continue, 1 ended, 0 started");
    wait_until_free(&first);
    #[expect(clippy::disallowed_methods, reason = "waiting for another process")]
    let over = std::time::Instant::now();
    while flows(far) > 0.0 {
        assert!(over.elapsed() < PATIENCE, "the far end has the flow still");
        std::thread::yield_now();
    }
}

#[test]
fn a_file_is_checked_without_being_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tunnel.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let run = ["tunnel", "run", "--check", file.to_str().unwrap()];
        let output = Command::new(env!("CARGO_BIN_EXE_meshpace")).args(run).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(check("[[listen]]\nallow = \"any\"\n"), (Some(0), String::new()));
    for (text, what) in [
        ("[[listen]]\nallow = \"any\"\nport = \"x\"\n", &["listen.0.port", ":3:", "expected a whole number"][..]),
        ("[[listen]]\n", &["--allow is missing: without keys or a secret, anybody can use this end"]),
        ("[[listen]]\nsecret = \"nowhere\"\n", &["nowhere"]),
        ("[[connect]]\nhost = \"a\"\nsocks = \"1\"\ntransport = \"tpa3\"\n", &["did you mean tpa-3?"]),
    ] {
        let (code, said) = check(text);
        assert!(code == Some(2) && what.iter().all(|what| said.contains(what)), "{text}: {code:?} {said}");
    }
    let nowhere = ["tunnel", "run", "/nowhere/tunnel.toml"];
    let output = Command::new(env!("CARGO_BIN_EXE_meshpace")).args(nowhere).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
