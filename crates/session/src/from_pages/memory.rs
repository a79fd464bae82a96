//! Check of the memory that a connection takes, by the table of `docs/wire-memory.md`.

use super::application::Application;
use crate::handshake::InnerTransport;
use crate::port::Party;
use crate::settings::Settings;

/// Bytes of a full segment.
const SEGMENT: usize = 1460;
/// Bytes of a page of memory.
const PAGE: usize = 4 << 10;

/// "written and not acknowledged: `send_buffer`, with BBR 4 MiB"; "arrived and not read: the
/// window: with BBR and TPA 64 KiB or three blocks, then four times what was read, up to
/// `receive_buffer`; with quiet trains 64 segments. Pages of 4 KiB, only where bytes are".
///
/// The bound on memory allows for the pages in which the window begins and ends, and for a spare
/// one. Returns the difference, or `None` if there is none.
pub(super) fn excess(settings: &Settings, party: &Party<Application>) -> Option<String> {
    let (inner, block) = (party.session.inner(), 12 * SEGMENT);
    let least = |blocks: usize| if inner == InnerTransport::Bbr { 4 << 20 } else { blocks * block };
    let (send, receive) = (settings.send_buffer.max(least(2)), settings.receive_buffer.max(least(3)));
    let (kept, arrived) = (&party.exchange.send, &party.exchange.receive);
    let window = receive.min(match inner {
        InnerTransport::Trains => 64 * SEGMENT,
        InnerTransport::Tpa | InnerTransport::Bbr => (3 * block).max(64 << 10).max(4 * arrived.taken() as usize),
    });
    let held = [kept.len(), arrived.available(), arrived.memory()];
    let bounds = [send, window, window + 3 * PAGE];
    let is_right = held.iter().zip(bounds).all(|(held, bound)| *held <= bound);
    (!is_right).then(|| format!("\"buffers\": {held:?} bytes wait or are taken, {bounds:?} may"))
}
