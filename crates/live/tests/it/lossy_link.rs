//! Tests of the lossy link itself: packets of kernels arrive late, not at all, or twice, as
//! configured.
#![expect(clippy::disallowed_methods, reason = "the link's delay is measured against the clock")]

use meshpace_core::Duration;
use meshpace_live::testbed::tun_link::{ADDRESSES, DEVICE};
use meshpace_live::testbed::{Impairment, Link, Loss, Relay, Traffic};
use meshpace_live::tun::ip;
use meshpace_testing::{Class, skipped};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

const MS: u64 = 1_000_000;

/// Sends numbered datagrams from one socket. Returns the numbers that arrive at the other, and the
/// delay of the first.
fn exchange(from: &UdpSocket, to: &UdpSocket, count: u8) -> (Vec<u8>, f64) {
    to.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
    let start = Instant::now();
    for i in 0..count {
        from.send(&[i; 100]).unwrap();
    }
    let mut buffer = [0; 200];
    let (mut numbers, mut delay) = (Vec::new(), 0.0);
    while to.recv(&mut buffer).is_ok() {
        if numbers.is_empty() {
            delay = start.elapsed().as_secs_f64();
        }
        numbers.push(buffer[0]);
    }
    (numbers, delay)
}

fn impaired() -> Impairment {
    Impairment {
        delay: Duration(30 * MS),
        loss: Loss::Indices([0, 5].into()),
        duplicate: 0.1,
        seed: 3,
        ..Impairment::default()
    }
}

fn check(numbers: &[u8], delay: f64) {
    let mut distinct = numbers.to_vec();
    distinct.dedup();
    let expected: Vec<u8> = (0..40).filter(|i| ![0, 5].contains(i)).collect();
    assert_eq!(distinct, expected);
    assert!(numbers.len() > distinct.len(), "none came twice");
    assert!(delay >= 0.030, "{delay} s");
}

#[test]
fn over_tun_devices() {
    if let Some(reason) = Link::missing() {
        skipped(Class::Rights, reason);
        return;
    }
    let link = Link::new(impaired(), Impairment::default(), 1500, true).unwrap();
    let [a, b] = ADDRESSES.map(|address| SocketAddr::from((address, 4000)));
    let to = link.sides[1].run(|| UdpSocket::bind(b).unwrap());
    let from = link.sides[0].run(|| UdpSocket::bind(a).unwrap());
    from.connect(b).unwrap();
    let (numbers, delay) = exchange(&from, &to, 40);
    check(&numbers, delay);
    let record = link.take_record();
    assert_eq!(record.len(), 40);
    assert!(record.iter().all(|passed| passed.bytes.len() == 128), "20 + 8 + 100 bytes");
    let [there, _] = link.account().unwrap();
    let copies = numbers.len() as u64;
    let expected = Traffic { entered: 40, lost: 2, delivered: copies, ..Traffic::default() };
    assert_eq!(there, expected);
    assert_eq!(link.faults(), "", "intended losses are no faults");
}

#[test]
fn a_link_whose_device_takes_nothing_says_so() {
    if let Some(reason) = Link::missing() {
        skipped(Class::Rights, reason);
        return;
    }
    let link = Link::new(Impairment::default(), Impairment::default(), 1500, false).unwrap();
    let [a, b] = ADDRESSES.map(|address| SocketAddr::from((address, 4000)));
    let from = link.sides[0].run(|| UdpSocket::bind(a).unwrap());
    link.sides[1].run(|| ip(&["link", "set", "dev", DEVICE, "down"])).unwrap();
    for _ in 0..3 {
        from.send_to(&[1; 100], b).unwrap();
    }
    let [there, _] = link.account().unwrap();
    assert_eq!(there, Traffic { entered: 3, refused: 3, ..Traffic::default() });
    assert_eq!(link.faults(), "from side 0: the far side did not take 3 packets\n");
}

#[test]
fn over_loopback() {
    let to = UdpSocket::bind("127.0.0.1:0").unwrap();
    let relay = Relay::new(to.local_addr().unwrap(), impaired(), Impairment::default(), false).unwrap();
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    from.connect(relay.address()).unwrap();
    let (numbers, delay) = exchange(&from, &to, 40);
    check(&numbers, delay);
}
