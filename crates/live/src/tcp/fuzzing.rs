//! Test functions for fuzzers: decoding of IP packets, and the connections of a stack.

use super::packet::{self, Packet};
use super::{Interface, Limits, Stack};
use crate::poll::{Poller, Token};
use meshpace_core::{Duration, Time};
use meshpace_transport::checksum::sum;
use meshpace_transport::tcp::wire::{Addresses, Blocks, Check, Header, Options};
use meshpace_transport::tcp::{self, Flags};
use meshpace_transport::train;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Computes a checksum and stores it at `at`, if there is room.
fn set_checksum(bytes: &mut [u8], at: usize, until: usize, start: u16) {
    let until = until.min(bytes.len());
    if at + 2 <= until {
        bytes[at..at + 2].fill(0);
        let checksum = !sum(&bytes[..until], start);
        bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Corrects the length and checksum of an IPv4 packet, and the checksum of the TCP segment or ICMP
/// message in it.
fn set_right(packet: &mut [u8]) {
    let Some(first) = packet.first() else { return };
    let header = usize::from(first & 0xf) * 4;
    if header < 20 || packet.len() < header {
        return;
    }
    let length = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&length);
    let pseudo = [&packet[12..20], &[0, packet[9]], &((packet.len() - header) as u16).to_be_bytes()].concat();
    let protocol = packet[9];
    let body = &mut packet[header..];
    let whole = body.len();
    match protocol {
        1 => set_checksum(body, 2, whole, 0),
        6 => set_checksum(body, 16, whole, sum(&pseudo, 0)),
        _ => {}
    }
    set_checksum(packet, 10, header, 0);
}

/// Decodes an IP packet as given, and with corrected lengths and checksums. A segment that is
/// decoded and encoded again has the same meaning.
///
/// # Panics
///
/// If this condition is violated.
pub fn packets(data: &[u8]) {
    let _ = packet::decode(data, Check::Full).is_ok_and(|packet| !format!("{packet:?}").is_empty());
    let mut right = data.to_vec();
    set_right(&mut right);
    match packet::decode(&right, Check::Offloaded) {
        Ok(Packet::Tcp { addresses, header, payload, .. }) => {
            assert!(payload.len() < right.len());
            let options = Options { one_way_us: None, train: None, blocks: Blocks::default(), ..header.options };
            let header = Header { options, ..header };
            let mut out = Vec::new();
            let whole = packet::encode(&mut out, &header, addresses, (payload, &[]), 7, true);
            let Ok(Packet::Tcp { header: again, payload: same, .. }) = packet::decode(whole, Check::Full) else {
                panic!("what was written cannot be read: {header:?}");
            };
            assert_eq!((again, same), (header, payload));
        }
        Ok(Packet::Unreachable(error)) => assert!(matches!(error.kind, 3 | 11) && !error.to_string().is_empty()),
        Err(error) => assert!(error != packet::Error::IpChecksum && !error.to_string().is_empty()),
    }
}

/// Current time, packets that wait for the stack, and the last packet that the stack sent.
#[derive(Default)]
struct State {
    now: Time,
    waiting: VecDeque<Vec<u8>>,
    sent: Vec<u8>,
}

/// Interface of the stack under test.
#[derive(Clone, Default)]
struct Plug(Rc<RefCell<State>>);

impl Interface for Plug {
    fn address(&self) -> Ipv4Addr {
        OURS
    }

    fn mtu(&self) -> u16 {
        1500
    }

    fn now(&self) -> Time {
        self.0.borrow().now
    }

    fn watch(&self, _: &Poller, _: Token) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let packet = self.0.borrow_mut().waiting.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
        into[..packet.len()].copy_from_slice(&packet);
        Ok(packet.len())
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let read = packet::decode(packet, Check::Full);
        assert!(packet.len() <= 1500 && matches!(read, Ok(Packet::Tcp { .. })), "{read:?}");
        self.0.borrow_mut().sent = packet.to_vec();
        Ok(())
    }
}

/// Sequence number of every SYN of a peer in this test.
const FIRST: u32 = 0xffff_ff00;

/// Payload of `length` bytes beginning at a sequence number. The value of each byte follows from
/// its offset in the stream.
fn payload(seq: u32, length: usize) -> Vec<u8> {
    (0..length).map(|at| seq.wrapping_sub(FIRST + 1).wrapping_add(at as u32) as u8).collect()
}

/// Answer to the last packet sent, or an unrelated segment. The input bytes determine how much its
/// fields differ from correct values.
fn answer(last: Option<(Header, usize)>, mut next: impl FnMut() -> u8) -> (Header, usize) {
    let flags = Flags(next());
    let how = next();
    let away = |byte: u8| (i32::from(byte.cast_signed()) * if how & 1 == 0 { 1 } else { 1460 }) as u32;
    let mut header = Header { source: 4000 + u16::from(how >> 6), destination: 80, flags, ..Header::default() };
    let mut options = Options { mss: Some(1460), ..Options::default() };
    header.seq = FIRST.wrapping_add(1).wrapping_add(away(next()));
    if let Some((theirs, length)) = last.filter(|_| how & 2 == 0) {
        (header.source, header.destination) = (theirs.destination, theirs.source);
        let shift = u32::from(theirs.flags.has(Flags::SYN)) + u32::from(theirs.flags.has(Flags::FIN));
        header.ack = theirs.seq.wrapping_add(length as u32).wrapping_add(shift).wrapping_add(away(next()));
        if theirs.flags.has(Flags::ACK) {
            header.seq = theirs.ack.wrapping_add(away(next()));
        }
        options.timestamps = theirs.options.timestamps.map(|(value, echo)| (echo.wrapping_add(1), value));
        if how & 4 != 0 {
            options.blocks.push((header.ack.wrapping_add(away(next())), header.ack.wrapping_add(away(next()))));
        }
    }
    if how & 8 != 0 {
        options.timestamps = Some((u32::from(next()), u32::from(next())));
    }
    if flags.has(Flags::SYN) {
        header.seq = FIRST;
        options.window_scale = (how & 16 != 0).then(|| next() % 15);
        options.sack_permitted = how & 32 != 0;
        options.train = (how & 4 != 0).then_some(train::wire::Content::Offer);
    }
    header.window = u16::from(next()) << 8;
    header.options = options;
    (header, usize::from(next()) * 5)
}

