//! Tests of the room that a receiver announces, and of the numbers that its reports name.

use super::*;

#[test]
fn before_the_first_report_a_sender_stays_within_the_first_room() {
    // The congestion window of a new connection is ten segments.
    for segments in [2, 7] {
        let first_credit = segments * u64::from(SEGMENT);
        let mut end = Connection::new(&Config { segment: SEGMENT, receive_buffer: BUFFER, first_credit });
        end.write(1 << 20);
        let mut ends = Vec::new();
        let mut now = Time(1_000_000_000);
        while now < Time(4_000_000_000) {
            let next = pump(&mut end, now, |_, segment| ends.push(segment.seq + u64::from(segment.payload)));
            now = next.max(now + Duration::from_millis(1));
        }
        assert_eq!(ends.iter().max(), Some(&first_credit), "{segments} segments");
    }
}

#[test]
fn no_short_segment_fills_the_end_of_the_room_while_anything_is_in_flight() {
    let full = u64::from(SEGMENT);
    let mut world = World::with_credit(Link::new(10.0, 20, 0.0), 1, 3 * full + 100);
    world.takes = false;
    world.ends[0].write(10 * full);
    world.run(5.0);
    let payloads: Vec<u16> = world.segments.iter().map(|segment| segment.payload).filter(|bytes| *bytes > 0).collect();
    assert_eq!(payloads, [1400, 1400, 1400, 100]);
    // The segments are in the order in which they left the two ends.
    let short = world.segments.iter().position(|segment| segment.payload == 100);
    let all_arrived = world.segments.iter().position(|segment| segment.report.expected == 3 * full);
    assert!(all_arrived.is_some() && all_arrived < short, "{all_arrived:?}, {short:?}");
}

#[test]
fn reports_leave_out_numbers_far_below_the_highest() {
    let mut end = Connection::new(&Config { segment: SEGMENT, receive_buffer: BUFFER, first_credit: BUFFER });
    let mut named_after = |number: u64| -> Vec<u64> {
        let segment = Segment { number, seq: number, payload: 1, ..Segment::default() };
        assert!(end.on_segment(Time(1), &segment));
        end.on_segment(Time(1), &Segment { flags: Flags::SYN, ..Segment::default() });
        let report = end.poll(Time(1)).segment().expect("a report was asked for").report;
        report.numbers().flat_map(|(first, last)| first..=last).collect()
    };
    assert_eq!(named_after(0), [0]);
    assert_eq!(named_after(2), [2, 0]);
    assert_eq!(named_after(1024), [1024, 2, 0]);
    assert_eq!(named_after(1025), [1024, 1025, 2]);
    assert_eq!(named_after(1026), [1024, 1025, 1026, 2]);
    assert_eq!(named_after(1027), [1024, 1025, 1026, 1027]);
}
