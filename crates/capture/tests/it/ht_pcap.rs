//! Captures of 802.11n read by tshark: aggregates, block ACKs, rates and air times are those of the run, and what the standard says.

use crate::pcap::{Captured, flow, outbound};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::config::{Position, RtsPolicy};
use meshpace_mesh::radio::{Band, Links, Ofdm, OfdmRate};
use meshpace_mesh::{HtConfig, MacConfig, MacProfile, MeshConfig, Propagation, RadioConfig, Reception, RoutingConfig};
use meshpace_sim::{Config, Traffic};
use meshpace_testing::has;
use std::collections::{BTreeMap, BTreeSet};

const NODES: u16 = 4;

/// A chain of three hops of 802.11n at MCS 7 where only neighbours hear each other.
fn chain(rts: RtsPolicy, seconds: u64) -> Config {
    let pairs = (1..NODES).flat_map(|to| [(to - 1, to), (to, to - 1)]);
    let links = pairs.map(|(from, to)| (NodeId(from), NodeId(to), -50.0)).collect();
    let (data, basic) = (OfdmRate::mcs(7, false).expect("a rate"), OfdmRate::NonHt(0));
    let radio = RadioConfig {
        rate: data.rate(),
        basic_rate: basic.rate(),
        ofdm: Some(Ofdm { band: Band::Five, data, basic }),
        reception: Reception::Sinr,
        propagation: Propagation::Links(Links::new(links)),
        noise_dbm: -94.0,
        carrier_sense_dbm: -62.0,
        ..RadioConfig::default()
    };
    let mac = MacConfig { profile: MacProfile::Ieee, rts, ht: Some(HtConfig::default()), ..MacConfig::default() };
    Config {
        duration: Duration::from_secs(seconds),
        warmup: Duration::ZERO,
        positions: (0..NODES).map(|node| Position { x: f64::from(node) * 10.0, y: 0.0 }).collect(),
        mesh: MeshConfig { radio, mac, routing: RoutingConfig::Static, ..MeshConfig::default() },
        flows: vec![flow(0, NODES - 1, "newreno", Traffic::Ftp)],
        ..Config::default()
    }
}

/// A frame of a file.
#[derive(Clone, Debug)]
struct Seen {
    time: Time,
    sent: bool,
    /// Type and subtype.
    kind: u16,
    from: String,
    to: String,
    sequence: u16,
    retry: bool,
    /// Without radiotap.
    bytes: u64,
    aggregate: Option<u64>,
    is_last: bool,
    /// Of a block ACK.
    start: u16,
    bitmap: u64,
}

const QOS_DATA: u16 = 0x28;
const BLOCK_ACK: u16 = 0x19;

fn frames(run: &Captured, node: u16) -> Vec<Seen> {
    let fields = [
        "frame.time_epoch",
        "frame.packet_flags_direction",
        "wlan.fc.type_subtype",
        "wlan.ta",
        "wlan.ra",
        "wlan.seq",
        "wlan.fc.retry",
        "frame.len",
        "radiotap.length",
        "radiotap.ampdu.reference",
        "radiotap.ampdu.flags.last",
        "wlan.fixed.ssc.sequence",
        "wlan.ba.bm",
    ];
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap_or_else(|_| panic!("no number: {text}")),
        None => text.parse().unwrap_or(0),
    };
    let seen = |line: Vec<String>| {
        let time: u64 = line[0].replace('.', "").parse().expect("nanoseconds");
        // tshark prints the bytes in the order in which they are on the air: the bits of the earliest MPDUs first.
        let bytes: Vec<u64> = line[12]
            .as_bytes()
            .chunks(2)
            .filter_map(|two| u64::from_str_radix(str::from_utf8(two).ok()?, 16).ok())
            .collect();
        Seen {
            time: Time(time),
            sent: outbound(&line[1]),
            kind: number(&line[2]) as u16,
            from: line[3].clone(),
            to: line[4].clone(),
            sequence: number(&line[5]) as u16,
            retry: line[6] == "1" || line[6] == "True",
            bytes: number(&line[7]) - number(&line[8]),
            aggregate: (!line[9].is_empty()).then(|| number(&line[9])),
            is_last: line[10] == "1" || line[10] == "True",
            start: number(&line[11]) as u16,
            bitmap: bytes.iter().zip(0..).map(|(byte, place)| byte << (8 * place)).sum(),
        }
    };
    run.read(node, "radio", "wlan", &fields).into_iter().map(seen).collect()
}

