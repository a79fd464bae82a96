//! `send`, `recv` and `doctor` as people use them: records, errors, and clean-up.

use meshpace_live::testbed::Namespace;
use meshpace_testing::ports::spare_port;
use meshpace_testing::{Class, has, skipped};
use serde_json::Value;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn meshpace(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshpace"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Process that is killed when its owner is dropped.
struct Running(Option<Child>);

impl Running {
    fn start(mut command: Command) -> Running {
        Running(Some(command.spawn().unwrap()))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Polls a condition until it is true, for at most a minute.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "other processes take their time")]
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} does not come about");
}

/// Creates a network namespace with an address for raw sockets. Returns `None`, with a message, if
/// the rights are missing.
fn network() -> Option<Namespace> {
    let network = match Namespace::new() {
        Ok(network) => network,
        Err(error) => {
            skipped(Class::Rights, format_args!("no network namespace here ({error}); needs root"));
            return None;
        }
    };
    network.run(|| meshpace_live::tun::ip(&["address", "add", "10.9.9.1/32", "dev", "lo"]).unwrap());
    Some(network)
}

/// Like [`network`]; also returns `None` if nftables is not installed.
fn filtered_network() -> Option<Namespace> {
    if !has("nft", "nftables") {
        return None;
    }
    let network = network()?;
    match network.run(meshpace_live::tcp::filter::tables) {
        Ok(_) => Some(network),
        Err(error) => {
            skipped(Class::Rights, format_args!("no packet filter here ({error})"));
            None
        }
    }
}

#[test]
fn a_record_has_the_fields_of_the_simulators() {
    let port = spare_port().to_string();
    for transport in ["kernel", "tpa-2", "quiet-train"] {
        // Trains over UDP are tested, because they need no rights.
        let trains = ["--interface", "udp", "--path-rate", "54 Mbit/s"];
        let more = if transport == "quiet-train" { &trains[..] } else { &[] };
        let common = [&["--transport", transport, "--port", &port, "--format", "json"][..], more].concat();
        let recv = Running::start(meshpace(&[&["recv", "--count", "1"][..], &common].concat()));
        let arguments = [&["send", "127.0.0.1", "--bytes", "300k"][..], &common].concat();
        let mut sent = String::new();
        // The transfer is repeated until the receiver listens.
        eventually("a transfer", || {
            let output = meshpace(&arguments).output().unwrap();
            sent = text(&output.stdout);
            output.status.success()
        });
        let received = recv.output();
        assert!(received.status.success(), "{}", text(&received.stderr));
        let got: Value = serde_json::from_str(&text(&received.stdout)).unwrap();
        assert_eq!((&got["completed"], &got["error"]), (&Value::Bool(true), &Value::Null), "{got}");
        for line in [sent, text(&received.stdout)] {
            let record: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let fields = [
                "scenario",
                "seed",
                "point",
                "duration_s",
                "aggregate_goodput_bps",
                "jain",
                "jain_2s",
                "idle_windows",
                "retransmission_index",
                "frames",
                "flows",
            ];
            let of_flows = [
                "id",
                "from",
                "to",
                "hops",
                "transport",
                "goodput_bps",
                "delivered_bytes",
                "segments_sent",
                "retransmissions",
                "timeouts",
                "rtt_mean_s",
                "cov_rtt",
            ];
            assert!(fields.iter().all(|field| record.get(field).is_some()), "{line}");
            let flow = &record["flows"][0];
            assert!(of_flows.iter().all(|field| flow.get(field).is_some()), "{line}");
            assert_eq!(flow["delivered_bytes"], 300_000);
            let goodput = 300_000.0 * 8.0 / record["duration_s"].as_f64().unwrap();
            assert!((flow["goodput_bps"].as_f64().unwrap() / goodput - 1.0).abs() < 1e-9);
        }
    }
}

