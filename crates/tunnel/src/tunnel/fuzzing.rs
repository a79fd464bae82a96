//! Entry points for fuzzers: the parser of configuration files, and the server of metrics.

use super::file::{self, Wrong};
use super::metrics::{self, Board};
use meshpace_command::serve::{attend, guarded};
use meshpace_settings::Source;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Parses a configuration file of tunnels. Checks that its ends have different names, or that every
/// fault is reported with its line.
///
/// # Panics
///
/// If a check fails.
pub fn tunnelfile(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // The parser reads key files that the configuration names. Configurations that could name files
    // of this machine are skipped.
    if ["dev", "proc", "sys", "tmp", "\\"].iter().any(|name| text.contains(name)) {
        return;
    }
    let source = Source { name: "tunnel.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    match file::parse(source, Path::new("/nowhere")) {
        Ok(file) => {
            let names: BTreeSet<&str> = file.entries.iter().map(|entry| entry.name.as_str()).collect();
            assert!(!names.is_empty() && names.len() == file.entries.len(), "{names:?}");
        }
        Err(refusal) => {
            assert!(!refusal.problems.is_empty());
            let wrong = Wrong::Refused(Box::new(refusal));
            assert!(!wrong.text(false).is_empty());
            let lines = text.lines().count() + 1;
            for told in wrong.lines() {
                let number =
                    told.strip_prefix("tunnel.toml:").and_then(|rest| rest.split_once(':')).map(|(line, _)| line);
                let number = number.and_then(|number| number.parse::<usize>().ok());
                assert!(number.is_some_and(|number| (1..=lines).contains(&number)), "{told}");
            }
        }
    }
}

/// A client whose request is available at once.
struct Client<'a> {
    asks: &'a [u8],
    answered: Vec<u8>,
}

impl AsyncRead for Client<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (now, later) = self.asks.split_at(into.remaining().min(self.asks.len()));
        into.put_slice(now);
        self.asks = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.answered.extend_from_slice(from);
        Poll::Ready(Ok(from.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Head of a request: the lines before its first empty line. Empty lines before the head are
/// ignored (RFC 9112, section 2.2).
fn head(request: &str) -> String {
    let is_empty = |line: &&str| line.trim_end_matches('\r').is_empty();
    request.split('\n').skip_while(is_empty).take_while(|line| !is_empty(line)).collect::<Vec<_>>().join("\n")
}

/// Serves an HTTP request for metrics. Checks that there is at most one answer, and that only a
/// request for the metrics receives them.
///
/// # Panics
///
/// If a check fails, or the system provides no event loop.
pub fn http(data: &[u8]) {
    let board = Board::default();
    let answer = guarded(move |request| metrics::answer(request, &board), true);
    let mut client = Client { asks: data, answered: Vec::new() };
    let has_asked = Rc::new(Cell::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("an event loop");
    runtime.block_on(attend(&mut client, answer, Rc::clone(&has_asked)));
    let answered = String::from_utf8_lossy(&client.answered);
    if answered.is_empty() {
        return;
    }
    let status = answered.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
    match status {
        Some("200") => {
            let asked = head(&String::from_utf8_lossy(data));
            assert!(has_asked.get() && asked.contains("GET ") && asked.contains("/metrics"), "{asked:?}");
            assert!(answered.contains("meshpace_tunnel_build_info") && !asked.contains("Origin: http://other"));
        }
        Some("403" | "404" | "413" | "421") => assert!(has_asked.get()),
        Some("400" | "414" | "431" | "505") => assert!(!has_asked.get(), "{answered}"),
        other => panic!("{other:?}: {answered}"),
    }
    assert_eq!(answered.matches("HTTP/1.").count(), 1, "{answered}");
}