/// The MPDUs of each aggregate that `keep` selects, in order.
fn aggregates(seen: &[Seen], keep: impl Fn(&Seen) -> bool) -> BTreeMap<u64, Vec<Seen>> {
    let mut found: BTreeMap<u64, Vec<Seen>> = BTreeMap::new();
    for frame in seen.iter().filter(|frame| keep(frame)) {
        if let Some(reference) = frame.aggregate {
            found.entry(reference).or_default().push(frame.clone());
        }
    }
    found
}

#[test]
fn aggregates_are_whole_and_every_transmission_is_there_once() {
    if !has("tshark", "tshark") {
        return;
    }
    for rts in [RtsPolicy::Always, RtsPolicy::Never] {
        let run = Captured::new(&chain(rts, 2), 1);
        let (mut transmissions, mut largest) = (0, 0);
        for node in 0..NODES {
            run.assert_sound(node, "radio");
            let seen = frames(&run, node);
            let sent = aggregates(&seen, |frame| frame.sent);
            transmissions += seen.iter().filter(|frame| frame.sent && frame.aggregate.is_none()).count() + sent.len();
            for (reference, mpdus) in &sent {
                let case = format!("node {node}, aggregate {reference}");
                largest = largest.max(mpdus.len());
                assert!((1..=64).contains(&mpdus.len()), "{case}");
                // One begin, one receiver, all of them QoS data; the last and no other says so.
                assert!(mpdus.iter().all(|mpdu| mpdu.time == mpdus[0].time && mpdu.kind == QOS_DATA), "{case}");
                assert!(mpdus.iter().all(|mpdu| mpdu.to == mpdus[0].to), "{case}");
                let last: Vec<bool> = mpdus.iter().map(|mpdu| mpdu.is_last).collect();
                assert_eq!(last.iter().position(|last| *last), Some(mpdus.len() - 1), "{case}");
                // 9.7.1: delimiters, and padding of all but the last, 65,535 bytes at most.
                let bytes: u64 = mpdus.iter().map(|mpdu| 4 + mpdu.bytes.next_multiple_of(4)).sum();
                assert!(bytes <= 65_535, "{case}: {bytes}");
                // All within a window of 64 from the first (10.24.7).
                let ahead = |mpdu: &Seen| (mpdu.sequence + 4096 - mpdus[0].sequence) % 4096;
                assert!(mpdus.windows(2).all(|two| ahead(&two[0]) < ahead(&two[1])), "{case}");
                assert!(mpdus.iter().all(|mpdu| ahead(mpdu) < 64), "{case}");
            }
        }
        assert_eq!(transmissions as u64, run.outcome.frames, "{rts:?}");
        assert!(largest > 8, "{rts:?}: this test has tested nothing: {largest} at most");
    }
}

#[test]
fn a_repeated_mpdu_and_no_other_has_the_retry_bit() {
    if !has("tshark", "tshark") {
        return;
    }
    // Without RTS the ends of the chain do not hear each other and collide.
    let run = Captured::new(&chain(RtsPolicy::Never, 2), 1);
    let mut repeated = 0;
    for node in 0..NODES {
        let mut before: BTreeSet<(String, u16)> = BTreeSet::new();
        for frame in frames(&run, node).into_iter().filter(|frame| frame.sent && frame.kind == QOS_DATA) {
            let own = (frame.to.clone(), frame.sequence);
            if frame.to == "ff:ff:ff:ff:ff:ff" {
                continue;
            }
            assert_eq!(frame.retry, before.contains(&own), "node {node}: {frame:?}");
            repeated += u32::from(frame.retry);
            // Numbers come again after 4,096.
            before.remove(&(frame.to, (frame.sequence + 2048) % 4096));
            before.insert(own);
        }
    }
    assert!(repeated > 0, "nothing was repeated: this test has tested nothing");
}

#[test]
fn a_block_ack_names_what_its_sender_has_in_its_file() {
    if !has("tshark", "tshark") {
        return;
    }
    let run = Captured::new(&chain(RtsPolicy::Never, 2), 1);
    let (mut told, mut incomplete) = (0, 0);
    for node in 1..NODES {
        let seen = frames(&run, node);
        let mut heard: Vec<&Seen> = Vec::new();
        for frame in &seen {
            let to_me = frame.to == format!("02:00:00:00:00:{:02x}", node + 1);
            match frame.kind {
                QOS_DATA if to_me && !frame.sent => {
                    if heard.first().is_some_and(|first| first.aggregate != frame.aggregate) {
                        heard.clear();
                    }
                    heard.push(frame);
                }
                BLOCK_ACK if frame.sent => {
                    for mpdu in heard.iter().filter(|mpdu| mpdu.aggregate.is_some() && mpdu.from == frame.to) {
                        let place = (mpdu.sequence + 4096 - frame.start) % 4096;
                        // What is older than the window was received before.
                        if place < 64 {
                            assert_eq!(frame.bitmap >> place & 1, 1, "node {node}: {mpdu:?} {frame:?}");
                            told += 1;
                        }
                    }
                    incomplete += u32::from(frame.bitmap.trailing_ones() + frame.bitmap.leading_zeros() < 64);
                    heard.clear();
                }
                _ => {}
            }
        }
    }
    assert!(told > 500 && incomplete > 0, "this test has tested nothing: {told}, {incomplete} with holes");
}

