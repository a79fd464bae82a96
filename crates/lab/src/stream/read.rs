//! Reading of a stream.

use super::{FORMAT, Header, STREAM};
use serde_json::Value;
use std::io::BufRead;

/// Content of a line. Times are nanoseconds from the start of the run. `docs/record-stream.md`
/// explains all fields.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the page of the format has the meaning and unit of every place")]
pub enum Event {
    /// A node begins to send a frame. The fields are time, number, sender, addressee (`None` for a
    /// broadcast), kind, bytes, time on the air, duration field, whether it is a retransmission,
    /// and the content as in the line.
    Frame {
        time: u64,
        number: u64,
        from: u16,
        to: Option<u16>,
        kind: String,
        bytes: u64,
        air: u64,
        nav: u64,
        retry: bool,
        body: Value,
    },
    /// A node has decoded a frame.
    Got { time: u64, number: u64, node: u16, dbm: f64 },
    /// A frame was lost at its addressee because of another frame.
    Collision { time: u64, number: u64, node: u16 },
    /// A transport passes a packet to the network.
    Sent { time: u64, node: u16, packet: u64, flow: u16, what: String, bytes: u64 },
    /// A packet has reached the transport at its destination.
    Arrived { time: u64, node: u16, packet: u64, flow: u16, hops: u64 },
    /// A packet was dropped.
    Lost { time: u64, node: u16, why: String, packet: Option<u64>, flow: Option<u16>, next_hop: Option<u16> },
    /// A flow begins that is not in the header.
    Begin { time: u64, flow: u16, from: u16, to: u16, transport: String },
    /// Route of a flow. `nodes` is `None` without a route.
    Route { time: u64, flow: u16, nodes: Option<Vec<u16>> },
    /// Number of packets in the queue of a node.
    Queue { time: u64, node: u16, packets: u64 },
    /// Sample of a flow.
    Flow {
        time: u64,
        flow: u16,
        delivered: u64,
        segments_sent: u64,
        retransmissions: u64,
        timeouts: Option<u64>,
        window: Option<f64>,
        interval_ns: Option<f64>,
        rtt_ns: Option<f64>,
        cov: Option<f64>,
    },
    /// Position of a moving node, metres.
    Place { time: u64, node: u16, x: f64, y: f64 },
    /// End of the run.
    End { time: u64, frames: u64, fingerprint: String },
    /// A kind of line that this version does not know.
    Other(Value),
}

/// Iterator over the events of a stream.
pub struct Reader<R> {
    lines: std::io::Lines<R>,
    /// Number of the line that was read last.
    line: usize,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The input is not a stream of a run, or its format is newer than this version. The message
    /// says what to do.
    pub fn new(input: R) -> Result<(Header, Reader<R>), String> {
        let mut lines = input.lines();
        let first = lines.next().transpose().map_err(|error| error.to_string())?.unwrap_or_default();
        let value: Value = serde_json::from_str(&first).unwrap_or_default();
        if value.get("stream").and_then(Value::as_str) != Some(STREAM) {
            return Err("not a recorded run; `meshpace run FILE --record RUN` writes one".to_owned());
        }
        let format = value.get("format").and_then(Value::as_u64).unwrap_or(0);
        if format > u64::from(FORMAT) {
            return Err(format!(
                "it has format {format}, but this version reads formats up to {FORMAT}: use a newer version of meshpace"
            ));
        }
        let header = serde_json::from_value(value).map_err(|error| format!("line 1: {error}"))?;
        Ok((header, Reader { lines, line: 1 }))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, String>;

    /// The next event. An error gives the number of the line that cannot be read, and the reason.
    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?;
        self.line += 1;
        let event = line.map_err(|error| error.to_string()).and_then(|line| {
            let value: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            event(value).ok_or_else(|| "it does not have the fields of its kind".to_owned())
        });
        Some(event.map_err(|why| format!("line {}: {why}", self.line)))
    }
}

fn event(value: Value) -> Option<Event> {
    let places = value.as_array()?;
    let whole = |place: usize| places.get(place)?.as_u64();
    let node = |place: usize| u16::try_from(whole(place)?).ok();
    let text = |place: usize| Some(places.get(place)?.as_str()?.to_owned());
    let number = |place: usize| places.get(place)?.as_f64();
    let time = whole(1);
    Some(match places.first()?.as_str()? {
        "frame" => Event::Frame {
            time: time?,
            number: whole(2)?,
            from: node(3)?,
            to: node(4),
            kind: text(5)?,
            bytes: whole(6)?,
            air: whole(7)?,
            nav: whole(8)?,
            retry: places.get(9)?.as_bool()?,
            body: places.get(10)?.clone(),
        },
        "got" => Event::Got { time: time?, number: whole(2)?, node: node(3)?, dbm: number(4)? },
        "collision" => Event::Collision { time: time?, number: whole(2)?, node: node(3)? },
        "sent" => Event::Sent {
            time: time?,
            node: node(2)?,
            packet: whole(3)?,
            flow: node(4)?,
            what: text(5)?,
            bytes: whole(6)?,
        },
        "arrived" => Event::Arrived { time: time?, node: node(2)?, packet: whole(3)?, flow: node(4)?, hops: whole(5)? },
        "lost" => Event::Lost {
            time: time?,
            node: node(2)?,
            why: text(3)?,
            packet: whole(4),
            flow: node(5),
            next_hop: node(6),
        },
        "begin" => Event::Begin { time: time?, flow: node(2)?, from: node(3)?, to: node(4)?, transport: text(5)? },
        "route" => {
            let nodes = match places.get(3)? {
                Value::Null => None,
                list => Some(serde_json::from_value(list.clone()).ok()?),
            };
            Event::Route { time: time?, flow: node(2)?, nodes }
        }
        "queue" => Event::Queue { time: time?, node: node(2)?, packets: whole(3)? },
        "flow" => Event::Flow {
            time: time?,
            flow: node(2)?,
            delivered: whole(3)?,
            segments_sent: whole(4)?,
            retransmissions: whole(5)?,
            timeouts: whole(6),
            window: number(7),
            interval_ns: number(8),
            rtt_ns: number(9),
            cov: number(10),
        },
        "place" => Event::Place { time: time?, node: node(2)?, x: number(3)?, y: number(4)? },
        "end" => Event::End { time: time?, frames: whole(2)?, fingerprint: text(3)? },
        _ => Event::Other(value),
    })
}
