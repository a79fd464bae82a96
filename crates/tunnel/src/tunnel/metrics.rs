//! Metrics for Prometheus, in its text format (version 0.0.4). They are served over HTTP at a TCP
//! port or a Unix socket. Every end has a fixed number of series.

use super::End;
use super::file::What;
use super::live;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use meshpace_command::serve::{Content, serve, serve_unix, short};
use meshpace_live::hosts;
use meshpace_live::tpa::PortCounters;
use meshpace_live::tunnel::{Counters, Totals};
use std::fmt::Write;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Metrics that are served, shared by the threads that run the ends and that serve requests. A
/// clone is a further handle.
#[derive(Clone, Default)]
pub(super) struct Board(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    ends: Vec<Shown>,
    /// Number of successful reloads, and of files that were refused.
    reloads: [u64; 2],
}

/// An end whose metrics are served.
struct Shown {
    name: String,
    role: &'static str,
    /// Counters of the end; `None` while it does not run.
    counters: Option<Counters>,
    port: PortCounters,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the list of ends.
    pub(super) fn show<'a>(&self, ends: impl Iterator<Item = (&'a str, &'a What, Option<&'a End>)>) {
        let shown = ends.map(|(name, what, end)| {
            let role = if let What::Listen(_) = what { "listen" } else { "connect" };
            let name = if name.is_empty() { role } else { name };
            let port = end.map(End::port_counters).unwrap_or_default();
            Shown { name: name.to_owned(), role, counters: end.map(End::counters), port }
        });
        let shown = shown.collect();
        self.lock().ends = shown;
    }

    /// Counts a reload of the file, which was successful or refused.
    pub(super) fn reloaded(&self, is_taken: bool) {
        self.lock().reloads[usize::from(!is_taken)] += 1;
    }

    /// Text of the answer.
    fn text(&self) -> String {
        let state = self.lock();
        // Counting takes the locks of the ends. It must not happen while this lock is held.
        let reloads = state.reloads;
        let ends: Vec<(String, &str, Option<Counters>, PortCounters)> =
            state.ends.iter().map(|end| (end.name.clone(), end.role, end.counters.clone(), end.port)).collect();
        drop(state);
        let rows: Vec<Row> = ends
            .into_iter()
            .map(|(name, role, counters, port)| Row {
                labels: format!("tunnel=\"{}\",role=\"{role}\"", escaped(&name)),
                totals: counters.as_ref().map(Counters::totals),
                port,
            })
            .collect();
        page(&rows, reloads)
    }
}

/// Labels and values of an end.
struct Row {
    labels: String,
    totals: Option<Totals>,
    port: PortCounters,
}

