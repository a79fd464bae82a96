//! `meshpace view`: the served files and who may read them, and the folder for other servers.

#![expect(clippy::disallowed_methods, reason = "clients have real clocks")]

use assert_cmd::Command;
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the answer to an ordinary client; an answer takes milliseconds.
const SOON: Duration = Duration::from_secs(20);
/// Time limit for disconnecting a client that sends nothing more; the server waits for 5 s.
const LATE: Duration = Duration::from_secs(60);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn meshpace() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("meshpace"))
}

/// Server that ends with the test.
struct Served {
    child: Child,
    host: String,
    token: String,
}

impl Served {
    fn new(arguments: &[&str]) -> Served {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("meshpace"));
        let mut child = command.arg("view").args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("no address: {line}"));
        let (host, token) = rest.trim_end_matches('/').split_once('/').unwrap();
        Served { child, host: host.to_owned(), token: token.to_owned() }
    }

    /// Returns the head and the body of the answer to a GET request.
    fn get(&self, path: &str) -> (String, Vec<u8>) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host))
    }

    /// Returns the head and the body of the answer to `request`.
    fn ask(&self, request: &str) -> (String, Vec<u8>) {
        let mut stream = self.send(request.as_bytes());
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
    }

    /// Opens a connection and sends these bytes.
    fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    }

    /// Asserts that an ordinary client soon gets the page.
    fn serves(&mut self) {
        let begun = Instant::now();
        let (head, body) = self.get(&format!("/{}/", self.token));
        assert!(head.starts_with("HTTP/1.1 200") && String::from_utf8_lossy(&body).contains("viewer.js"), "{head}");
        assert!(begun.elapsed() < SOON, "after {:?}", begun.elapsed());
        assert!(self.child.try_wait().unwrap().is_none(), "the server has ended");
    }

    /// Returns a number that the system reports about the process, such as `Threads`, or `VmHWM` in
    /// kB.
    fn status(&self, key: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

/// True if the server has closed or reset a connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1024]) {
        Ok(got) => got == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_page_is_served_on_loopback_behind_a_token() {
    let file = root().join("scenarios/examples/cross.toml");
    let served = Served::new(&[file.to_str().unwrap(), "--seed", "7"]);
    assert!(served.host.starts_with("127.0.0.1:"), "{}", served.host);
    assert!(served.token.len() == 32, "128 bits: {}", served.token);
    let (head, body) = served.get(&format!("/{}/", served.token));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("Content-Security-Policy: default-src 'none'") && !head.contains("Access-Control"), "{head}");
    assert!(String::from_utf8(body).unwrap().contains("viewer.js"));
    let (head, body) = served.get(&format!("/{}/meshpace.wasm", served.token));
    assert!(head.contains("application/wasm") && body.starts_with(b"\0asm"), "{head}");
    let (_, body) = served.get(&format!("/{}/scenario.json", served.token));
    let given: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(given["source"]["text"], std::fs::read_to_string(file).unwrap());
    assert_eq!(given["source"]["seed"], 7);
    let strange = "0".repeat(32);
    for path in
        ["/", "/index.html", "/scenario.json", &format!("/{strange}/"), &format!("/{}/../Cargo.toml", served.token)]
    {
        assert!(served.get(path).0.starts_with("HTTP/1.1 404"), "{path}");
    }
}

#[test]
fn the_exported_folder_holds_everything_by_relative_names() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("page");
    meshpace().args(["view", "--export", folder.to_str().unwrap()]).assert().success().stdout("");
    let page = std::fs::read_to_string(folder.join("index.html")).unwrap();
    let named: Vec<&str> =
        page.split(['"', '\'']).filter(|text| text.ends_with(".js") || text.ends_with(".css")).collect();
    assert!(named.len() >= 2, "{page}");
    for name in named {
        assert!(folder.join(name).is_file() && !name.starts_with('/'), "{name}");
    }
    let code = std::fs::read_to_string(folder.join("viewer.js")).unwrap();
    assert!(code.contains("meshpace.wasm") && folder.join("meshpace.wasm").is_file());
    // Nothing is overwritten without `--force`.
    let again = meshpace().args(["view", "--export", folder.to_str().unwrap()]).assert().code(2);
    let told = String::from_utf8(again.get_output().stderr.clone()).unwrap();
    assert!(told.contains("--force"), "{told}");
    meshpace().args(["view", "--export", folder.to_str().unwrap(), "--force"]).assert().success();
}

