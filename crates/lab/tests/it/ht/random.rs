//! Tests the cost of an MPDU with 120 random nodes and ten flows of datagrams over several hops.
//! The scene is that of `validation/ns3/random-120.txt`, which `validation/ns3/ht.cc` also reads.

use meshpace_core::Time;
use meshpace_lab::validate::ht::scene::{How, datagrams};
use meshpace_mesh::mac::FrameKind;
use meshpace_sim::{Event, Probe, SimPacket};

/// Number of frames, and number of MPDUs in data frames.
#[derive(Clone, Copy, Default, Debug)]
struct Sent {
    frames: u64,
    mpdus: u64,
}

impl Probe<SimPacket> for Sent {
    fn on(&mut self, _now: Time, event: Event<'_, SimPacket>) {
        let Event::OnAir { frame } = event else { return };
        self.frames += 1;
        if frame.kind == FrameKind::Data {
            // MPDUs have 1540 bytes each; the last is not padded.
            self.mpdus += u64::from(frame.bytes.div_ceil(1540));
        }
    }
}

#[test]
#[ignore = "a measurement: MESHPACE_SECONDS=N, under valgrind --tool=callgrind or time, for two lengths"]
fn what_an_mpdu_of_120_random_nodes_costs() {
    let seconds = std::env::var("MESHPACE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/ns3/random-120.txt");
    let text = std::fs::read_to_string(table).unwrap();
    let mut links = vec![false; 120 * 120];
    let mut flows = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (a, b): (u16, u16) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        if words[0] == "link" {
            links[usize::from(a) * 120 + usize::from(b)] = true;
            links[usize::from(b) * 120 + usize::from(a)] = true;
        } else {
            flows.push((a, b));
        }
    }
    let mesh = How::mcs(3, 64, false).mesh(120, |a, b| links[usize::from(a) * 120 + usize::from(b)]);
    let config = datagrams(mesh, 120, &flows, 5.0 / 26.0, seconds);
    let mut sent = Sent::default();
    let outcome = meshpace_sim::run_with(&config, 1, &mut sent);
    println!(
        "{} frames, {} MPDUs with data, {:.3} Mbit/s",
        sent.frames,
        sent.mpdus,
        outcome.aggregate_goodput_bps / 1e6
    );
    assert!(sent.mpdus > 0);
}
