//! Captures of TPA over UDP: `meshpace decrypt` with the keys of a log, and tshark with our
//! dissector.

use meshpace_core::Rate;
use meshpace_live::testbed::{Impairment, Relay};
use meshpace_live::tpa::framing::decode_plain;
use meshpace_live::tpa::handshake::Opening;
use meshpace_live::tpa::keylog::KeyLog;
use meshpace_live::tpa::path::Fixed;
use meshpace_live::tpa::{Options, PathSource, Security, TpaPort};
use meshpace_testing::has;
use meshpace_transport::tpa::{Flags, Segment};
use meshpace_transport::{Config, PathInfo, names};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

/// Returns `length` bytes without repetitions, derived from a seed.
fn noise(seed: u32, length: usize) -> Vec<u8> {
    (0..length.div_ceil(4) as u32)
        .flat_map(|i| (i ^ seed << 20).wrapping_mul(2_654_435_761).to_be_bytes())
        .take(length)
        .collect()
}

/// Runs a conversation over a relay. Returns its datagrams in the order in which they passed the
/// relay, each with the end that sent it.
fn conversation(options: &Options, there: &[u8], back: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let listener = TpaPort::with_options("127.0.0.1:0", options.clone()).unwrap().listen(1).unwrap();
    let perfect = Impairment::default;
    let relay = Relay::new(listener.local_addr().unwrap(), perfect(), perfect(), true).unwrap();
    let client = TpaPort::with_options("127.0.0.1:0", options.clone()).unwrap().connect(relay.address()).unwrap();
    let server = listener.accept().unwrap().0;
    std::thread::scope(|scope| {
        for (stream, own, other) in [(client, there, back), (server, back, there)] {
            scope.spawn(move || {
                (&stream).write_all(own).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                let mut got = Vec::new();
                (&stream).read_to_end(&mut got).unwrap();
                assert!(got == other);
                stream.close().unwrap();
            });
        }
    });
    relay.take_record().into_iter().map(|passed| (passed.from, passed.bytes)).collect()
}

/// Writes a capture of the datagrams as raw IP between two ports at two addresses.
fn capture(path: &Path, datagrams: &[(usize, Vec<u8>)]) {
    let header = PcapHeader { datalink: DataLink::RAW, snaplen: 1 << 17, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(File::create(path).unwrap(), header).unwrap();
    for (number, (from, bytes)) in datagrams.iter().enumerate() {
        let mut packet = Vec::new();
        let ends = [([10, 0, 0, 1], 45_123), ([10, 0, 0, 2], 45_124)];
        let ((source, port), (destination, other)) = (ends[*from], ends[1 - *from]);
        let builder = etherparse::PacketBuilder::ipv4(source, destination, 60).udp(port, other);
        builder.write(&mut packet, bytes).unwrap();
        let time = Duration::from_millis(number as u64);
        writer.write_packet(&PcapPacket::new_owned(time, packet.len() as u32, packet)).unwrap();
    }
}

/// Returns the datagrams of a pcapng file that `decrypt` has written.
fn datagrams(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            found.push(packet.data[28..].to_vec());
        }
    }
    found
}

/// Returns the streams in plain datagrams by the tag of their receiver. The segments of a block are
/// ordered by their positions.
fn streams(datagrams: &[Vec<u8>]) -> BTreeMap<u64, Vec<u8>> {
    let mut order: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
    let mut pieces: BTreeMap<(u64, u16), BTreeMap<u16, Vec<u8>>> = BTreeMap::new();
    for (tag, segment, payload) in datagrams.iter().filter_map(|datagram| decode_plain(datagram)) {
        if payload.is_empty() {
            continue;
        }
        let blocks = order.entry(tag).or_default();
        if !blocks.contains(&segment.block) {
            blocks.push(segment.block);
        }
        pieces.entry((tag, segment.block)).or_default().insert(segment.place, payload.to_vec());
    }
    let stream = |(tag, blocks): (u64, Vec<u16>)| {
        let bytes = blocks.iter().flat_map(|block| pieces[&(tag, *block)].values().flatten().copied());
        (tag, bytes.collect())
    };
    order.into_iter().map(stream).collect()
}

