//! Entry points for fuzzers: functions that decode arbitrary bytes as data of programs, of the
//! kernel and of files. They panic if a check fails.
//!
//! They are built by fuzzers (`--cfg fuzzing`, as `cargo fuzz` does; `fuzz/` has the targets) and
//! by this crate's tests. The tests run each function on the inputs in `fuzz/corpus` and on
//! mutations of them.

use crate::hwsim::config::Config;
use crate::hwsim::message::{self, Received};
use crate::{address, frame, plan, program};
use meshpace_core::NodeId;

/// Number of nodes of the mesh.
const NODES: usize = 8;

/// Decodes a frame that a program sends. Checks that the fields read lie within the frame, that the
/// changes of a router keep the checksum as correct as it was, and that only ARP requests for
/// addresses of nodes are answered.
///
/// # Panics
///
/// If a check fails.
pub fn frames(data: &[u8]) {
    let Some((&[asker, ttl], bytes)) = data.split_first_chunk::<2>() else { return };
    let facts = frame::facts(bytes);
    assert!(facts.payload as usize <= bytes.len());
    assert!(facts.tcp.is_none() || facts.conversation.protocol == Some(6));
    if let Some(mac) = frame::destination(bytes)
        && let Some(node) = address::node_of_mac(mac, NODES)
    {
        assert!(node == NodeId::BROADCAST || address::mac(node) == mac);
    }
    let asker = NodeId(u16::from(asker) % NODES as u16);
    if let Some(reply) = frame::arp_reply(bytes, asker, NODES) {
        assert!(reply.starts_with(&bytes[frame::HEADER + 8..frame::HEADER + 14]));
        assert_eq!(frame::arp_reply(&reply, asker, NODES), None, "a reply is not answered");
    }
    for is_marked in [false, true] {
        let mut changed = bytes.to_vec();
        frame::arrive(&mut changed, ttl, is_marked);
        let sums = [bytes, &changed].map(header_sum);
        assert_eq!(sums[0], sums[1], "the checksum is as right as it was");
        let differs = |at: &usize| bytes[*at] != changed[*at];
        assert!((0..bytes.len()).filter(differs).all(|at| [15, 22, 24, 25].contains(&at)));
    }
}

/// Sum of the 16-bit words of the shortest IPv4 header, modulo 0xffff. It is 0 if the checksum is
/// correct. `None` if there is no such header.
fn header_sum(frame: &[u8]) -> Option<u64> {
    let header = frame.get(frame::HEADER..frame::HEADER + 20)?;
    let sum: u64 = header.chunks(2).map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    Some(sum % 0xffff)
}

/// Decodes a datagram of mac80211_hwsim. Checks that its messages lie within it, and that answers
/// to them can be encoded.
///
/// # Panics
///
/// If a check fails.
pub fn hwsim(data: &[u8]) {
    for received in message::read(data) {
        let Received::Transmission(sent) = received else { continue };
        assert!(sent.frame.len() < data.len());
        let most: u32 = sent.series().iter().map(|(_, attempts)| u32::from(*attempts)).sum();
        for made in [0, 1, most, u32::MAX] {
            let tried = sent.tried(made);
            let told: u32 = tried.iter().filter(|rate| rate.index >= 0).map(|rate| u32::from(rate.count)).sum();
            assert_eq!(told, made.min(most), "{sent:?}");
        }
        for written in
            [message::receive(28, sent.radio, &sent, -60), message::status(28, &sent, most, true, i32::from(data[0]))]
        {
            assert_eq!(message::read(&written).len(), 1);
        }
    }
}

/// Decodes a text as a configuration of wmediumd, and as command-line arguments that name nodes.
///
/// # Panics
///
/// If a configuration that was accepted is not a valid medium.
pub fn media(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse(text) {
        Ok(config) => {
            let radios = config.radios.len();
            assert!(radios > 0 && config.snr.len() == radios);
            assert!(config.snr.iter().all(|row| row.len() == radios && row.iter().all(|snr| snr.is_finite())));
        }
        Err(why) => assert!(!why.is_empty()),
    }
    if let Ok(node) = address::parse_node(text, NODES) {
        assert!(node.index() < NODES);
    }
    let _ = plan::LinkChange::parse(text, NODES);
    let _ = program::Spec::parse(text, NODES);
}

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_frame_is_carried() {
        drive("frames", super::frames);
    }

    #[test]
    fn any_datagram_of_the_kernel_is_read_as_far_as_it_goes() {
        drive("hwsim", super::hwsim);
    }

    #[test]
    fn any_configuration_is_read_or_refused() {
        drive("media", super::media);
    }
}
