//! What reads the frames of a far end: the body for fuzzers.

use super::Violation;
use super::carrier::Carrier;
use super::frame::{Frame, Reader};
use super::machine::{Session, Side};
use meshpace_core::Time;

/// What a reader makes of bytes in pieces of `piece`: the frames as they would be written, the payload of DATA put together; and the end.
fn read(bytes: &[u8], piece: usize) -> (Vec<u8>, Option<Violation>) {
    let (mut reader, mut written) = (Reader::default(), Vec::new());
    // A DATA that is under way: stream, offset, bytes.
    let mut data: Option<(u32, u64, Vec<u8>)> = None;
    let flush = |data: &mut Option<(u32, u64, Vec<u8>)>, written: &mut Vec<u8>| {
        if let Some((stream, offset, bytes)) = data.take() {
            Frame::Data { stream, offset, bytes: &bytes }.write(written);
        }
    };
    for mut chunk in bytes.chunks(piece) {
        loop {
            match reader.next(&mut chunk) {
                Err(violation) => {
                    flush(&mut data, &mut written);
                    return (written, Some(violation));
                }
                Ok(None) => break,
                Ok(Some(Frame::Data { stream, offset, bytes })) => match &mut data {
                    Some((known, start, kept)) if *known == stream && *start + kept.len() as u64 == offset => {
                        kept.extend_from_slice(bytes);
                    }
                    _ => {
                        flush(&mut data, &mut written);
                        data = Some((stream, offset, bytes.to_vec()));
                    }
                },
                Ok(Some(frame)) => {
                    flush(&mut data, &mut written);
                    frame.write(&mut written);
                }
            }
        }
    }
    flush(&mut data, &mut written);
    (written, None)
}

/// See `tunnel::fuzzing::session`.
pub(in crate::tunnel) fn session(connects: bool, carrier: Carrier, piece: usize, bytes: &[u8]) {
    // DATA that follow each other without a gap are written as one here, so that only readings are compared.
    assert_eq!(read(bytes, piece), read(bytes, bytes.len().max(1)), "pieces of {piece}");

    let side = if connects { Side::Connects } else { Side::Accepts };
    let mut ends = [piece, bytes.len().max(1)].map(|piece| {
        let mut session = Session::new(side);
        if connects {
            // Two streams that were asked for, so that answers and data are for something.
            (0..2).for_each(|_| assert!(session.open(Time::ZERO, "host:80").is_some()));
        }
        let done = bytes.chunks(piece).try_for_each(|chunk| session.on_bytes(Time::ZERO, carrier, chunk));
        (session, done)
    });
    let [(cut, of_cut), (whole, of_whole)] = &mut ends;
    // Bytes that are wrong in two ways, as known ones in a frame that ends behind the end of its stream are, are told by what the first piece shows.
    assert_eq!(of_whole.is_ok(), of_cut.is_ok(), "pieces of {piece}: {of_cut:?}, {of_whole:?}");
    // A violation ends the session; in pieces, what stood before it in its frame has been taken.
    if of_whole.is_ok() {
        assert_eq!(
            (whole.count(), whole.take_asked(), whole.take_touched()),
            (cut.count(), cut.take_asked(), cut.take_touched())
        );
    }
    // Nobody reads, so that each stream was promised its first credit alone.
    let [incoming, ..] = whole.kept();
    assert!(incoming as u64 <= whole.count() as u64 * super::incoming::FIRST, "{incoming} bytes are kept");
}