fn decrypt(keylog: &Path, from: &Path, to: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_meshpace"));
    command.arg("decrypt").arg("--keylog").arg(keylog).arg(from).arg(to);
    command.output().unwrap()
}

#[test]
fn what_was_encrypted_is_read_with_the_keys_and_only_with_them() {
    [false, true].into_iter().for_each(what_was_encrypted_is_read);
}

/// Tests with ChaCha20-Poly1305 or with AES-256-GCM.
fn what_was_encrypted_is_read(aes: bool) {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let (log, from, to) = (place("keys"), place("encrypted.pcap"), place("plain.pcapng"));
    let keylog = Some(Arc::new(KeyLog::append(&log).unwrap()));
    let options = Options { keylog, aes, ..Options::default() };
    let (there, back) = (noise(1, 50_000), noise(2, 20_000));
    let passed = conversation(&options, &there, &back);
    capture(&from, &passed);
    let words = std::fs::read_to_string(&log).unwrap();
    let mut noted = words.lines().filter(|line| !line.starts_with('#'));
    assert!(noted.all(|line| line.starts_with(if aes { "TPA_KEY_AES " } else { "TPA_KEY " })), "{words}");
    let secret = |datagrams: &[Vec<u8>]| {
        datagrams.iter().any(|bytes| bytes.windows(100).any(|window| window == &there[..100] || window == &back[..100]))
    };
    assert!(!secret(&passed.iter().map(|passed| passed.1.clone()).collect::<Vec<_>>()), "it was not encrypted");
    let output = decrypt(&log, &from, &to);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let plain = datagrams(&to);
    assert_eq!(plain.len(), passed.len());
    // Openings are copied unchanged. The other datagrams yield both streams completely.
    let openings = |bytes: &&Vec<u8>| Opening::decode(bytes).is_some();
    assert_eq!(plain.iter().filter(openings).count(), passed.iter().filter(|passed| openings(&&passed.1)).count());
    let streams: BTreeSet<Vec<u8>> = streams(&plain).into_values().collect();
    assert!(
        streams == BTreeSet::from([there.clone(), back.clone()]),
        "{:?}",
        streams.iter().map(Vec::len).collect::<Vec<_>>()
    );
    // A sender with batched datagrams captures several of them as one packet. The test joins a
    // datagram and the next datagram of the same end, whatever the other end sent in between.
    let size = |index: usize| passed[index].1.len();
    let next = |index: usize| {
        let same = |other: &usize| passed[*other].0 == passed[index].0 && passed[*other].1[..8] == passed[index].1[..8];
        let next = (index + 1..passed.len()).find(same)?;
        (size(index) > 200 && size(next) > 200 && size(next) <= size(index)).then_some((index, next))
    };
    let (first, second) = (0..passed.len()).find_map(next).expect("two segments of one end");
    let (mut merged, mut expected) = (passed.clone(), plain.clone());
    let bytes = merged.remove(second).1;
    merged[first].1.extend(bytes);
    let moved = expected.remove(second);
    expected.insert(first + 1, moved);
    capture(&from, &merged);
    assert!(decrypt(&log, &from, &to).status.success());
    assert!(datagrams(&to) == expected, "what was cut apart is the same");
    // A link, such as /dev/stdout, is kept, and its target is written.
    std::os::unix::fs::symlink(place("far"), place("link")).unwrap();
    assert!(decrypt(&log, &from, &place("link")).status.success());
    assert!(place("link").is_symlink() && std::fs::read(place("far")).unwrap() == std::fs::read(&to).unwrap());
    // Other keys decrypt nothing.
    std::fs::write(place("other"), format!("TPA_KEY {:016x} {}\n", 5, "07".repeat(32))).unwrap();
    let output = decrypt(&place("other"), &from, &to);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("none of the 1 keys"), "{output:?}");
}

