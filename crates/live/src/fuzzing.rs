//! Test functions for fuzzers. Each takes bytes of an untrusted sender and panics if something is
//! wrong.
//!
//! They are built only for fuzzers (`--cfg fuzzing`, as `cargo fuzz` does; the targets are in
//! `fuzz/`) and for this crate's tests. The tests run each function on the inputs in `fuzz/corpus`
//! and on mutations of them.

use crate::generator::udp;
use crate::netlink::Message;
use crate::sys::TcpInfo;
use crate::tpa::{keys, secrets::Secrets};
use crate::tunnel::{Beginning, decode, missing};
use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};

pub use crate::tcp::fuzzing::{packets, stack};
pub use crate::tunnel::fuzzing::{session, socks};

/// Parses the first bytes from an untrusted sender: the preamble of a stream or carrier of a
/// tunnel, which arrives in pieces, or a datagram of the generator.
///
/// # Panics
///
/// If more bytes are awaited than a preamble has, or if writing a parsed value does not give the
/// bytes that were read.
pub fn beginnings(data: &[u8]) {
    let mut read = 0;
    let whole = loop {
        match data.get(..read).map(missing) {
            Some(Ok(0)) => break Some(&data[..read]),
            Some(Ok(more)) => read += more,
            Some(Err(_)) | None => break None,
        }
    };
    assert!(read <= 257 + 1);
    match whole.map(decode) {
        Some(Ok(Beginning::Stream(target))) => assert_eq!(&data[2..read], target.as_bytes()),
        Some(Ok(Beginning::Carrier(carrier, name))) => {
            assert_eq!(data[..read], [&[2, carrier as u8], &name[..]].concat())
        }
        Some(Err(_)) | None => {}
    }
    let _ = decode(data);
    if let Some((kind, number, token)) = udp::understand(data) {
        assert!(data.starts_with(&udp::header(kind, number, token)));
    }
}

/// Parses an answer of the kernel about routes, devices and connections. A message that is parsed
/// and written again has the same meaning.
///
/// # Panics
///
/// If this condition is violated.
pub fn answers(data: &[u8]) {
    let read = |bytes: &[u8]| match NetlinkMessage::<Message>::deserialize(bytes).ok()?.payload {
        NetlinkPayload::InnerMessage(message) => Some(message),
        _ => None,
    };
    let mut right = data.to_vec();
    if let Some(length) = right.get_mut(..4) {
        length.copy_from_slice(&(data.len() as u32).to_ne_bytes());
    }
    let _ = read(data);
    if let Some(message) = read(&right) {
        let (devices, name) = (message.devices(), message.name());
        assert!(devices.len() * 4 <= data.len() && name.is_none_or(|name| name.len() < data.len()));
        let told = format!("{message:?}");
        let _ = (message.bits(), message.priority(), message.device(), message.set_mtu(), message.mtu());
        let mut again = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
        again.finalize();
        let mut written = vec![0; again.buffer_len()];
        again.serialize(&mut written);
        assert_eq!(read(&written).map(|message| format!("{message:?}")), Some(told));
    }
    let mut info = [0; 256];
    let length = data.len().min(info.len());
    info[..length].copy_from_slice(&data[..length]);
    let _ = TcpInfo::of(&info);
}

/// Parses a text with keys: a key file, or a key log.
///
/// # Panics
///
/// If keys that are parsed, written and parsed again differ, or an error names a line that does not
/// exist.
pub fn keyfiles(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match keys::of_text(text) {
        Ok(found) => {
            let written: Vec<String> = found.iter().map(keys::write).collect();
            assert_eq!(keys::of_text(&written.join("\n")), Ok(found));
        }
        Err(line) => assert!((1..=text.lines().count()).contains(&line)),
    }
    match Secrets::of(text) {
        Ok(mut secrets) => {
            assert!(secrets.len() <= text.lines().count());
            // This is the tag in the key log among the corpus inputs.
            let datagram = [&b"ABCDEFGH"[..], data].concat();
            let is_known = secrets.know(&datagram);
            assert!(secrets.open(&datagram).is_none(), "nobody sealed it (known: {is_known})");
        }
        Err(why) => assert!(why.starts_with("line ")),
    }
}

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_beginning_is_read_as_far_as_it_goes() {
        drive("beginnings", super::beginnings);
    }

    #[test]
    fn any_answer_of_the_kernel_is_read_as_it_would_be_written() {
        drive("answers", super::answers);
    }

    #[test]
    fn any_file_of_keys_is_read_or_the_line_is_told() {
        drive("keyfiles", super::keyfiles);
    }

    #[test]
    fn any_packet_is_a_segment_or_is_passed_over() {
        drive("packets", super::packets);
    }

    #[test]
    fn any_events_leave_what_was_read_in_order() {
        drive("stack", super::stack);
    }

    #[test]
    fn any_bytes_of_a_far_end_cost_no_more_than_was_promised() {
        drive("session", super::session);
    }

    #[test]
    fn any_request_by_socks_names_a_target_or_is_refused() {
        drive("socks", super::socks);
    }
}
