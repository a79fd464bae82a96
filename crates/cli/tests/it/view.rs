//! `meshpace view`: what is served and to whom, and the folder for other servers.

use assert_cmd::Command;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn meshpace() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("meshpace"))
}

/// A server that ends with the test.
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

    /// The head and the body of an answer.
    fn get(&self, path: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.host);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
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
    // Nothing is overwritten unasked.
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
    // A shorter file is another one.
    std::fs::write(&file, &lines[..lines.len() - 3]).unwrap();
    assert!(from(lines.len()).0.starts_with("HTTP/1.1 410"));
    assert!(served.get("/recording.jsonl?from=1000").0.starts_with("HTTP/1.1 404"));
}