/// Opens a connection, sends `bytes`, and breaks the connection off. Returns `None` if nothing
/// listens.
fn break_off(transport: &str, port: u16, bytes: usize) -> Option<()> {
    use std::io::{Read, Write};
    if transport == "kernel" {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.write_all(&vec![7; bytes]).unwrap();
        // The peer never answers. The time-out gives it time to read the bytes.
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let _ = stream.read(&mut [0]);
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
        return Some(());
    }
    let mut stream = meshpace_live::tpa::TpaStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(&vec![7; bytes]).unwrap();
    eventually("an acknowledgement", || stream.unacknowledged() == 0);
    stream.abort();
    Some(())
}

#[test]
fn a_transfer_that_is_broken_off_is_reported_as_such() {
    for transport in ["kernel", "tpa-2"] {
        let port = spare_port();
        let number = port.to_string();
        let recv = ["recv", "--transport", transport, "--port", &number, "--count", "1", "--format", "json"];
        let recv = Running::start(meshpace(&recv));
        eventually("a connection", || break_off(transport, port, 20_000).is_some());
        let output = recv.output();
        let said = text(&output.stderr);
        let place = format!("listening on {} 0.0.0.0:{port}", if transport == "kernel" { "TCP" } else { "UDP" });
        assert!(said.contains(&place), "{transport}: {said}");
        assert_eq!(output.status.code(), Some(1), "{transport}: {said}");
        assert!(said.contains("1 of 1 transfers were aborted"), "{said}");
        let record: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
        assert_eq!(record["completed"], false, "{record}");
        assert!(record["error"].as_str().is_some_and(|error| error.contains("reset")), "{record}");
        assert_eq!(record["flows"][0]["delivered_bytes"], 20_000, "{record}");
    }
}

#[test]
fn wrong_command_lines_are_refused() {
    let refused = |arguments: &[&str], what: &str| {
        let output = meshpace(arguments).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(what), "{arguments:?}: {said}");
    };
    refused(&["send", "127.0.0.1"], "--bytes");
    refused(&["send", "127.0.0.1", "--bytes", "0"], "--bytes");
    refused(&["send", "127.0.0.1", "--bytes", "1", "--seconds", "1"], "--seconds");
    refused(&["send", "127.0.0.1", "--bytes", "1", "--transport", "tcp-xy"], "tcp-xy");
    refused(&["send", "127.0.0.1", "--bytes", "1", "--transport", "udp"], "--send-rate");
    refused(&["send", "127.0.0.1", "--bytes", "1", "--transport", "tcp-ap", "--segment", "0"], "segment");
    refused(&["send", "127.0.0.1", "--bytes", "1", "--channel-rate", "2"], "2 Mbit/s");
    // Marks, which no sender over UDP can react to, and datagrams that are too long are refused
    // before anything is opened.
    let trains = ["--interface", "udp", "--path-rate", "54 Mbit/s", "--transport"];
    for command in [&["send", "127.0.0.1", "--bytes", "1"][..], &["recv"]] {
        refused(&[command, &trains, &["quiet-train+marks"]].concat(), "trains.control.marks");
        refused(&[command, &trains, &["quiet-train", "--segment", "65490"]].concat(), "transport.segment");
    }
    refused(&["send", "127.0.0.1", "--bytes", "1", "--transport", "quiet-train"], "--path-rate '2 Mbit/s'");
    refused(&["send", "127.0.0.1", "--bytes", "1", "--transport", "quiet-train", "--path-rate", "2"], "2 Mbit/s");
    refused(&["send", "127.0.0.1", "--bytes", "1", "--http-like"], "--http-like");
    refused(&["recv", "--transport", "nothing"], "nothing");
    refused(&["recv", "--count", "0"], "--count");
}