#[test]
fn files_that_are_none_are_refused_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    std::fs::write(place("keys"), "# none yet\n").unwrap();
    std::fs::write(place("bad"), "TPA_KEY 1\n").unwrap();
    capture(&place("capture"), &[(0, vec![1; 100])]);
    let whole = std::fs::read(place("capture")).unwrap();
    std::fs::write(place("cut"), &whole[..whole.len() - 5]).unwrap();
    std::fs::write(place("text"), "no capture at all, but longer than its header").unwrap();
    std::fs::write(place("short"), "no").unwrap();
    let cases = [
        ("none", "capture", "none"),
        ("bad", "capture", "line 1"),
        ("keys", "none", "none"),
        ("keys", "cut", "cut"),
        ("keys", "text", "text"),
        ("keys", "short", "short"),
    ];
    for (log, capture, named) in cases {
        let output = decrypt(&place(log), &place(capture), &place("plain"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{log} {capture}: {said}");
        assert!(said.contains(named), "{log} {capture}: {said}");
        assert!(!place("plain").exists(), "{log} {capture}: half a file");
    }
}

/// Returns the fields that tshark with our dissector finds in each packet of a capture.
fn tshark(path: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../share/wireshark/meshpace_tpa.lua");
    let mut command = Command::new("tshark");
    command.arg("-X").arg(format!("lua_script:{}", script.display())).arg("-r").arg(path).args(["-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("lua"), "{said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    // Older versions print booleans as 1 and 0.
    let word = |word: &str| match word {
        "True" => "1".to_owned(),
        "False" => "0".to_owned(),
        word => word.to_owned(),
    };
    lines.lines().map(|line| line.split('\t').map(word).collect()).collect()
}

const FIELDS: [&str; 15] = [
    "meshpace_tpa.tag",
    "meshpace_tpa.block",
    "meshpace_tpa.places",
    "meshpace_tpa.tx",
    "meshpace_tpa.ack_block",
    "meshpace_tpa.ack_places",
    "meshpace_tpa.ack_tx",
    "meshpace_tpa.flags.ack",
    "meshpace_tpa.flags.rst",
    "meshpace_tpa.flags.syn",
    "meshpace_tpa.flags.fin",
    "meshpace_tpa.congested",
    "meshpace_tpa.window",
    "meshpace_tpa.last",
    "meshpace_tpa.payload",
];

/// Returns the same fields as decoded by our own code.
fn expected(datagram: &[u8]) -> Vec<String> {
    let (tag, segment, payload) = match decode_plain(datagram) {
        Some(decoded) => decoded,
        None => (0, Opening::decode(datagram).expect("an opening or a segment").0.segment, &[][..]),
    };
    let Segment { block, place, tx, ack_block, ack_places, ack_tx, flags, congested, window, last, .. } = segment;
    let yes = |yes: bool| u8::from(yes).to_string();
    let flag = |flag: Flags| yes(flags.has(flag));
    vec![
        format!("0x{tag:016x}"),
        block.to_string(),
        format!("0x{place:04x}"),
        tx.to_string(),
        ack_block.to_string(),
        format!("0x{ack_places:04x}"),
        ack_tx.to_string(),
        flag(Flags::ACK),
        flag(Flags::RST),
        flag(Flags::SYN),
        flag(Flags::FIN),
        yes(congested),
        window.to_string(),
        yes(last),
        payload.iter().map(|byte| format!("{byte:02x}")).collect(),
    ]
}

#[test]
fn tshark_reads_every_plain_datagram_as_we_do() {
    if !has("tshark", "tshark") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("plain.pcap");
    let options = Options { security: Security::Plain, ..Options::default() };
    let passed = conversation(&options, &noise(1, 40_000), &noise(2, 10_000));
    capture(&path, &passed);
    let read = tshark(&path, &FIELDS);
    assert_eq!(read.len(), passed.len());
    for (number, (said, (_, datagram))) in read.iter().zip(&passed).enumerate() {
        assert_eq!(*said, expected(datagram), "packet {number}");
    }
    // tshark ends in time, and no datagram is malformed.
    assert!(PcapReader::new(File::open(&path).unwrap()).is_ok());
    let malformed = tshark(&path, &["_ws.malformed", "meshpace_tpa.length"]);
    assert!(malformed.iter().all(|fields| fields[0].is_empty()), "{malformed:?}");
    let payloads: usize =
        passed.iter().filter_map(|passed| decode_plain(&passed.1)).map(|(_, _, bytes)| bytes.len()).sum();
    let lengths = malformed.iter().filter_map(|fields| fields[1].parse::<usize>().ok()).sum::<usize>();
    assert_eq!(lengths, payloads);
}

#[test]
fn tshark_reads_quiet_trains_once_decrypted() {
    if !has("tshark", "tshark") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let (log, from, to) = (place("keys"), place("encrypted.pcap"), place("plain.pcapng"));
    let keylog = Some(Arc::new(KeyLog::append(&log).unwrap()));
    let Some(Config::Train(trains)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    let path = PathInfo { hops: 1, rate: Rate::from_mbps(54), received_power_dbm: None };
    let path: Option<Arc<dyn PathSource>> = Some(Arc::new(Fixed(path)));
    let options = Options { keylog, trains: Some(trains), path, ..Options::default() };
    let (there, back) = (noise(5, 30_000), noise(6, 20_000));
    let passed = conversation(&options, &there, &back);
    capture(&from, &passed);
    assert!(decrypt(&log, &from, &to).status.success());
    let fields = ["meshpace_tpa.tag", "meshpace_tpa.train.seq", "meshpace_tpa.payload", "meshpace_tpa.trains"];
    let mut streams: BTreeMap<String, BTreeMap<usize, Vec<u8>>> = BTreeMap::new();
    for said in tshark(&to, &fields) {
        let [tag, offset, payload, trains] = &said[..] else { panic!("{said:?}") };
        assert_eq!(trains == "1", offset.is_empty(), "an opening or a segment: {said:?}");
        let bytes: Vec<u8> =
            (0..payload.len() / 2).map(|at| u8::from_str_radix(&payload[2 * at..2 * at + 2], 16).unwrap()).collect();
        if !bytes.is_empty() {
            streams.entry(tag.clone()).or_default().insert(offset.parse().unwrap(), bytes);
        }
    }
    // The pieces of each stream are ordered by the positions that tshark prints.
    let streams: BTreeSet<Vec<u8>> =
        streams.into_values().map(|pieces| pieces.into_values().flatten().collect()).collect();
    assert!(streams == BTreeSet::from([there, back]), "{:?}", streams.iter().map(Vec::len).collect::<Vec<_>>());
}

#[test]
fn tshark_tells_encrypted_datagrams_and_reads_them_once_decrypted() {
    if !has("tshark", "tshark") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let (log, from, to) = (place("keys"), place("encrypted.pcap"), place("plain.pcapng"));
    let keylog = Some(Arc::new(KeyLog::append(&log).unwrap()));
    let options = Options { keylog, security: Security::Shared([9; 32]), aes: true, ..Options::default() };
    let passed = conversation(&options, &noise(3, 20_000), &noise(4, 20_000));
    capture(&from, &passed);
    let fields = [
        "meshpace_tpa.kind",
        "meshpace_tpa.protection",
        "meshpace_tpa.offers_aes",
        "meshpace_tpa.cipher",
        "meshpace_tpa.number",
        "meshpace_tpa.tag",
    ];
    for (said, (_, datagram)) in tshark(&from, &fields).iter().zip(&passed) {
        let opening = Opening::decode(datagram).map(|(opening, _)| opening);
        let kind = opening.map_or(String::new(), |opening| (opening.kind as u8).to_string());
        let [protection, offers, cipher] = opening.map_or([""; 3], |_| ["2", "1", "1"]).map(str::to_owned);
        let tag = u64::from_be_bytes(datagram[..8].try_into().unwrap());
        let number = u64::from_be_bytes(datagram[8..16].try_into().unwrap());
        let number = opening.map_or(number.to_string(), |_| String::new());
        assert_eq!(*said, [kind, protection, offers, cipher, number, format!("0x{tag:016x}")]);
    }
    assert!(decrypt(&log, &from, &to).status.success());
    for (said, datagram) in tshark(&to, &FIELDS).iter().zip(&datagrams(&to)) {
        assert_eq!(*said, expected(datagram));
    }
}