/// Runs a TCP stack with a list of events. Time advances, matching and other segments arrive,
/// arbitrary packets arrive, and the application connects, writes, reads, closes and aborts.
///
/// The application reads the right bytes for each offset of the stream, even if they arrived
/// repeatedly or early. Every packet that is sent is complete, and no timer stays due for ever.
///
/// # Panics
///
/// If one of these conditions is violated.
pub fn stack(data: &[u8]) {
    let mut rest = data;
    let mut next = || {
        let (first, left) = rest.split_first()?;
        rest = left;
        Some(*first)
    };
    let plug = Plug::default();
    plug.0.borrow_mut().now = Time::ZERO + Duration::from_secs(1);
    let limits = Limits { send_buffer: 1 << 14, opening: 4, backlog: 2, buffers: 1 << 20 };
    let Ok(mut stack) = Stack::new(plug.clone(), limits) else { return };
    let (newreno, trains) = (tcp::Config::default(), train::Config::default());
    let listens = [stack.listen(80, &newreno), stack.listen(81, &trains)];
    assert!(listens.iter().all(Result::is_ok));
    let mut known = Vec::new();
    let mut read: Vec<u32> = Vec::new();
    while let Some(what) = next() {
        let byte = next().unwrap_or_default();
        let which = usize::from(byte) % known.len().max(1);
        match what % 12 {
            0 | 1 => {
                let step = Duration::from_millis(u64::from(byte) << (what >> 5));
                let now = plug.0.borrow().now.saturating_add(step);
                plug.0.borrow_mut().now = now;
            }
            2..=5 => {
                let last = plug.0.borrow().sent.clone();
                let last = match packet::decode(&last, Check::Full) {
                    Ok(Packet::Tcp { header, payload, .. }) => Some((header, payload.len())),
                    _ => None,
                };
                let mut taken = || next().unwrap_or_default();
                let (header, length) = answer(last, &mut taken);
                let bytes = payload(header.seq.wrapping_add(u32::from(header.flags.has(Flags::SYN))), length);
                let addresses = Addresses { source: PEER.octets(), destination: OURS.octets() };
                let mut out = Vec::new();
                let whole = packet::encode(&mut out, &header, addresses, (&bytes, &[]), 7, byte & 1 == 0);
                plug.0.borrow_mut().waiting.push_back(whole.to_vec());
            }
            6 => {
                let mut bytes: Vec<u8> = (0..byte % 80).map_while(|_| next()).collect();
                // The packet gets another source address, so that it does not put other bytes into
                // the streams of the peer.
                if let Some(source) = bytes.get_mut(12..16) {
                    source.copy_from_slice(&[10, 0, 0, 3]);
                }
                set_right(&mut bytes);
                plug.0.borrow_mut().waiting.push_back(bytes);
            }
            7 if known.len() < 4 => {
                let peer = SocketAddrV4::new(PEER, 4000 + u16::from(byte));
                let id = if byte & 1 == 0 { stack.connect(peer, &newreno) } else { stack.connect(peer, &trains) };
                known.extend(id);
                read.resize(known.len(), 0);
            }
            8 => {
                known.extend([80, 81].iter().filter_map(|port| stack.accept(*port)).map(|(id, _)| id));
                read.resize(known.len(), 0);
            }
            9 => drop(known.get(which).map(|id| stack.write(*id, &[what; 3000]))),
            10 => {
                if let Some(id) = known.get(which) {
                    let mut into = [0; 2000];
                    let count = stack.read(*id, &mut into);
                    let expected = payload(FIRST.wrapping_add(1).wrapping_add(read[which]), count);
                    assert_eq!(into[..count], expected, "read from {} on", read[which]);
                    read[which] = read[which].wrapping_add(count as u32);
                }
            }
            _ => {
                if let Some(id) = known.get(which) {
                    match what >> 6 {
                        0 => stack.abort(*id),
                        1 => stack.release(*id),
                        _ => stack.close(*id),
                    }
                }
            }
        }
        assert!(stack.take_packets().is_ok());
        stack.run_timers();
        assert!(stack.next_wakeup() > plug.0.borrow().now, "a timer is due for ever");
        // The limit counts connections that peers are opening, those that wait to be accepted, and
        // our own.
        let ours = known.iter().filter(|id| stack.status(**id).is_some()).count();
        assert!(stack.connections() <= ours + limits.opening + 2 * limits.backlog + 8, "{}", stack.connections());
    }
}
