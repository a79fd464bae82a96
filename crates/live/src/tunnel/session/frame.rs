//! Frames of a session: what stands in the byte streams of its two carriers, in network order.
//!
//! ```text
//! byte 0       kind: 1 OPEN, 2 ANSWER, 3 DATA, 4 CREDIT, 5 FIN, 6 RESET, 7 FLOW, 8 DATAGRAM, 9 LEAVE
//! bytes 1-4    stream, or flow of datagrams; both are numbered from 1 by who opens
//! OPEN         length of the target in a byte, the target, "host:port"
//! ANSWER       one byte: 0 connected, or why not
//! DATA         offset of the first byte in the stream (8), length (2, not 0), the bytes
//! CREDIT       offset up to which the peer may send (8)
//! FIN          offset at which the stream ends (8)
//! RESET        nothing
//! FLOW         what becomes of datagrams that wait: 0 they wait, 1 they expire, 2 the latest replaces them (1), after how many milliseconds
//!              they expire or 0 (4), length of the target in a byte, the target
//! DATAGRAM     length (2), the bytes
//! LEAVE        one byte: 0, the flow is over, or why it is refused
//! ```

use super::Violation;
use super::flow::Class;
use meshpace_core::Duration;

/// Bytes of a frame's head: kind and stream.
const HEAD: usize = 5;
/// Bytes before the payload of DATA.
pub(super) const DATA_HEAD: usize = HEAD + 10;
/// Bytes of a CREDIT or a FIN.
pub(super) const OFFSET: usize = HEAD + 8;
/// Bytes of a DATAGRAM before its payload.
pub(super) const DATAGRAM_HEAD: usize = HEAD + 2;
/// Bytes of a FLOW up to the length of its target.
const FLOW_HEAD: usize = HEAD + 6;
/// Bytes of the longest frame but DATA and DATAGRAM.
pub(super) const LONGEST: usize = FLOW_HEAD + u8::MAX as usize;

const OPEN: u8 = 1;
const ANSWER: u8 = 2;
const DATA: u8 = 3;
const CREDIT: u8 = 4;
const FIN: u8 = 5;
const RESET: u8 = 6;
const FLOW: u8 = 7;
const DATAGRAM: u8 = 8;
const LEAVE: u8 = 9;

const RELIABLE: u8 = 0;
const EXPIRING: u8 = 1;
const LATEST: u8 = 2;

/// A frame, or a part of the payload of a DATA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Frame<'a> {
    Open { stream: u32, target: String },
    Answer { stream: u32, code: u8 },
    Data { stream: u32, offset: u64, bytes: &'a [u8] },
    Credit { stream: u32, limit: u64 },
    Fin { stream: u32, end: u64 },
    Reset { stream: u32 },
    Flow { flow: u32, class: Class, target: String },
    Datagram { flow: u32, bytes: Vec<u8> },
    Leave { flow: u32, code: u8 },
}

impl Frame<'_> {
    /// Appends it. A target has 255 bytes at most, DATA 1 to 65535, DATAGRAM no more than that.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut head = |kind: u8, stream: u32| {
            out.push(kind);
            out.extend_from_slice(&stream.to_be_bytes());
        };
        match self {
            Frame::Open { stream, target } => {
                head(OPEN, *stream);
                out.push(target.len() as u8);
                out.extend_from_slice(target.as_bytes());
            }
            Frame::Answer { stream, code } => {
                head(ANSWER, *stream);
                out.push(*code);
            }
            Frame::Data { stream, offset, bytes } => {
                write_data_head(out, *stream, *offset, bytes.len());
                out.extend_from_slice(bytes);
            }
            Frame::Credit { stream, limit } => {
                head(CREDIT, *stream);
                out.extend_from_slice(&limit.to_be_bytes());
            }
            Frame::Fin { stream, end } => {
                head(FIN, *stream);
                out.extend_from_slice(&end.to_be_bytes());
            }
            Frame::Reset { stream } => head(RESET, *stream),
            Frame::Flow { flow, class, target } => {
                head(FLOW, *flow);
                let (class, life) = match class {
                    Class::Reliable => (RELIABLE, 0),
                    Class::Expiring(life) => (EXPIRING, u32::try_from(life.0 / MILLISECOND).unwrap_or(u32::MAX)),
                    Class::Latest => (LATEST, 0),
                };
                out.push(class);
                out.extend_from_slice(&life.to_be_bytes());
                out.push(target.len() as u8);
                out.extend_from_slice(target.as_bytes());
            }
            Frame::Datagram { flow, bytes } => {
                write_datagram_head(out, *flow, bytes.len());
                out.extend_from_slice(bytes);
            }
            Frame::Leave { flow, code } => {
                head(LEAVE, *flow);
                out.push(*code);
            }
        }
    }
}

