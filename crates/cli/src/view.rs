//! `meshpace view`: plays a scenario in a browser.
//!
//! The page is built from web/ and is part of the program. It computes the run itself, in WebAssembly; this command only serves files.

use crate::output::{complain, failed, results};
use crate::run::load;
use crate::{FAILED, REFUSED};
use clap::Args;
use meshpace_scenario::{Scenario, Source};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tiny_http::{Header, Method, Request, Response, Server};

/// The arguments of `meshpace view`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The scenario, a TOML file, or what `run --record` or `emulate --record` wrote or is writing; without it the page begins
    /// with its stories.
    file: Option<PathBuf>,
    /// Set a key of the scenario, as `run --set` does.
    #[arg(long, value_name = "KEY=VALUE", requires = "file")]
    set: Vec<String>,
    /// The seed that is played first.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1 << 53))]
    seed: u64,
    /// Where the page is served: an address and a port, 0 for any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// Write the page into this directory instead, for any web server.
    #[arg(long, value_name = "DIR", conflicts_with = "bind")]
    export: Option<PathBuf>,
    /// Write into a directory that is not empty.
    #[arg(long, requires = "export")]
    force: bool,
}

/// A file of the page: name, type, content.
type Asset = (&'static str, &'static str, &'static [u8]);

/// The page as web/ makes it. `scenario.json` is made for each view.
const PAGE: [Asset; 6] = [
    ("index.html", "text/html; charset=utf-8", include_bytes!("../../../web/dist/index.html")),
    ("viewer.js", "text/javascript; charset=utf-8", include_bytes!("../../../web/dist/viewer.js")),
    ("viewer.css", "text/css; charset=utf-8", include_bytes!("../../../web/dist/viewer.css")),
    ("meshpace.wasm", "application/wasm", include_bytes!("../../../web/dist/meshpace.wasm")),
    ("meshpace.js", "text/javascript; charset=utf-8", include_bytes!("../../../web/dist/meshpace.js")),
    ("licences.txt", "text/plain; charset=utf-8", include_bytes!("../../../web/dist/licences.txt")),
];
/// What the page asks for to know what to play.
const SCENARIO: &str = "scenario.json";

/// The longest first line of a recording, bytes: the places and links of the largest mesh.
const LONGEST_HEADER: u64 = 64 << 20;
/// Bytes of a recording that are sent at a time.
const MOST_AT_ONCE: u64 = 256 << 20;
/// Under this name it finds a recorded run.
const RECORDING: &str = "recording.jsonl";

/// What a browser may do with the page: run what came with it, and nothing from elsewhere.
const HEADERS: [(&str, &str); 6] = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("Cache-Control", "no-store"),
];

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    // What is wrong with the scenario is told here, before a page is.
    if let Some(file) = &arguments.file
        && !is_recording(file)
        && let Err(status) = load(file, &arguments.set)
    {
        return status;
    }
    match &arguments.export {
        Some(directory) => export(arguments, directory),
        None => serve(arguments),
    }
}

/// What the page plays: the scenario with the files it names, or nothing.
fn scenario(arguments: &Arguments) -> Value {
    let Some(file) = &arguments.file else { return json!({ "source": null }) };
    if is_recording(file) {
        // The server gives what is written meanwhile; a folder holds what was there.
        return json!({ "source": null, "recording": file.display().to_string(), "live": arguments.export.is_none() });
    }
    match package(file, &arguments.set) {
        Ok((text, files)) => json!({ "source": {
            "name": file.display().to_string(),
            "text": text,
            "files": files,
            "sets": arguments.set,
            "point": 0,
            "seed": arguments.seed,
        }}),
        Err(why) => json!({ "source": null, "error": why }),
    }
}

/// Whether a file is a stream of `run --record`: by its first line.
fn is_recording(file: &Path) -> bool {
    let mut line = String::new();
    let read = File::open(file).and_then(|file| BufReader::new(file.take(LONGEST_HEADER)).read_line(&mut line));
    read.is_ok() && serde_json::from_str::<Value>(&line).is_ok_and(|header| header["stream"] == "meshpace")
}

/// The text of a scenario, and the content of every file that it names.
fn package(file: &Path, sets: &[String]) -> Result<(String, Value), String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let text = read(file)?;
    let directory = file.parent().unwrap_or(Path::new(""));
    let files = RefCell::new(serde_json::Map::new());
    let loader = |name: &str| {
        let content = read(&directory.join(name))?;
        files.borrow_mut().insert(name.to_owned(), content.clone().into());
        Ok(content.into_bytes())
    };
    let source = Source { name: file.display().to_string(), text: text.clone(), sets: sets.to_vec() };
    Scenario::read_with(source, &loader, "scenario").map_err(|refusal| refusal.render(false))?;
    Ok((text, files.into_inner().into()))
}