#[test]
fn a_scenario_takes_the_files_it_names_along() {
    let place = tempfile::tempdir().unwrap();
    let map = "x_m,y_m\n0,0\n200,0\n400,0\n";
    std::fs::write(place.path().join("map.csv"), map).unwrap();
    let text = "duration = '5 s'\n[topology]\nkind = 'nodes'\nfile = 'map.csv'\n[[flow]]\nfrom = 0\nto = 2\n";
    let file = place.path().join("own.toml");
    std::fs::write(&file, text).unwrap();
    let folder = place.path().join("page");
    meshpace().arg("view").arg(&file).arg("--export").arg(&folder).assert().success();
    let given: Value = serde_json::from_slice(&std::fs::read(folder.join("scenario.json")).unwrap()).unwrap();
    assert_eq!(given["source"]["files"]["map.csv"], map);
}

#[test]
fn a_scenario_that_is_refused_is_told_before_anything_is_served() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("wrong.toml");
    std::fs::write(&file, "[topology]\nkind = 'chain'\nhop = 3\n[[flow]]\n").unwrap();
    let refused = meshpace().arg("view").arg(&file).assert().code(2).stdout("");
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(told.contains("wrong.toml:3") && told.contains("hop"), "{told}");
}

#[test]
fn a_recording_is_served_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("run.jsonl");
    let lines = "{\"stream\": \"meshpace\", \"format\": 1}\n[\"end\", 5, 0, \"00\"]\n";
    std::fs::write(&file, lines).unwrap();
    let served = Served::new(&[file.to_str().unwrap()]);
    let (_, body) = served.get(&format!("/{}/scenario.json", served.token));
    let given: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(given["recording"], file.to_str().unwrap());
    let (head, body) = served.get(&format!("/{}/recording.jsonl", served.token));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(String::from_utf8(body).unwrap(), lines);
    assert!(served.get("/recording.jsonl").0.starts_with("HTTP/1.1 404"));
    let from = |byte: usize| served.get(&format!("/{}/recording.jsonl?from={byte}", served.token));
    assert!(from(lines.len()).0.starts_with("HTTP/1.1 200"), "nothing more is there");
    assert_eq!(from(lines.len() - 3).1, b"\"]\n");
    // A file that is shorter than before is another recording.
    std::fs::write(&file, &lines[..lines.len() - 3]).unwrap();
    assert!(from(lines.len()).0.starts_with("HTTP/1.1 410"));
    assert!(served.get("/recording.jsonl?from=1000").0.starts_with("HTTP/1.1 404"));
}

#[test]
fn a_body_is_refused_unread_whatever_its_length() {
    let mut served = Served::new(&[]);
    let lengths = ["Content-Length: 99999999999", "Content-Length: 18446744073709551615", "Transfer-Encoding: chunked"];
    let before = served.status("VmHWM");
    for length in lengths {
        for path in ["/", &format!("/{}/", served.token)] {
            for method in ["GET", "POST"] {
                let request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{length}\r\n\r\n", served.host);
                let (head, _) = served.ask(&request);
                assert!(head.starts_with("HTTP/1.1 4"), "{length}: {head}");
            }
        }
        served.serves();
    }
    let more = served.status("VmHWM") - before;
    assert!(more < 20_000, "{more} kB");
}

#[test]
fn clients_that_promise_and_say_nothing_stop_nobody() {
    let mut served = Served::new(&[]);
    let head = format!("POST / HTTP/1.1\r\nHost: {}\r\n", served.host);
    // The clients send nothing, half a head, or a head whose body never comes.
    let sent = [String::new(), head.clone(), format!("{head}Content-Length: 1000\r\n\r\n")];
    let mut silent: Vec<TcpStream> = (0..12).map(|number| served.send(sent[number % 3].as_bytes())).collect();
    served.serves();
    let begun = Instant::now();
    for stream in &mut silent {
        while !is_closed(stream) {
            assert!(begun.elapsed() < LATE, "still open");
        }
    }
}

