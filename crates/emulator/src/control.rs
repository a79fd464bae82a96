//! Requests of other processes to a running emulation. A request is one line over a socket in the
//! run's directory; so is the answer.

use crate::plan::LinkChange;
use crate::realtime::Request;
use crate::state::State;
use meshpace_core::NodeId;
use meshpace_live::poll::Waker;
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

/// Name of the socket in the run's directory.
const SOCKET: &str = "control";
/// Time limit for a request and for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Delay before the next attempt to accept a connection, after an attempt that failed.
const RETRY: Duration = Duration::from_millis(100);
/// Longest request, bytes.
const LONGEST: u64 = 1024;

/// Connection to the loop of the emulation: sends requests and wakes the loop.
#[derive(Clone, Debug)]
pub struct Line {
    /// Channel to the loop.
    pub requests: Sender<Request>,
    /// Waker of the loop.
    pub waker: Waker,
}

impl Line {
    /// Sends a request. Returns false if the loop has ended.
    pub fn send(&self, request: Request) -> bool {
        let sent = self.requests.send(request).is_ok();
        self.waker.wake();
        sent
    }
}

/// Starts a thread that answers requests about a mesh of `nodes` nodes.
pub fn listen(directory: &Path, nodes: usize, line: Line) -> io::Result<()> {
    let listener = UnixListener::bind(directory.join(SOCKET))?;
    thread::spawn(move || {
        for stream in listener.incoming() {
            match stream {
                // An error is ignored: a client that disconnects before the answer does not need
                // it.
                Ok(stream) => drop(serve(&stream, nodes, &line)),
                #[expect(
                    clippy::disallowed_methods,
                    reason = "without a free descriptor it fails at once, again and again"
                )]
                Err(_) => thread::sleep(RETRY),
            }
        }
    });
    Ok(())
}

fn serve(stream: &UnixStream, nodes: usize, line: &Line) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut question = String::new();
    BufReader::new(io::Read::take(stream, LONGEST)).read_line(&mut question)?;
    let answer = match answer(question.trim(), nodes, line) {
        Ok(answer) => format!("ok {answer}\n"),
        Err(why) => format!("error {why}\n"),
    };
    let mut stream = stream;
    stream.write_all(answer.as_bytes())
}

fn answer(question: &str, nodes: usize, line: &Line) -> Result<String, String> {
    let ended = || "the emulation has ended".to_owned();
    if question == "state" {
        let (told, state) = channel();
        line.send(Request::State(told));
        return state.recv_timeout(TIMEOUT).map(|state| object(&state).to_string()).map_err(|_| ended());
    }
    match question.split_once(' ') {
        Some(("link", change)) => {
            let change = LinkChange::parse(change, nodes)?;
            let (done, told) = channel();
            line.send(Request::Link(change, done));
            told.recv_timeout(TIMEOUT).map(|()| String::new()).map_err(|_| ended())
        }
        _ => Err(format!("`{question}` is not a request")),
    }
}

/// State in the form that `meshpace emulate top --json` prints. Times are in seconds of the mesh,
/// counts begin at the start.
fn object(state: &State) -> Value {
    let number = |node: &NodeId| node.0;
    let streams: Vec<Value> = state
        .traffic
        .streams()
        .iter()
        .zip(&state.paths)
        .map(|(stream, path)| {
            json!({
                "from": stream.from.0,
                "to": if stream.to.is_broadcast() { Value::Null } else { json!(stream.to.0) },
                "protocol": stream.conversation.protocol,
                "ports": stream.conversation.ports,
                "path": path.iter().map(number).collect::<Vec<u16>>(),
                "packets_sent": stream.whole.packets_sent,
                "packets_delivered": stream.whole.packets_delivered,
                "segments_sent": stream.whole.segments_sent,
                "retransmissions": stream.whole.retransmissions,
                "delivered_bytes": stream.whole.delivered_bytes,
            })
        })
        .collect();
    let late = &state.lateness;
    json!({
        "time_s": state.now.as_secs_f64(),
        "frames": state.frames,
        "lost": {"queue": state.losses.queue, "link": state.losses.link, "routing": state.losses.routing},
        "late": {
            "deliveries": late.deliveries,
            "p50_s": late.p50_s,
            "p99_s": late.p99_s,
            "max_s": late.max_s,
            "later_than_slot": late.later_than_slot,
            "later_than_air_time": late.later_than_air_time,
        },
        "streams": streams,
        "queues": state.queues,
    })
}

/// Sends a request to the run in `directory` and returns the answer.
///
/// # Errors The refusal of the request, or the reason why it could not be sent.
pub fn ask(directory: &Path, question: &str) -> Result<String, String> {
    let exchange = || {
        let mut stream = UnixStream::connect(directory.join(SOCKET))?;
        stream.set_read_timeout(Some(TIMEOUT * 2))?;
        stream.write_all(format!("{question}\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        Ok::<String, io::Error>(answer)
    };
    let answer = exchange().map_err(|error| format!("{}: {error}", directory.display()))?;
    match answer.trim_end().split_once(' ') {
        Some(("ok", answer)) => Ok(answer.to_owned()),
        Some(("error", why)) => Err(why.to_owned()),
        _ if answer.trim_end() == "ok" => Ok(String::new()),
        _ => Err(format!("{}: no answer", directory.display())),
    }
}