fn export(arguments: &Arguments, directory: &Path) -> ExitCode {
    let is_used = std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
    if is_used && !arguments.force {
        complain(&format!("--export: {} is not empty; --force writes into it all the same", directory.display()));
        return ExitCode::from(REFUSED);
    }
    let scenario = scenario(arguments).to_string();
    let files = PAGE.iter().map(|(name, _, content)| (*name, *content)).chain([(SCENARIO, scenario.as_bytes())]);
    let write = |name: &str, content: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))
    };
    let recording = arguments.file.as_deref().filter(|file| is_recording(file));
    let copy = |file: &Path| {
        let path = directory.join(RECORDING);
        std::fs::copy(file, &path).map(|_| ()).map_err(|error| format!("{}: {error}", path.display()))
    };
    let made = std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()));
    let written = made.and_then(|()| files.into_iter().try_for_each(|(name, content)| write(name, content)));
    match written.and_then(|()| recording.map_or(Ok(()), copy)) {
        Ok(()) => {
            complain(&format!(
                "the page is in {}; any web server can serve it",
                directory.join("index.html").display()
            ));
            ExitCode::SUCCESS
        }
        Err(why) => {
            complain(&why);
            ExitCode::from(FAILED)
        }
    }
}

fn serve(arguments: &Arguments) -> ExitCode {
    let mut random = [0; 16];
    if let Err(error) = getrandom::fill(&mut random) {
        complain(&format!("no random numbers for the address: {error}"));
        return ExitCode::from(FAILED);
    }
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let server = match Server::http(arguments.bind) {
        Ok(server) => server,
        Err(error) => {
            complain(&format!("--bind {}: {error}", arguments.bind));
            return ExitCode::from(FAILED);
        }
    };
    let Some(address) = server.server_addr().to_ip() else { return ExitCode::from(FAILED) };
    if !address.ip().is_loopback() {
        complain("warning: other machines can reach this page; whoever has its address sees the scenario");
    }
    if let Err(error) = results(&format!("http://{address}/{token}/\n")) {
        return failed(&error);
    }
    complain("open this address in a browser; Ctrl-C ends it");
    for request in server.incoming_requests() {
        // A browser that has gone away is no failure.
        let _ = answer(request, &token, arguments);
    }
    ExitCode::SUCCESS
}

/// Answers with a file below the token, and with nothing else.
fn answer(request: Request, token: &str, arguments: &Arguments) -> std::io::Result<()> {
    let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
    let name = path.strip_prefix('/').and_then(|path| path.strip_prefix(token)).and_then(|path| path.strip_prefix('/'));
    let name = if name == Some("") { Some("index.html") } else { name };
    let is_read = matches!(request.method(), Method::Get | Method::Head);
    let from = query.strip_prefix("from=").and_then(|from| from.parse().ok()).unwrap_or(0);
    let file = arguments.file.as_deref().filter(|_| name == Some(RECORDING) && is_read);
    // What was there and is not: another file has taken its place.
    let is_replaced = file.is_some_and(|file| file.metadata().is_ok_and(|file| file.len() < from));
    if let Some(file) = file.filter(|file| !is_replaced && is_recording(file)) {
        let (rest, length) = rest_of(file, from)?;
        let response = Response::new(200.into(), Vec::new(), rest, Some(length as usize), None);
        return request.respond(with_headers(response.with_chunked_threshold(usize::MAX), "application/jsonl"));
    }
    let found: Option<(&str, Vec<u8>)> = match name.filter(|_| is_read) {
        Some(SCENARIO) => Some(("application/json", scenario(arguments).to_string().into_bytes())),
        Some(name) => PAGE.iter().find(|asset| asset.0 == name).map(|&(_, kind, content)| (kind, content.to_vec())),
        None => None,
    };
    let (status, kind, content) = match found {
        Some((kind, content)) => (200, kind, content),
        None if is_replaced => (410, "text/plain; charset=utf-8", b"another recording has taken its place\n".to_vec()),
        None => (404, "text/plain; charset=utf-8", b"not here\n".to_vec()),
    };
    // In one piece: its length is known.
    let response = Response::from_data(content).with_status_code(status).with_chunked_threshold(usize::MAX);
    request.respond(with_headers(response, kind))
}

/// What of a file is there from byte `from` on, and its length: a file that is still written has more the next time.
fn rest_of(file: &Path, from: u64) -> std::io::Result<(impl Read + use<>, u64)> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len().saturating_sub(from).min(MOST_AT_ONCE);
    file.seek(SeekFrom::Start(from))?;
    Ok((file.take(length), length))
}

fn with_headers<R: Read>(mut response: Response<R>, kind: &str) -> Response<R> {
    let headers = HEADERS.iter().copied().chain([("Content-Type", kind)]);
    headers
        .filter_map(|(name, value)| Header::from_bytes(name, value).ok())
        .for_each(|header| response.add_header(header));
    response
}
