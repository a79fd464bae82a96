//! TPA repeats on the wire what was lost, and nothing else, also where an ACK waits for the receiver's timer.

use crate::common::{listener, noise};
use meshpace_core::Duration;
use meshpace_live::testbed::{Impairment, Loss, Relay};
use meshpace_live::tpa::{Options, TpaPort};
use std::io::{Read, Write};

/// Sends over a steady link that loses data and no acknowledgements: segments sent again, and those that came twice.
fn transfer(options: &Options, lost: &[u64]) -> (u64, u64) {
    let listener = listener(options.clone());
    let delay = Duration::from_millis(50);
    let there = Impairment { delay, loss: Loss::Indices(lost.iter().copied().collect()), ..Impairment::default() };
    let back = Impairment { delay, ..Impairment::default() };
    let relay = Relay::new(listener.local_addr().unwrap(), there, back, false).unwrap();
    let mut client = TpaPort::with_options("127.0.0.1:0", options.clone()).unwrap().connect(relay.address()).unwrap();
    let mut server = listener.accept().unwrap().0;
    let sent = noise(1, 3 * 12 * 1460);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.write_all(&sent).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut got = Vec::new();
        server.read_to_end(&mut got).unwrap();
        assert!(got == sent);
    });
    (client.stats().retransmissions, server.stats().duplicate_segments_received)
}

#[test]
fn what_was_not_lost_is_not_repeated() {
    // Two of a window are lost; of the two repetitions the second is often alone and waits for the receiver's timer. With a
    // margin of just that time three of these eight have a third copy.
    let losses: [&[u64]; 8] = [&[5, 6], &[7, 8], &[9, 10], &[5, 6, 18], &[7, 8, 9], &[19, 20], &[21, 22], &[5, 6, 21]];
    for name in ["tpa-2", "tpa-3"] {
        let options = Options::named(name).unwrap();
        std::thread::scope(|scope| {
            let running = losses.map(|lost| {
                let options = &options;
                (lost, scope.spawn(move || transfer(options, lost)))
            });
            for (lost, running) in running {
                let (again, twice) = running.join().unwrap();
                assert_eq!((again as usize, twice), (lost.len(), 0), "{name}, {lost:?} lost");
            }
        });
    }
}
