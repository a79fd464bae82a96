//! Tests when a receiver of BBR sends reports, as `docs/wire-bbr.md` defines it (RFC 9000, section
//! 13.2).

use meshpace_core::Time;
use meshpace_transport::bbr::{Config, Connection, Segment};
use meshpace_transport::{flags::Flags, pump};

const FULL: u16 = 1400;

fn ms(number: u64) -> Time {
    Time(number * 1_000_000)
}

/// Times in milliseconds at which reports leave, until `end`. `arriving` has the arrival time,
/// number, payload and flags of each segment. The offset of a segment follows from the payload of
/// the earlier numbers, including those that are missing.
fn reports(arriving: &[(u64, u64, u16, Flags)], end: u64) -> Vec<u64> {
    let config = Config { segment: u32::from(FULL), receive_buffer: 1 << 20, first_credit: 1 << 20 };
    let (mut receiver, mut left, mut wakeup) = (Connection::new(&config), Vec::new(), Time::NEVER);
    let mut run = |receiver: &mut Connection, now: Time, wakeup: &mut Time| {
        *wakeup = pump(receiver, now, |_, segment: Segment| {
            assert!(segment.flags.has(Flags::ACK) && !segment.carries(), "{segment:?}");
            left.push(now.0 / 1_000_000);
        });
    };
    let mut seq = 0;
    for &(at, number, payload, flags) in arriving {
        while wakeup < ms(at) {
            let now = wakeup;
            run(&mut receiver, now, &mut wakeup);
        }
        receiver.on_segment(ms(at), &Segment { flags, number, seq, payload, ..Segment::default() });
        seq += u64::from(payload);
        run(&mut receiver, ms(at), &mut wakeup);
    }
    while wakeup < ms(end) {
        let now = wakeup;
        run(&mut receiver, now, &mut wakeup);
    }
    left
}

#[test]
fn reports_leave_when_the_page_says() {
    let none = Flags::NONE;
    // A report for every second full segment, and 10 ms after any other.
    assert_eq!(reports(&[(0, 0, FULL, none), (3, 1, FULL, none), (5, 2, FULL, none)], 1000), [3, 15]);
    // A report at once for a segment out of order, or with FIN.
    assert_eq!(reports(&[(0, 1, FULL, none)], 1000), [0]);
    assert_eq!(reports(&[(0, 0, FULL, none), (4, 2, FULL, none)], 1000), [4]);
    assert_eq!(reports(&[(0, 0, 100, Flags::FIN)], 1000), [0]);
    // A probe is answered at once.
    assert_eq!(reports(&[(7, 0, 0, Flags::SYN)], 1000), [7]);
    // A segment with more than half of the full payload is not small.
    assert_eq!(reports(&[(0, 0, FULL / 2 + 1, none)], 1000), [10]);
    assert_eq!(reports(&[(0, 0, FULL / 2, none)], 1000), [60]);
    // For small segments: a report 60 ms after the last, 300 ms after the first, or when the new
    // bytes amount to two full segments.
    assert_eq!(reports(&[(0, 0, 100, none), (40, 1, 100, none)], 1000), [100]);
    let small = |apart: u64, payload: u16| (0..8).map(move |n| (apart * n, n, payload, none)).collect::<Vec<_>>();
    assert_eq!(reports(&small(50, 100), 340), [300]);
    assert_eq!(reports(&small(10, FULL / 4), 71), [70]);
    // A small segment does not delay the report for another segment.
    assert_eq!(reports(&[(0, 0, FULL, none), (5, 1, 100, none)], 1000), [10]);
}
