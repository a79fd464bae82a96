//! `meshpace-router` as a router runs it: two processes on loopback, and the script of procd with its file of UCI.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn router(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshpace-router"));
    command.args(arguments);
    command
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// A process that ends with this, and the lines it says.
struct End(Child, Receiver<String>);

impl End {
    fn start(arguments: &[&str]) -> End {
        let mut child = router(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        End(child, lines)
    }

    /// The word after `before` in the first line that has it.
    fn says(&self, before: &str) -> String {
        loop {
            let line = self.1.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nobody says {before:?}"));
            if let Some((_, rest)) = line.split_once(before) {
                return rest.split(' ').next().unwrap_or_default().to_owned();
            }
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn bytes_go_through_a_tunnel_between_two_processes_with_keys() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    for name in ["here", "there"] {
        let made = output(&mut router(&["tunnel", "keygen", &file(name)]));
        assert!(made.status.success(), "{made:?}");
        std::fs::write(file(&format!("{name}.pub")), made.stdout).unwrap();
    }
    let bytes: Vec<u8> = (0..250_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap().to_string();
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        stream.write_all(&got).unwrap();
    });
    let (there, here) = (file("there"), file("here"));
    let (there_pub, here_pub) = (file("there.pub"), file("here.pub"));
    let listening =
        ["tunnel", "listen", "--address", "127.0.0.1", "--port", "0", "--key", &there, "--peers", &here_pub];
    let far = End::start(&listening);
    let port = far.says("listening on UDP ").rsplit_once(':').unwrap().1.to_owned();
    let forward = format!("0:{target}");
    let near = End::start(&[
        "tunnel",
        "connect",
        "127.0.0.1",
        "--port",
        &port,
        "-L",
        &forward,
        "--key",
        &here,
        "--peers",
        &there_pub,
    ]);
    // The line of the port begins with its address.
    let local = loop {
        let line = near.1.recv_timeout(PATIENCE).unwrap();
        if let Some(at) = line.split(' ').find(|word| word.starts_with("127.0.0.1:") && line.contains("goes to")) {
            break at.to_owned();
        }
    };
    let mut stream = TcpStream::connect(&local).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert!(back == bytes, "{} of {} bytes came back as they went", back.len(), bytes.len());
    echo.join().unwrap();
}

#[test]
fn an_end_on_all_addresses_says_what_it_serves_and_serves_it() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let _ = stream.write_all(b"welcome");
        }
    });
    for (address, families, hosts) in
        [("::", "serves IPv4 and IPv6", &["127.0.0.1", "::1"][..]), ("0.0.0.0", "serves IPv4 alone", &["127.0.0.1"])]
    {
        let far = End::start(&["tunnel", "listen", "--address", address, "--port", "0", "--plain", "--allow", "any"]);
        let port = far.says("listening on UDP ").rsplit_once(':').unwrap().1.to_owned();
        let said = far.1.recv_timeout(PATIENCE).unwrap();
        assert!(said.contains(families), "{said}");
        for host in hosts {
            let near =
                End::start(&["tunnel", "connect", host, "--port", &port, "-L", &format!("0:{target}"), "--plain"]);
            let local = loop {
                let line = near.1.recv_timeout(PATIENCE).unwrap();
                if let Some((before, _)) = line.split_once(" goes to ") {
                    break before.rsplit(' ').next().unwrap().to_owned();
                }
            };
            let mut stream = TcpStream::connect(&local).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut got = [0; 7];
            stream.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"welcome", "{host}");
        }
    }
    let refused =
        output(&mut router(&["tunnel", "listen", "--address", "fe80::1%nodevice", "--plain", "--allow", "any"]));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && text.contains("no network device here is called nodevice"), "{text}");
}

#[test]
fn the_doctor_tells_what_it_finds_to_people_and_to_programs() {
    let told = output(&mut router(&["doctor"]));
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(told.status.success() && text.contains("kernel: "), "{text}");
    let objects = output(&mut router(&["doctor", "--json"]));
    let subjects: Vec<String> = String::from_utf8(objects.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["subject"].as_str().unwrap().to_owned())
        .collect();
    assert!(subjects.len() > 5, "{subjects:?}");
    for subject in subjects {
        assert!(text.contains(&format!("{subject}: ")), "{subject} is not in\n{text}");
    }
}

#[test]
fn what_is_refused_ends_with_status_2() {
    for wrong in [&["run", "x.toml"][..], &["tunnel", "connect"], &["tunnel", "run", "/nowhere.toml"]] {
        let refused = output(&mut router(wrong));
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}: {refused:?}");
    }
}

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/openwrt")
}

/// What OpenWrt's shell libraries do for the script, as far as it uses them: each section of the file of UCI is read, each command of procd printed.
const OPENWRT: &str = r#"
config_load() { CONFIG=$UCI_FILE; }
config_foreach() { for section in $(sed -n "s/^config $2 '\(.*\)'/\1/p" "$CONFIG"); do "$1" "$section"; done; }
option() { sed -n "/^config [a-z]* '$1'/,/^config [a-z]* /s/^[[:space:]]*option $2 '\(.*\)'/\1/p" "$CONFIG"; }
config_get() { eval "$1=\$(option '$2' '$3')"; eval "[ -n \"\$$1\" ] || $1=\$4"; }
config_get_bool() { config_get "$@"; }
procd_open_instance() { echo "instance $1"; }
procd_set_param() { echo "$@"; }
procd_close_instance() { :; }
procd_add_reload_trigger() { echo "trigger $1"; }
"#;

/// What procd is told with a file of UCI.
fn told_procd(uci: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("uci");
    std::fs::write(&file, uci).unwrap();
    let script = format!(
        "{OPENWRT}\n. {}\nstart_service\nservice_triggers\n",
        packaging().join("meshpace-tunnel.init").display()
    );
    let told = output(Command::new("sh").arg("-euc").arg(script).env("UCI_FILE", &file));
    assert!(told.status.success(), "{told:?}");
    String::from_utf8(told.stdout).unwrap()
}

#[test]
fn procd_is_handed_a_command_that_the_program_takes() {
    let shipped = std::fs::read_to_string(packaging().join("meshpace-tunnel.config")).unwrap();
    assert!(!told_procd(&shipped).contains("instance"), "nothing runs before somebody says so");

    let directory = tempfile::tempdir().unwrap();
    let tunnels = directory.path().join("site.toml");
    std::fs::write(&tunnels, "[[listen]]\nallow = \"any\"\nplain = true\n").unwrap();
    let uci = shipped
        .replace("enabled '0'", "enabled '1'")
        .replace("/etc/meshpace/tunnel-site.toml", tunnels.to_str().unwrap());
    let told = told_procd(&uci);
    assert!(told.contains("instance site\n") && told.contains("trigger meshpace-tunnel\n"), "{told}");
    assert!(told.contains("reload_signal HUP\n"), "{told}");
    let command = told.lines().find_map(|line| line.strip_prefix("command ")).unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    assert!(words[0].starts_with("/usr/bin/meshpace"), "{command}");
    let checked = output(router(&words[1..]).arg("--check"));
    assert!(checked.status.success(), "{command}: {checked:?}");
}
