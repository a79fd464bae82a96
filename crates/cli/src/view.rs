//! `meshpace view`: plays a scenario in a browser.
//!
//! The page is built from web/ and is part of the program. It computes the run itself, in
//! WebAssembly; this command only serves files.

use crate::output::{complain, failed, results};
use crate::run::load;
use crate::{FAILED, REFUSED};
use bytes::Bytes;
use clap::Args;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use meshpace_command::serve::{Content, short};
use meshpace_lab::record::make_directory;
use meshpace_scenario::{Scenario, Source};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace view`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Scenario file (TOML), or a recording that `run --record` or `emulate --record` wrote or is
    /// writing. Without it, the page offers its stories.
    file: Option<PathBuf>,
    /// Set a key of the scenario, as in `meshpace run`.
    #[arg(long, value_name = "KEY=VALUE", requires = "file")]
    set: Vec<String>,
    /// Play this seed first.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=1 << 53))]
    seed: u64,
    /// Serve the page at this address and port; port 0 selects any free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = crate::linux::socket_address)]
    bind: SocketAddr,
    /// Write the page into this directory instead of serving it. Any web server can then serve it.
    #[arg(long, value_name = "DIR", conflicts_with = "bind")]
    export: Option<PathBuf>,
    /// Write into a directory that is not empty.
    #[arg(long, requires = "export")]
    force: bool,
}

/// File of the page: name, type and content.
type Asset = (&'static str, &'static str, &'static [u8]);

/// Files of the page, as web/ builds them. `scenario.json` is generated for each view.
const PAGE: [Asset; 6] = [
    (INDEX, "text/html; charset=utf-8", include_bytes!("../../../web/dist/index.html")),
    ("viewer.js", "text/javascript; charset=utf-8", include_bytes!("../../../web/dist/viewer.js")),
    ("viewer.css", "text/css; charset=utf-8", include_bytes!("../../../web/dist/viewer.css")),
    ("meshpace.wasm", "application/wasm", include_bytes!("../../../web/dist/meshpace.wasm")),
    ("meshpace.js", "text/javascript; charset=utf-8", include_bytes!("../../../web/dist/meshpace.js")),
    ("licences.txt", "text/plain; charset=utf-8", include_bytes!("../../../web/dist/licences.txt")),
];
/// Name of the page itself. The address may omit it.
const INDEX: &str = "index.html";
/// Name of the file from which the page learns what to play.
const SCENARIO: &str = "scenario.json";

/// Longest first line of a recording, bytes. The largest mesh needs as much for its positions and
/// links.
const LONGEST_HEADER: u64 = 64 << 20;
/// Largest number of bytes of a recording in one answer.
const MOST_AT_ONCE: u64 = 256 << 20;
/// Name under which the page requests a recorded run.
const RECORDING: &str = "recording.jsonl";
/// Answer to a request for anything else.
const NOT_HERE: &str = "not here\n";

/// Headers that limit what a browser allows the page: it may run the files that came with it, and
/// nothing from elsewhere. The HTTP library requires lower-case names.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
];

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    // Errors in the scenario are reported here, before the page is served.
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

/// Describes the scenario that the page plays, with the files that it names; `null` as its source
/// if there is none.
fn scenario(arguments: &Arguments) -> Value {
    let Some(file) = &arguments.file else { return json!({ "source": null }) };
    if is_recording(file) {
        // A server also sends lines that are appended to the recording later. An exported folder
        // contains only the lines that were there at the export.
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

/// True if the first line of a file shows that it is a stream of `run --record`.
fn is_recording(file: &Path) -> bool {
    let mut line = String::new();
    let read = File::open(file).and_then(|file| BufReader::new(file.take(LONGEST_HEADER)).read_line(&mut line));
    read.is_ok() && serde_json::from_str::<Value>(&line).is_ok_and(|header| header["stream"] == "meshpace")
}

/// Returns the text of a scenario, and the content of every file that it names.
fn package(file: &Path, sets: &[String]) -> Result<(String, Value), String> {
    let read = |path: &Path| {
        let text =
            meshpace_scenario::read_file(path).and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        text.map_err(|error| format!("{}: {error}", path.display()))
    };
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
        complain(&format!("--export: {} is not empty; write into it with --force", directory.display()));
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
    let made = make_directory(directory).map_err(|error| error.to_string());
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
        complain(&format!("the system gives no random numbers for the address of the page: {error}"));
        return ExitCode::from(FAILED);
    }
    let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let bound = TcpListener::bind(arguments.bind).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            complain(&format!("--bind {}: {error}", arguments.bind));
            return ExitCode::from(FAILED);
        }
    };
    if !address.ip().is_loopback() {
        complain("warning: other machines can reach this page; anybody who knows its address can see the scenario");
    }
    if let Err(error) = results(&format!("http://{address}/{token}/\n")) {
        return failed(&error);
    }
    complain("open this address in a browser; stop with Ctrl-C");
    let arguments = arguments.clone();
    let Err(error) =
        meshpace_command::serve::serve(listener, move |request| with_headers(answer(request, &token, &arguments)));
    complain(&format!("the page cannot be served: {error}"));
    ExitCode::from(FAILED)
}

/// Answers requests for files below the token, and no others.
fn answer(request: &Request<Incoming>, token: &str, arguments: &Arguments) -> Response<Content> {
    let name = request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/'));
    let name =
        name.filter(|(given, _)| is_same(given, token)).map(|(_, name)| if name.is_empty() { INDEX } else { name });
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let Some(name) = name.filter(|_| is_read) else { return short(StatusCode::NOT_FOUND, NOT_HERE) };
    let query = request.uri().query().unwrap_or("");
    let from = query.strip_prefix("from=").and_then(|from| from.parse().ok()).unwrap_or(0);
    if let Some(file) = arguments.file.as_deref().filter(|_| name == RECORDING) {
        // If the file is shorter than the part that was read before, another recording has replaced
        // it.
        if file.metadata().is_ok_and(|file| file.len() < from) {
            return short(StatusCode::GONE, "another recording has taken its place\n");
        }
        let rest = is_recording(file).then(|| rest_of(file, from).ok()).flatten();
        return rest.map_or_else(
            || short(StatusCode::NOT_FOUND, NOT_HERE),
            |(rest, length)| typed("application/jsonl", Content::Part(rest, length)),
        );
    }
    if name == SCENARIO {
        return typed("application/json", Content::Whole(scenario(arguments).to_string().into()));
    }
    PAGE.iter().find(|asset| asset.0 == name).map_or_else(
        || short(StatusCode::NOT_FOUND, NOT_HERE),
        |&(_, kind, content)| typed(kind, Content::Whole(Bytes::from_static(content))),
    )
}

/// Compares two texts in a time that does not reveal where they differ.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differences == 0
}

/// Returns the file, positioned at byte `from`, and the number of bytes to send, which is limited.
/// A file that is still written has more the next time.
fn rest_of(file: &Path, from: u64) -> std::io::Result<(File, u64)> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len().saturating_sub(from).min(MOST_AT_ONCE);
    file.seek(SeekFrom::Start(from))?;
    Ok((file, length))
}

fn typed(kind: &'static str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn with_headers(mut response: Response<Content>) -> Response<Content> {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