/// Nanoseconds.
const MILLISECOND: u64 = Duration::from_millis(1).0;

/// Appends what stands before the `length` bytes of a DATAGRAM.
pub(super) fn write_datagram_head(out: &mut Vec<u8>, flow: u32, length: usize) {
    out.push(DATAGRAM);
    out.extend_from_slice(&flow.to_be_bytes());
    out.extend_from_slice(&(length as u16).to_be_bytes());
}

/// Appends what stands before the `length` bytes of a DATA.
pub(super) fn write_data_head(out: &mut Vec<u8>, stream: u32, offset: u64, length: usize) {
    out.push(DATA);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&(length as u16).to_be_bytes());
}

/// The payload of a DATA that is being read.
#[derive(Clone, Copy, Debug)]
struct Payload {
    stream: u32,
    offset: u64,
    left: usize,
}

/// Reads frames from bytes that come in any pieces. It keeps [`LONGEST`] bytes at most, for the payload of a DATA is handed on as it comes, and
/// one datagram.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    head: Vec<u8>,
    payload: Option<Payload>,
    datagram: Option<Datagram>,
}

/// A DATAGRAM that is being read.
#[derive(Debug)]
struct Datagram {
    flow: u32,
    length: usize,
    bytes: Vec<u8>,
}

impl Reader {
    /// The next frame of `bytes`, which loses what was taken; none if the rest has to come first.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Violation> {
        if let Some(Payload { stream, offset, left }) = self.payload {
            let Some((taken, rest)) =
                bytes.split_at_checked(left.min(bytes.len())).filter(|(taken, _)| !taken.is_empty())
            else {
                return Ok(None);
            };
            *bytes = rest;
            let left = left - taken.len();
            self.payload = (left > 0).then_some(Payload { stream, offset: offset + taken.len() as u64, left });
            return Ok(Some(Frame::Data { stream, offset, bytes: taken }));
        }
        if let Some(Datagram { flow, length, bytes: mut got }) = self.datagram.take() {
            let (taken, rest) = bytes.split_at((length - got.len()).min(bytes.len()));
            got.extend_from_slice(taken);
            *bytes = rest;
            if got.len() == length {
                return Ok(Some(Frame::Datagram { flow, bytes: got }));
            }
            self.datagram = Some(Datagram { flow, length, bytes: got });
            return Ok(None);
        }
        loop {
            let wanted = wanted(&self.head)?;
            if wanted == self.head.len() {
                break;
            }
            let (taken, rest) = bytes.split_at((wanted - self.head.len()).min(bytes.len()));
            self.head.extend_from_slice(taken);
            *bytes = rest;
            if self.head.len() < wanted {
                return Ok(None);
            }
        }
        let head = std::mem::take(&mut self.head);
        let frame = self.frame(&head, bytes);
        self.head = head;
        self.head.clear();
        frame
    }

    /// A head that is whole. Of DATA the payload begins.
    fn frame<'a>(&mut self, head: &[u8], bytes: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Violation> {
        let stream = u32::from_be_bytes(array(head, 1));
        let body = &head[HEAD..];
        Ok(Some(match head[0] {
            OPEN => Frame::Open { stream, target: target(&body[1..])? },
            FLOW => {
                let life = u64::from(u32::from_be_bytes(array(body, 1)));
                let class = match body[0] {
                    RELIABLE => Class::Reliable,
                    EXPIRING => Class::Expiring(Duration::from_millis(life)),
                    LATEST => Class::Latest,
                    _ => return Err(Violation("datagrams of no known class")),
                };
                Frame::Flow { flow: stream, class, target: target(&body[FLOW_HEAD - HEAD..])? }
            }
            DATAGRAM => {
                let length = usize::from(u16::from_be_bytes(array(body, 0)));
                self.datagram = Some(Datagram { flow: stream, length, bytes: Vec::new() });
                return self.next(bytes);
            }
            LEAVE => Frame::Leave { flow: stream, code: body[0] },
            ANSWER => Frame::Answer { stream, code: body[0] },
            DATA => {
                let offset = u64::from_be_bytes(array(body, 0));
                let left = usize::from(u16::from_be_bytes(array(body, 8)));
                if left == 0 || offset > u64::MAX / 2 {
                    return Err(Violation("data without bytes, or beyond the end of every stream"));
                }
                self.payload = Some(Payload { stream, offset, left });
                return self.next(bytes);
            }
            CREDIT => Frame::Credit { stream, limit: u64::from_be_bytes(array(body, 0)) },
            FIN => Frame::Fin { stream, end: u64::from_be_bytes(array(body, 0)) },
            _ => Frame::Reset { stream },
        }))
    }

    /// Bytes it keeps.
    pub(crate) fn kept(&self) -> usize {
        self.head.len() + self.datagram.as_ref().map_or(0, |datagram| datagram.bytes.len())
    }
}