/// A metric of every end: name, type, help text and value. The value is `None` if it is not known.
type Metric = (&'static str, &'static str, &'static str, fn(&Totals) -> Option<f64>);

/// Metrics of an end that runs.
static METRICS: [Metric; 17] = [
    ("streams", "gauge", "Streams open now.", |totals| Some(totals.open as f64)),
    ("streams_opened_total", "counter", "Streams opened.", |totals| Some(totals.opened as f64)),
    ("streams_refused_total", "counter", "Streams that the far end could not connect to their target.", |totals| {
        Some(totals.refused as f64)
    }),
    ("streams_aborted_total", "counter", "Streams that were aborted instead of closed.", |totals| {
        Some(totals.aborted as f64)
    }),
    ("sessions", "gauge", "Sessions open now.", |totals| Some(totals.sessions as f64)),
    ("sessions_opened_total", "counter", "Sessions opened.", |totals| Some(totals.sessions_opened as f64)),
    ("flows", "gauge", "Flows of datagrams open now.", |totals| Some(totals.datagrams.flows as f64)),
    ("datagrams_sent_total", "counter", "Datagrams of UDP to far ends.", |totals| Some(totals.datagrams.sent as f64)),
    ("datagrams_received_total", "counter", "Datagrams of UDP from far ends.", |totals| {
        Some(totals.datagrams.received as f64)
    }),
    ("datagrams_dropped_total", "counter", "Datagrams of UDP discarded at this end.", |totals| {
        Some(totals.datagrams.dropped as f64)
    }),
    ("sent_bytes_total", "counter", "Payload bytes of streams and datagrams to far ends.", |totals| {
        Some(totals.sent as f64)
    }),
    ("received_bytes_total", "counter", "Payload bytes of streams and datagrams from far ends.", |totals| {
        Some(totals.received as f64)
    }),
    ("hops", "gauge", "Hops to the far end, from the time to live of the last received packet.", |totals| {
        totals.hops.map(f64::from)
    }),
    ("path_mtu_bytes", "gauge", "MTU of the path, if longer packets were found not to pass.", |totals| {
        totals.narrowed.map(f64::from)
    }),
    ("segments_sent_total", "counter", "Segments sent, of TPA and quiet trains.", |totals| {
        Some(totals.stats.segments_sent as f64)
    }),
    ("retransmissions_total", "counter", "Segments retransmitted.", |totals| Some(totals.stats.retransmissions as f64)),
    ("timeouts_total", "counter", "Retransmission time-outs.", |totals| Some(totals.stats.timeouts as f64)),
];

/// A reason, and the number of datagrams that were not used for this reason.
type Unused = (&'static str, fn(&PortCounters) -> u64);

/// Datagrams that a port has received and not used, by reason.
static UNUSED: [Unused; 4] = [
    ("malformed", |port| port.malformed),
    ("stray", |port| port.strays),
    ("crowded", |port| port.crowded),
    ("forged", |port| port.forged),
];

/// Text of all series.
fn page(rows: &[Row], reloads: [u64; 2]) -> String {
    let mut page = String::new();
    let head = |page: &mut String, name: &str, kind: &str, what: &str| {
        // Writing to a string does not fail.
        let _ = write!(page, "# HELP meshpace_tunnel_{name} {what}\n# TYPE meshpace_tunnel_{name} {kind}\n");
    };
    head(&mut page, "up", "gauge", "Whether the end runs: 1, or 0 while it is being retried.");
    for row in rows {
        let _ = writeln!(page, "meshpace_tunnel_up{{{}}} {}", row.labels, u8::from(row.totals.is_some()));
    }
    for (name, kind, what, value) in &METRICS {
        head(&mut page, name, kind, what);
        for row in rows {
            if let Some(value) = row.totals.as_ref().and_then(value) {
                let _ = writeln!(page, "meshpace_tunnel_{name}{{{}}} {value}", row.labels);
            }
        }
    }
    head(&mut page, "carrier", "gauge", "Carrier of the last stream, tpa or quiet-train; always 1.");
    for row in rows {
        if let Some(carrier) = row.totals.as_ref().and_then(live::seen) {
            let _ = writeln!(page, "meshpace_tunnel_carrier{{{},carrier=\"{carrier}\"}} 1", row.labels);
        }
    }
    head(&mut page, "datagrams_unused_total", "counter", "Datagrams received and discarded, by reason.");
    for row in rows {
        for (reason, count) in &UNUSED {
            let count = count(&row.port);
            let _ =
                writeln!(page, "meshpace_tunnel_datagrams_unused_total{{{},reason=\"{reason}\"}} {count}", row.labels);
        }
    }
    head(&mut page, "challenges_total", "counter", "Connection requests answered with a cookie.");
    for row in rows {
        let _ = writeln!(page, "meshpace_tunnel_challenges_total{{{}}} {}", row.labels, row.port.challenges);
    }
    head(
        &mut page,
        "moves_total",
        "counter",
        "Number of times that the address of a peer changed during a connection.",
    );
    for row in rows {
        let _ = writeln!(page, "meshpace_tunnel_moves_total{{{}}} {}", row.labels, row.port.moves);
    }
    head(&mut page, "reloads_total", "counter", "Number of times that the file was read again, by result.");
    for (result, count) in ["taken", "refused"].iter().zip(reloads) {
        let _ = writeln!(page, "meshpace_tunnel_reloads_total{{result=\"{result}\"}} {count}");
    }
    head(&mut page, "build_info", "gauge", "The version; always 1.");
    let _ = writeln!(page, "meshpace_tunnel_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    page
}

/// Value of a label with special characters escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Place where metrics are served.
enum Place {
    Port(TcpListener),
    Socket(UnixListener),
}

/// Serves the metrics of `board` at `place`, on a thread of its own, until the process ends.
/// `place` is `[address:]port` or the absolute name of a Unix socket.
///
/// # Errors
///
/// The port or the socket cannot be opened.
pub(super) fn serve_at(place: &str, board: &Board) -> io::Result<()> {
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("--metrics {place}: {error}"));
    let place = open(place).map_err(explain)?;
    let board = board.clone();
    let answer = move |request: &Request<Incoming>| answer(request, &board);
    let run = move || match place {
        Place::Port(listener) => serve(listener, answer).map(drop),
        Place::Socket(listener) => serve_unix(listener, answer).map(drop),
    };
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        if let Err(error) = run() {
            super::log::say(super::log::Level::Error, "", &format!("metrics: {error}"));
        }
    })?;
    Ok(())
}