#[test]
fn doctor_tells_every_thing_on_a_line() {
    let output = meshpace(&["doctor", "--json"]).output().unwrap();
    assert!(output.status.success());
    let lines: Vec<Value> = text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let subjects: Vec<_> = lines.iter().map(|line| line["subject"].as_str().unwrap()).collect();
    for subject in ["kernel", "rights", "TUN", "nftables", "timers"] {
        assert!(subjects.contains(&subject), "{subjects:?}");
    }
}

#[test]
fn after_kill_minus_nine_nothing_is_left() {
    let Some(network) = filtered_network() else { return };
    network.run(|| {
        let tables = || meshpace_live::tcp::filter::tables().unwrap();
        let raw = ["--interface", "raw", "--address", "10.9.9.1", "--transport", "newreno"];
        let send = |load: [&str; 2]| meshpace(&[&["send", "10.9.9.1"][..], &load, &raw].concat());
        let _recv = Running::start(meshpace(&["recv"]));
        let killed = || {
            let mut sender = Running::start(send(["--seconds", "60"]));
            eventually("a table", || !tables().is_empty());
            // While the process lives, `doctor --clean` does not remove its table.
            assert!(meshpace(&["doctor", "--clean"]).output().unwrap().status.success());
            assert_eq!(tables().len(), 1);
            sender.child().kill().unwrap();
            sender.child().wait().unwrap();
            assert_eq!(tables().len(), 1, "a killed process cannot clean up");
        };
        killed();
        let told = text(&meshpace(&["doctor"]).output().unwrap().stdout);
        assert!(told.contains("meshpace doctor --clean"), "{told}");
        let cleaned = text(&meshpace(&["doctor", "--clean"]).output().unwrap().stderr);
        assert!(cleaned.contains("removed meshpace_"), "{cleaned}");
        assert_eq!(tables(), [""; 0]);
        // The next start cleans up as well, and its own tables are removed at its end.
        killed();
        eventually("a transfer", || send(["--bytes", "100k"]).output().unwrap().status.success());
        assert_eq!(tables(), [""; 0]);
        // After SIGINT, the process removes its table before it ends.
        let mut sender = Running::start(send(["--seconds", "60"]));
        eventually("a table", || !tables().is_empty());
        let pid = nix::unistd::Pid::from_raw(sender.child().id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        assert_eq!(sender.output().status.code(), Some(130));
        assert_eq!(tables(), [""; 0]);
    });
}

#[test]
fn what_somebody_else_has_is_said() {
    let Some(network) = network() else { return };
    network.run(|| {
        let failed = |command: &mut Command, what: &str| {
            let output = command.output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(what), "{said}");
        };
        // The port is in use by the kernel.
        let _taken = TcpListener::bind("10.9.9.1:7700").unwrap();
        let raw = ["recv", "--transport", "newreno", "--interface", "raw", "--address", "10.9.9.1"];
        if meshpace_live::tcp::filter::tables().is_ok() {
            failed(&mut meshpace(&raw), "has port 7700");
        }
        failed(&mut meshpace(&["recv", "--transport", "kernel"]), "7700");
        // The address belongs to the device of another process.
        let tun = ["recv", "--transport", "newreno"];
        let _first = Running::start(meshpace(&tun));
        eventually("a device", || {
            text(&Command::new("ip").args(["route"]).output().unwrap().stdout).contains("10.78.0.2")
        });
        failed(&mut meshpace(&tun), "10.78.0.2 is in use");
        // Errors: a port at which nothing listens, another machine without forwarding, and an MTU
        // that is smaller than the headers.
        failed(
            &mut meshpace(&["send", "10.9.9.1", "--port", "9", "--bytes", "1", "--address", "10.78.1.2"]),
            "refuses",
        );
        meshpace_live::tun::ip(&["route", "add", "10.99.0.0/16", "dev", "lo"]).unwrap();
        let away = ["send", "10.99.0.1", "--bytes", "1", "--address", "10.78.1.2"];
        failed(&mut meshpace(&away), "ip_forward");
        failed(&mut meshpace(&["send", "127.0.0.1", "--bytes", "1", "--address", "10.78.1.2"]), "10.78.1.1");
        failed(
            &mut meshpace(&["send", "10.9.9.1", "--bytes", "1", "--address", "10.78.1.2", "--mtu", "70"]),
            "MTU of 70",
        );
    });
}