/// A target, "host:port".
fn target(bytes: &[u8]) -> Result<String, Violation> {
    let target = std::str::from_utf8(bytes).ok().filter(|target| target.rsplit_once(':').is_some());
    target.map(str::to_owned).ok_or(Violation("a target that is none"))
}

/// The bytes at a place of a head that has them.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

/// How long the head has to be to be whole, or to tell more of its length.
fn wanted(head: &[u8]) -> Result<usize, Violation> {
    let Some(kind) = head.first() else { return Ok(1) };
    Ok(match *kind {
        OPEN if head.len() <= HEAD => HEAD + 1,
        OPEN => HEAD + 1 + usize::from(head[HEAD]),
        ANSWER | LEAVE => HEAD + 1,
        DATA => DATA_HEAD,
        CREDIT | FIN => OFFSET,
        RESET => HEAD,
        FLOW if head.len() < FLOW_HEAD => FLOW_HEAD,
        FLOW => FLOW_HEAD + usize::from(head[FLOW_HEAD - 1]),
        DATAGRAM => DATAGRAM_HEAD,
        _ => return Err(Violation("a frame of no known kind")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame<'static>> {
        vec![
            Frame::Open { stream: 1, target: "host:80".into() },
            Frame::Answer { stream: 1, code: 2 },
            Frame::Data { stream: 0x0102_0304, offset: 5, bytes: b"hello" },
            Frame::Credit { stream: 1, limit: 1 << 40 },
            Frame::Fin { stream: 1, end: 10 },
            Frame::Reset { stream: 7 },
            Frame::Flow { flow: 2, class: Class::Expiring(Duration::from_millis(300)), target: "host:53".into() },
            Frame::Flow { flow: 3, class: Class::Latest, target: "h:1".into() },
            Frame::Flow { flow: 4, class: Class::Reliable, target: "h:1".into() },
            Frame::Datagram { flow: 2, bytes: b"datagram".to_vec() },
            Frame::Datagram { flow: 2, bytes: Vec::new() },
            Frame::Leave { flow: 2, code: 1 },
        ]
    }

    #[test]
    fn frames_have_the_layout_of_the_page() {
        // docs/tunnel-session.md, frames.
        let expected: [&[u8]; 12] = [
            b"\x01\0\0\0\x01\x07host:80",
            b"\x02\0\0\0\x01\x02",
            b"\x03\x01\x02\x03\x04\0\0\0\0\0\0\0\x05\0\x05hello",
            b"\x04\0\0\0\x01\0\0\x01\0\0\0\0\0",
            b"\x05\0\0\0\x01\0\0\0\0\0\0\0\x0a",
            b"\x06\0\0\0\x07",
            b"\x07\0\0\0\x02\x01\0\0\x01\x2c\x07host:53",
            b"\x07\0\0\0\x03\x02\0\0\0\0\x03h:1",
            b"\x07\0\0\0\x04\0\0\0\0\0\x03h:1",
            b"\x08\0\0\0\x02\0\x08datagram",
            b"\x08\0\0\0\x02\0\0",
            b"\x09\0\0\0\x02\x01",
        ];
        for (frame, expected) in frames().iter().zip(expected) {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            assert_eq!(bytes, expected, "{frame:?}");
        }
    }

    #[test]
    fn frames_are_read_as_they_were_written_in_whatever_pieces() {
        let mut bytes = Vec::new();
        frames().iter().for_each(|frame| frame.write(&mut bytes));
        assert_eq!(bytes[..13], *b"\x01\0\0\0\x01\x07host:80");
        assert_eq!(bytes[19..39], *b"\x03\x01\x02\x03\x04\0\0\0\0\0\0\0\x05\0\x05hello");
        for piece in 1..bytes.len() {
            let (mut reader, mut got) = (Reader::default(), Vec::new());
            let mut hello = Vec::new();
            for mut chunk in bytes.chunks(piece) {
                while let Some(frame) = reader.next(&mut chunk).unwrap() {
                    match frame {
                        Frame::Data { stream: 0x0102_0304, offset, bytes } if bytes.len() < 5 => {
                            assert_eq!(offset, 5 + hello.len() as u64);
                            hello.extend_from_slice(bytes);
                            if hello.len() == 5 {
                                got.push(Frame::Data { stream: 0x0102_0304, offset: 5, bytes: b"hello" });
                            }
                        }
                        Frame::Data { bytes, stream, offset } => {
                            assert_eq!(bytes, b"hello");
                            got.push(Frame::Data { stream, offset, bytes: b"hello" });
                        }
                        Frame::Open { stream, target } => got.push(Frame::Open { stream, target }),
                        Frame::Answer { stream, code } => got.push(Frame::Answer { stream, code }),
                        Frame::Credit { stream, limit } => got.push(Frame::Credit { stream, limit }),
                        Frame::Fin { stream, end } => got.push(Frame::Fin { stream, end }),
                        Frame::Reset { stream } => got.push(Frame::Reset { stream }),
                        Frame::Flow { flow, class, target } => got.push(Frame::Flow { flow, class, target }),
                        Frame::Datagram { flow, bytes } => got.push(Frame::Datagram { flow, bytes }),
                        Frame::Leave { flow, code } => got.push(Frame::Leave { flow, code }),
                    }
                }
                assert!(chunk.is_empty() && reader.kept() <= LONGEST);
            }
            assert_eq!(got, frames(), "pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_frame_is_told() {
        for bad in [
            &b"\0"[..],
            b"\x0a",
            b"\xff",
            b"\x07\0\0\0\x01\x03\0\0\0\0\x03h:1",
            b"\x01\0\0\0\x01\0",
            b"\x01\0\0\0\x01\x04host",
            b"\x01\0\0\0\x01\x03\xff:1",
        ] {
            assert!(Reader::default().next(&mut &*bad).is_err(), "{bad:?}");
        }
        // A datagram without bytes is one, whatever comes next.
        let mut alone = &b"\x08\0\0\0\x02\0\0"[..];
        assert_eq!(Reader::default().next(&mut alone).unwrap(), Some(Frame::Datagram { flow: 2, bytes: Vec::new() }));
        // Data without bytes, and at an offset that no stream has.
        for (offset, length) in [(0, 0), (u64::MAX, 1)] {
            let mut bytes = Vec::new();
            write_data_head(&mut bytes, 1, offset, length);
            assert!(Reader::default().next(&mut &bytes[..]).is_err(), "{offset}, {length}");
        }
    }
}