#[test]
fn a_head_that_comes_byte_by_byte_has_a_time_and_a_length() {
    let mut served = Served::new(&[]);
    let mut stream = served.send(b"GET / HTTP/1.1\r\nX: ");
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let begun = Instant::now();
    while stream.write_all(b"x").is_ok() && !is_closed(&mut stream) {
        assert!(begun.elapsed() < LATE, "still open");
    }
    served.serves();
    // A head without an end is sent as fast as possible. The server cuts it off long before a
    // megabyte; systems can buffer about that much.
    let mut stream = served.send(b"GET / HTTP/1.1\r\nX: ");
    stream.set_write_timeout(Some(SOON)).unwrap();
    let cut = (0..1_000).map(|_| stream.write_all(&[b'x'; 100_000])).find_map(Result::err);
    assert!(cut.is_some_and(|error| error.kind() != ErrorKind::WouldBlock), "100 MB were taken, or nobody cut it off");
    served.serves();
}

#[test]
fn a_client_that_asks_on_and_on_and_does_not_read_stops_nobody() {
    let mut served = Served::new(&[]);
    let request = format!("GET /{}/meshpace.wasm HTTP/1.1\r\nHost: {}\r\n\r\n", served.token, served.host);
    let many = request.repeat(1_000);
    let mut clients: Vec<TcpStream> = (0..4).map(|_| served.send(request.as_bytes())).collect();
    for client in &mut clients {
        client.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        // The client sends until the system buffers no more, or until the server closes the
        // connection.
        while client.write_all(many.as_bytes()).is_ok() {}
    }
    served.serves();
}

#[test]
fn five_hundred_connections_cost_neither_threads_nor_the_next_client_its_answer() {
    let mut served = Served::new(&[]);
    let mut clients: Vec<TcpStream> = (0..500).map(|_| served.send(b"GET / HTTP/1.1\r\n")).collect();
    served.serves();
    // The server closed the oldest connections to make room for newer ones.
    assert!(is_closed(&mut clients[0]));
    assert!(served.status("Threads") <= 4, "{} threads", served.status("Threads"));
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.child.id())).unwrap().count();
    assert!(open < 100, "{open} descriptors");
}

#[test]
fn a_page_of_another_origin_gets_nothing_even_with_the_token() {
    let served = Served::new(&[]);
    let port = served.host.rsplit(':').next().unwrap();
    let status = |host: &str, more: &str| {
        let request =
            format!("GET /{}/scenario.json HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n", served.token);
        served.ask(&request).0.split(' ').nth(1).unwrap().to_owned()
    };
    let own = format!("localhost:{port}");
    assert_eq!(status(&own, ""), "200");
    // A tunnel has another port at this end.
    assert_eq!(status("localhost:9000", "Origin: http://localhost:9000\r\n"), "200");
    // A foreign name is resolved to this machine.
    assert_eq!(status(&format!("rebound.example:{port}"), ""), "421");
    assert_eq!(status(&own, "Origin: http://elsewhere.example\r\n"), "403");
    assert_eq!(status(&own, "Origin: null\r\n"), "403");
}

#[test]
fn a_large_recording_comes_whole_to_a_client_that_reads_slowly() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("run.jsonl");
    let mut lines = b"{\"stream\": \"meshpace\", \"format\": 1}\n".to_vec();
    (0..400_000_u32).for_each(|number| lines.extend_from_slice(format!("[\"queue\", {number}, 0, 1]\n").as_bytes()));
    std::fs::write(&file, &lines).unwrap();
    let mut served = Served::new(&[file.to_str().unwrap()]);
    let request =
        format!("GET /{}/recording.jsonl HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", served.token, served.host);
    let mut slow = served.send(request.as_bytes());
    served.serves();
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(&lines) && answer.len() < lines.len() + 2_000, "{} of {}", answer.len(), lines.len());
}
