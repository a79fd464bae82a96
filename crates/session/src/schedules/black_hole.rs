//! Tests of a path that becomes too narrow for the segments of an open connection without reporting
//! it: a black hole.

use super::end::Ending;
use super::opening::Scene;
use crate::handshake::{InnerTransport, tag_of};
use crate::security::Security;
use meshpace_core::{Duration, Time};

const CARRIERS: [InnerTransport; 3] = [InnerTransport::Tpa, InnerTransport::Trains, InnerTransport::Bbr];

/// Length of an encrypted datagram with a path challenge or response, bytes.
const PATH_FRAME: usize = 16 + 9 + 16;

/// Length of the headers of IPv4 and UDP, bytes.
const HEADERS: usize = 20 + 8;

/// Time at which the path becomes narrow.
const NARROW: Time = Time(400_000_000);

fn seconds(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

/// Opens a connection and runs it until the path becomes narrow, when data is still in flight. Also
/// returns the number of bytes that each end writes.
fn scene(inner: InnerTransport) -> (Scene, u64) {
    let bytes = match inner {
        InnerTransport::Tpa => 60_000,
        InnerTransport::Trains => 400_000,
        InnerTransport::Bbr => 2_000_000,
    };
    let mut scene = Scene::writing(inner, Security::Shared([7; 32]), bytes);
    scene.run(NARROW, &mut |_| 1);
    assert!(scene.ends.iter().flat_map(|end| end.applications()).all(|one| one.read > 0 && one.read < bytes));
    (scene, bytes)
}

fn endings(scene: &Scene) -> Vec<(u64, Ending)> {
    scene.ends.iter().flat_map(|end| end.applications()).map(|one| (one.read, one.ending.clone())).collect()
}

fn narrowed(scene: &Scene) -> Vec<Option<u32>> {
    scene.ends.iter().flat_map(|end| end.parties()).map(|party| party.exchange.narrowed).collect()
}

#[test]
fn segments_leave_in_pieces_where_long_datagrams_vanish() {
    for inner in CARRIERS {
        for packet in [1500, 1300, 1280, 1100, 576] {
            let (mut scene, bytes) = scene(inner);
            let (mut vanished, mut passed) = (0, 0);
            scene.run(seconds(120), &mut |datagram| {
                let passes = datagram.len() + HEADERS <= packet;
                vanished += u64::from(!passes);
                passed += u64::from(passes && datagram.len() > PATH_FRAME);
                u64::from(passes)
            });
            assert_eq!(endings(&scene), [(bytes, Ending::Well), (bytes, Ending::Well)], "{inner:?} {packet}");
            assert!(vanished > 0 && vanished < passed, "{inner:?} {packet}: {vanished} {passed}");
        }
    }
}

#[test]
fn the_size_that_was_found_is_told_in_time() {
    for inner in CARRIERS {
        // The timers of the transport double before the second step.
        // Halves of a segment pass where 1100 bytes do.
        for (packet, found, most) in [(1300, 1280, 12), (1100, 1280, 12), (576, 576, 110)] {
            let mut scene = Scene::writing(inner, Security::Shared([7; 32]), 1 << 40);
            scene.run(NARROW, &mut |_| 1);
            assert_eq!(narrowed(&scene), [None, None]);
            let mut took = 0;
            while narrowed(&scene) != [Some(found); 2] && took < most {
                took += 1;
                scene.run(seconds(took), &mut |datagram| u64::from(datagram.len() + HEADERS <= packet));
            }
            assert_eq!(narrowed(&scene), [Some(found); 2], "{inner:?} {packet} after {took} s");
        }
    }
}

#[test]
fn whole_segments_leave_again_once_a_probe_has_passed() {
    let mut scene = Scene::writing(InnerTransport::Tpa, Security::Shared([7; 32]), 1 << 40);
    scene.run(NARROW, &mut |_| 1);
    // Probes: three within some seconds, then one in 600 s.
    let mut probes = 0;
    let mut longest = 0;
    let mut narrow = |datagram: &[u8]| {
        probes += u64::from(datagram.len() + HEADERS > 1280 && datagram[8] & 0x80 != 0);
        u64::from(datagram.len() + HEADERS <= 1280)
    };
    scene.run(seconds(300), &mut narrow);
    assert_eq!((narrowed(&scene), probes), (vec![Some(1280); 2], 6));
    scene.run(seconds(650), &mut |datagram| {
        longest = longest.max(datagram.len());
        1
    });
    assert_eq!(narrowed(&scene), [None, None]);
    assert!(longest + HEADERS > 1500, "{longest}");
}

#[test]
fn one_direction_alone_may_be_narrow() {
    for inner in CARRIERS {
        let (mut scene, bytes) = scene(inner);
        let tag = scene.ends[0].parties().next().expect("a connection").session.tag();
        scene.run(seconds(120), &mut |datagram| {
            // To the first end only.
            u64::from(tag_of(datagram) != Some(tag) || datagram.len() + HEADERS <= 1280)
        });
        assert_eq!(endings(&scene), [(bytes, Ending::Well), (bytes, Ending::Well)], "{inner:?}");
    }
}

#[test]
fn losses_of_all_lengths_leave_segments_whole() {
    for inner in CARRIERS {
        // An outage of everything, and of all that is short: nobody is heard then. And three datagrams of four.
        for rule in 0..3 {
            let (mut scene, bytes) = scene(inner);
            let mut count = 0;
            scene.run(seconds(12), &mut |datagram| {
                count += 1;
                u64::from(match rule {
                    0 => false,
                    1 => datagram.len() > 200,
                    _ => count % 4 == 0,
                })
            });
            if rule < 2 {
                assert_eq!(narrowed(&scene), [None, None], "{inner:?} {rule}");
            }
            scene.run(seconds(120), &mut |_| 1);
            assert_eq!(endings(&scene), [(bytes, Ending::Well), (bytes, Ending::Well)], "{inner:?} {rule}");
        }
    }
}

#[test]
fn a_peer_that_pretends_a_black_hole_is_sent_less_than_one_that_acknowledges() {
    for inner in CARRIERS {
        // Bytes that leave until then, of which the peer shows all, or that it has heard the challenges alone.
        let sent = |shows_all: bool, until: u64| {
            let mut scene = Scene::writing(inner, Security::Shared([7; 32]), 1 << 40);
            scene.run(NARROW, &mut |_| 1);
            let tag = scene.ends[1].parties().next().expect("a connection").session.tag();
            let mut bytes = 0;
            scene.run(seconds(until), &mut |datagram| {
                if tag_of(datagram) != Some(tag) {
                    return u64::from(shows_all || datagram.len() == PATH_FRAME);
                }
                bytes += datagram.len();
                1
            });
            (bytes, narrowed(&scene)[0])
        };
        let until = if inner == InnerTransport::Tpa { 6 } else { 2 };
        let ((acknowledged, _), (pretended, narrowed)) = (sent(true, until), sent(false, 60));
        assert!(pretended < acknowledged, "{inner:?}: {pretended} {acknowledged}");
        // Never below what every path carries.
        assert!(narrowed.is_none_or(|bytes| bytes >= 576), "{inner:?}: {narrowed:?}");
    }
}

#[test]
fn a_datagram_of_a_former_build_or_an_unknown_one_changes_nothing() {
    // A peer that does not know pieces hears nothing of them; the connection ends as it did before there were any.
    let (mut scene, _) = scene(InnerTransport::Tpa);
    scene.run(seconds(400), &mut |datagram| {
        let is_piece = datagram.len() > 16 && tag_of(datagram) != Some(0) && datagram[8] & 0x80 != 0;
        u64::from(datagram.len() + HEADERS <= 1280 && !is_piece)
    });
    let all = endings(&scene);
    assert!(all.iter().all(|(_, ending)| matches!(ending, Ending::Failed(_))), "{all:?}");
    assert!(scene.now <= Time::ZERO + Duration::from_secs(400));
}