fn open(place: &str) -> io::Result<Place> {
    if !place.starts_with('/') {
        let local = super::socks_address(place).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{error}, or the absolute name of a Unix socket"))
        })?;
        return TcpListener::bind(&hosts::place(&local)?[..]).map(Place::Port);
    }
    let path = Path::new(place);
    // A socket file that a killed process left is removed. A socket that a process serves, or
    // another file, is kept.
    let is_left = std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket())
        && UnixStream::connect(path).is_err();
    if is_left {
        std::fs::remove_file(path)?;
    }
    UnixListener::bind(path).map(Place::Socket)
}

/// Answer to a request.
pub(super) fn answer(request: &Request<Incoming>, board: &Board) -> Response<Content> {
    if request.method() != Method::GET || request.uri().path() != "/metrics" {
        return short(StatusCode::NOT_FOUND, "GET /metrics\n");
    }
    let mut response = Response::new(Content::Whole(Bytes::from(board.text())));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_live::tunnel::Datagrams;

    #[test]
    fn each_series_is_announced_once_and_written_as_prometheus_reads_it() {
        let datagrams = Datagrams { flows: 3, sent: 7, received: 8, dropped: 9, ..Datagrams::default() };
        let there = Totals { open: 2, opened: 5, sent: 1 << 40, hops: Some(4), datagrams, ..Totals::default() };
        let rows = [("a\"b\\c", Some(there)), ("down", None)].map(|(name, totals)| Row {
            labels: format!("tunnel=\"{}\",role=\"connect\"", escaped(name)),
            totals,
            port: PortCounters { forged: 3, ..PortCounters::default() },
        });
        let page = page(&rows, [1, 2]);
        let mut announced = Vec::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(!announced.contains(&name) && matches!(kind, "gauge" | "counter"), "{line}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
                announced.push(name);
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap();
                assert_eq!(announced.last(), Some(&name), "{line}");
                assert!(labels.ends_with('}') && value.parse::<f64>().is_ok(), "{line}");
            }
        }
        for line in [
            "meshpace_tunnel_up{tunnel=\"a\\\"b\\\\c\",role=\"connect\"} 1",
            "meshpace_tunnel_up{tunnel=\"down\",role=\"connect\"} 0",
            "meshpace_tunnel_streams{tunnel=\"a\\\"b\\\\c\",role=\"connect\"} 2",
            "meshpace_tunnel_sent_bytes_total{tunnel=\"a\\\"b\\\\c\",role=\"connect\"} 1099511627776",
            "meshpace_tunnel_flows{tunnel=\"a\\\"b\\\\c\",role=\"connect\"} 3",
            "meshpace_tunnel_datagrams_sent_total{tunnel=\"a\\\"b\\\\c\",role=\"connect\"} 7",
            "meshpace_tunnel_datagrams_received_total{tunnel=\"a\\\"b\\\\c\",role=\"connect\"} 8",
            "meshpace_tunnel_datagrams_dropped_total{tunnel=\"a\\\"b\\\\c\",role=\"connect\"} 9",
            "meshpace_tunnel_datagrams_unused_total{tunnel=\"down\",role=\"connect\",reason=\"forged\"} 3",
            "meshpace_tunnel_reloads_total{result=\"refused\"} 2",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
        assert!(!page.contains("streams{tunnel=\"down\""), "{page}");
    }

    #[test]
    fn a_socket_that_was_left_behind_is_taken_and_one_in_use_or_a_file_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics");
        let name = path.to_str().unwrap();
        let first = open(name).unwrap();
        assert!(open(name).is_err(), "somebody serves it");
        drop(first);
        assert!(open(name).is_ok());
        let file = directory.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(open(file.to_str().unwrap()).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"x");
        assert!(open("nowhere").is_err());
    }
}