#[test]
fn without_rights_it_says_which() {
    use std::os::unix::process::CommandExt;
    let Some(network) = network() else { return };
    network.run(|| {
        const NOBODY: u32 = 65_534;
        let run = |arguments: &[&str]| meshpace(arguments).uid(NOBODY).gid(NOBODY).output();
        let Ok(output) = run(&["doctor", "--json"]) else {
            skipped(Class::Rights, "the program cannot be started by others than its owner");
            return;
        };
        let rights = text(&output.stdout).lines().find(|line| line.contains("\"rights\"")).unwrap().to_owned();
        assert!(rights.contains("CAP_NET_ADMIN") && rights.contains("setcap"), "{rights}");
        for interface in ["tun", "raw"] {
            let output = run(&["send", "10.9.9.1", "--bytes", "1", "--interface", interface]).unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains("permitted") || said.contains("denied"), "{interface}: {said}");
        }
    });
}

/// Stops a process for three seconds, which has the effect of a machine that sleeps.
fn doze(child: &Child) {
    let signal = |name: &str| {
        let number = child.id().to_string();
        assert!(Command::new("kill").args([name, &number]).status().unwrap().success());
    };
    signal("-STOP");
    #[expect(clippy::disallowed_methods, reason = "a nap takes its time")]
    std::thread::sleep(Duration::from_secs(3));
    signal("-CONT");
}

/// Makes a transfer of some seconds, during which first the receiver and then the sender sleeps.
/// All bytes must arrive exactly once.
fn naps(transport: &str, more: &[&str], bytes: u64) {
    let port = spare_port().to_string();
    let taking = if transport.starts_with("tpa") { transport } else { "kernel" };
    let recv = ["recv", "--transport", taking, "--port", &port, "--count", "1", "--format", "json"];
    let mut recv = Running::start(meshpace(&recv));
    let bytes_text = bytes.to_string();
    let mut arguments = vec!["send", "10.9.9.1", "--port", &port, "--transport", transport, "--bytes", &bytes_text];
    arguments.extend_from_slice(&["--format", "json"]);
    arguments.extend_from_slice(more);
    // A sender that starts before the receiver listens is refused, and is started again.
    let mut send = Running::start(meshpace(&arguments));
    eventually("a transfer", || {
        let refused = send.child().try_wait().unwrap().is_some();
        if refused {
            send = Running::start(meshpace(&arguments));
        }
        #[expect(clippy::disallowed_methods, reason = "long enough to have begun")]
        std::thread::sleep(Duration::from_millis(700));
        send.child().try_wait().unwrap().is_none()
    });
    doze(recv.child());
    assert!(send.child().try_wait().unwrap().is_none(), "too short a transfer to sleep during it");
    doze(send.child());
    let sent = send.output();
    let line = text(&sent.stdout);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let record: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(record["flows"][0]["delivered_bytes"], bytes, "{line}");
    assert!(record["duration_s"].as_f64().unwrap() > 6.0, "nobody slept: {line}");
    let received = recv.output();
    let record: Value = serde_json::from_str(&text(&received.stdout)).unwrap();
    assert_eq!(record["flows"][0]["delivered_bytes"], bytes);
}

#[test]
fn processes_that_sleep_lose_nothing() {
    let Some(network) = network() else { return };
    network.run(|| {
        // Pacing for 7 hops at 0.5 Mbit/s sends only a few packets per second.
        let slow = ["--hops", "7", "--channel-rate", "500 kbit/s"];
        std::thread::scope(|scope| {
            for transport in ["tpa-ap-3", "tcp-ap"] {
                scope.spawn(move || naps(transport, &slow, 60_000));
            }
        });
    });
}