#[test]
fn rates_and_air_times_are_those_of_the_standard() {
    if !has("tshark", "tshark") {
        return;
    }
    let run = Captured::new(&chain(RtsPolicy::Always, 2), 1);
    // MCS 7 with the long guard interval in 20 MHz: 65 Mbit/s (table 19-27), as tshark computes it from the index. HT-mixed, BCC.
    let data = run.read(
        0,
        "radio",
        "wlan.fc.type_subtype == 0x28 && wlan.ra == 02:00:00:00:00:02",
        &[
            "radiotap.mcs.index",
            "wlan_radio.data_rate",
            "wlan_radio.11n.short_gi",
            "wlan.qos.tid",
            "radiotap.channel.freq",
            "llc.type",
        ],
    );
    assert!(data.len() > 100);
    for line in &data {
        assert_eq!((line[0].as_str(), line[3].as_str(), line[4].as_str()), ("7", "0", "5220"), "{line:?}");
        assert_eq!(line[1].parse::<f64>().ok(), Some(65.0), "{line:?}");
        assert!(line[2] == "0" || line[2] == "False", "{line:?}");
        assert_eq!(line[5], "0x0800", "{line:?}");
    }
    // An MPDU with 1460 bytes of payload: 26 + 8 + 1500 + 4, as long as in the simulation.
    let full =
        run.read(0, "radio", "wlan.fc.type_subtype == 0x28 && tcp.len == 1460", &["frame.len", "radiotap.length"]);
    let length = |line: &Vec<String>| line[0].parse::<u64>().unwrap_or(0) - line[1].parse::<u64>().unwrap_or(0);
    assert!(!full.is_empty() && full.iter().all(|line| length(line) == 1538), "{:?}", full[0]);
    // RTS at 6 Mbit/s: 20 + 4 x ceil((22 + 160) / 24) = 52 us, computed by tshark.
    let rts = run.read(
        0,
        "radio",
        "wlan.fc.type_subtype == 0x1b",
        &["radiotap.datarate", "wlan_radio.duration", "wlan.fcs.status"],
    );
    assert!(!rts.is_empty() && rts.iter().all(|line| *line == ["6", "52", "1"]), "{:?}", rts[0]);
    // Block ACK of MCS 7: at 24 Mbit/s (10.7.6.5.2), 20 + 4 x ceil((22 + 256) / 96) = 32 us.
    let answers = run.read(
        1,
        "radio",
        "wlan.fc.type_subtype == 0x19",
        &["radiotap.datarate", "wlan_radio.duration", "wlan.fcs.status"],
    );
    assert!(!answers.is_empty() && answers.iter().all(|line| *line == ["24", "32", "1"]), "{:?}", answers[0]);

    // Equation 19-90 for the whole aggregate, from what its sender's file says of it: 36 us of preamble for one stream, 260 bits a symbol.
    let sent = aggregates(&frames(&run, 0), |frame| frame.sent);
    let begins: BTreeMap<Time, &Vec<Seen>> = sent.values().map(|mpdus| (mpdus[0].time, mpdus)).collect();
    let received = aggregates(&frames(&run, 1), |frame| !frame.sent && frame.from == "02:00:00:00:00:01");
    let mut checked = 0;
    for heard in received.values() {
        let end = heard[0].time;
        let (&begin, mpdus) = begins.range(..end).next_back().expect("it was sent before");
        assert!(heard.iter().all(|one| mpdus.iter().any(|other| other.sequence == one.sequence)), "{heard:?}");
        let whole: u64 = mpdus.iter().map(|mpdu| 4 + mpdu.bytes.next_multiple_of(4)).sum();
        let last = mpdus[mpdus.len() - 1].bytes;
        let bytes = whole - (last.next_multiple_of(4) - last);
        let air_us = 36 + 4 * (22 + 8 * bytes).div_ceil(260);
        // 10 m are 33 ns.
        assert_eq!(end.since(begin).0, air_us * 1_000 + 33, "{bytes} bytes in {} MPDUs", mpdus.len());
        checked += 1;
    }
    assert!(checked > 20, "this test has tested nothing: {checked}");
}
