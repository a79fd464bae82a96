//! Tests that hops follow routes and mesh paths while connections continue.
#![cfg(feature = "kernel")]

mod common;

use common::{DEVICE, Flow, Loaded, RECEIVER, eventually, is_missing, network};
use meshpace_core::Rate;
use meshpace_kernel::watch::{Change, Follower, Hops, Sources, Watcher};
use meshpace_kernel::{Destination, Error, Path, object};
use meshpace_live::testbed::Namespace;
use meshpace_live::tun::ip;
use meshpace_testing::{Class, skipped};
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

fn sources(devices: &[&str], metric_per_hop: u32) -> Sources {
    Sources { devices: devices.iter().map(|&device| device.to_owned()).collect(), metric_per_hop }
}

/// The watcher's hops, as a list of texts.
fn told(watcher: &mut Watcher) -> Vec<String> {
    let hops = watcher.read().unwrap();
    hops.iter().map(|(destination, hops)| format!("{destination} {hops}")).collect()
}

#[test]
fn routes_of_a_namespace_are_read() {
    let Ok(place) = Namespace::new() else {
        skipped(Class::Rights, "no network namespaces");
        return;
    };
    place.run(|| {
        for line in [
            "link add one type veth peer name two",
            "address add 10.1.0.1/24 dev one",
            "link set one up",
            "link set two up",
            // Routes of a daemon: a neighbour, and destinations behind it.
            "route add 10.9.0.2/32 dev one",
            "route add 10.9.0.3/32 via 10.1.0.2 metric 2",
            "route add 10.9.4.0/24 via 10.1.0.2 metric 7",
            "route add 10.9.4.0/24 via 10.1.0.3 metric 5",
            "route add 10.8.0.0/24 dev two metric 3",
            "route add default via 10.1.0.2 metric 6",
            "-6 route add fd00:9::/64 dev one metric 4",
            // Routes that give no hops: a static one, one of a DHCP client, one in another table,
            // and one that leads nowhere.
            "route add 10.7.1.0/24 via 10.1.0.2",
            "route add 10.7.2.0/24 via 10.1.0.2 metric 100",
            "route add 10.7.3.0/24 via 10.1.0.2 metric 3 table 100",
            "route add blackhole 10.7.4.0/24 metric 3",
        ] {
            ip(&line.split(' ').collect::<Vec<_>>()).unwrap();
        }
        let mut all = Watcher::new(sources(&[], 1)).unwrap();
        let mine = ["0.0.0.0/0 6", "10.9.0.2 1", "10.9.0.3 2", "10.9.4.0/24 5", "fd00:9::/64 4"];
        let mut both = mine.to_vec();
        both.push("10.8.0.0/24 3");
        let sorted = |texts: Vec<String>| {
            let mut texts = texts;
            texts.sort();
            texts
        };
        both.sort();
        assert_eq!(sorted(told(&mut all)), both);
        let mut one = Watcher::new(sources(&["one"], 1)).unwrap();
        assert_eq!(sorted(told(&mut one)), mine);
        // With a metric of two per hop, as a daemon with a metric of its own would have.
        let mut halved = Watcher::new(sources(&["one"], 2)).unwrap();
        assert!(told(&mut halved).contains(&"10.9.0.3 1".to_owned()));
        assert!(!one.reads_mesh_paths() || one.read().is_ok());
        match Watcher::new(sources(&["three"], 1)) {
            Err(Error::Refused(text)) => assert!(text.contains("three"), "{text}"),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn hops_follow_a_route_while_a_connection_goes_on() {
    if is_missing() {
        return;
    }
    let sides = network();
    let loaded = Loaded::new(Loaded::request('w'));
    let other: Destination = "10.80.0.0/16".parse().unwrap();
    let mut follower = Follower::new(object::Paths::of(loaded.name()).unwrap(), loaded.0.usual, vec![other]);
    let mut watcher = sides[0].run(|| Watcher::new(sources(&[DEVICE], 1)).unwrap());
    // The new route is added beside the old one, so that the connection always has a path.
    let route = |what: &str, metric: &str| {
        let line = format!("route {what} {RECEIVER}/32 dev {DEVICE} metric {metric}");
        sides[0].run(|| ip(&line.split(' ').collect::<Vec<_>>())).unwrap();
    };
    let flow = Flow::start(&sides, RECEIVER, loaded.name());
    let hops = || {
        let status = object::status(loaded.name()).unwrap();
        status.connections.iter().find(|one| one.samples > 0).map(|one| one.hops)
    };
    let within = Duration::from_secs(10);
    assert!(eventually(within, || hops() == Some(4)), "{:?}", hops());
    route("add", "6");
    assert!(
        eventually(within, || {
            watcher.wait(Duration::from_millis(50)).unwrap();
            follower.follow(watcher.read().unwrap());
            hops() == Some(6)
        }),
        "{:?}",
        hops()
    );
    // A better route, as a daemon installs after it has found a shorter path.
    route("add", "2");
    #[expect(clippy::disallowed_methods, reason = "the kernel takes its time")]
    let before = Instant::now();
    watcher.wait(2 * within).unwrap();
    assert!(before.elapsed() < within, "the kernel tells of it");
    let (changes, error) = follower.follow(watcher.read().unwrap());
    assert_eq!((changes, error), (vec![Change::Set(Destination::from(RECEIVER), 2)], None));
    let sofar = flow.arrived.load(Relaxed);
    assert!(eventually(within, || hops() == Some(2)), "{:?}", hops());
    assert!(eventually(within, || flow.arrived.load(Relaxed) > sofar), "the connection goes on");
    // A path of the command line is kept, whatever the routes are.
    let mut found: Hops = watcher.read().unwrap();
    found.insert(other, 9);
    assert_eq!(follower.follow(found), (Vec::new(), None));
    route("del", "2");
    route("del", "6");
    let (changes, _) = follower.follow(watcher.read().unwrap());
    assert_eq!(changes, [Change::Removed(Destination::from(RECEIVER))]);
    assert!(eventually(within, || hops() == Some(4)), "the default holds again: {:?}", hops());
    flow.finish();
}

#[test]
fn what_does_not_fit_is_told_and_the_rest_is_written() {
    if is_missing() {
        return;
    }
    let loaded = Loaded::new(Loaded::request('u'));
    let mut follower =
        Follower::new(object::Paths::of(loaded.name()).unwrap(), Path::new(4, Rate::from_mbps(2)), Vec::new());
    let host = |k: u32| Destination::from(Ipv4Addr::from(0x0a00_0000 + k));
    let (changes, error) = follower.follow((0..4096).map(|k| (host(k), 3)).collect());
    assert_eq!(changes.len(), 4095, "the default has a place of its own");
    assert!(error.is_some_and(|error| error.to_string().contains("at most 4096 paths")));
    let (changes, error) = follower.follow((0..10).map(|k| (host(k), 3)).collect());
    assert_eq!((changes.len(), error), (4085, None));
}

/// Runs a program that has to succeed.
fn run(program: &str, line: &str) {
    let done = Command::new(program).args(line.split(' ')).output().unwrap();
    assert!(done.status.success(), "{program} {line}: {}", String::from_utf8_lossy(&done.stderr));
}

fn mac(device: &str) -> String {
    std::fs::read_to_string(format!("/sys/class/net/{device}/address")).unwrap().trim().to_owned()
}

/// Three radios that receive each other. The outer two refuse to be peers, so that their path leads
/// over the middle one.
#[test]
#[ignore = "wants the radios of mac80211_hwsim; the test below runs it where they are"]
fn hops_follow_the_paths_of_a_mesh() {
    // The addresses are read before the radios move to namespaces of their own.
    let stations = [0, 1, 2].map(|number| mac(&format!("wlan{number}")));
    let places = [0, 1, 2].map(|number| {
        let place = Namespace::new().unwrap();
        // A radio is moved to the namespace of a process, so each namespace gets one.
        let mut somebody = place.run(|| Command::new("sleep").arg("60").spawn().unwrap());
        run("iw", &format!("phy phy{number} set netns {}", somebody.id()));
        place.run(|| {
            run("iw", &format!("dev wlan{number} set type mp"));
            run("ip", &format!("address add 10.42.0.{}/24 dev wlan{number}", number + 1));
            run("ip", &format!("link set wlan{number} up"));
            run("iw", &format!("dev wlan{number} mesh join test freq 2412"));
        });
        somebody.kill().unwrap();
        somebody.wait().unwrap();
        place
    });
    let within = Duration::from_secs(60);
    let peers = |number: usize| {
        let dump = places[number].run(|| {
            Command::new("iw").args(["dev", &format!("wlan{number}"), "station", "dump"]).output().unwrap().stdout
        });
        String::from_utf8_lossy(&dump).matches("ESTAB").count()
    };
    assert!(eventually(within, || (0..3).all(|number| peers(number) == 2)), "{:?}", [0, 1, 2].map(peers));
    for (number, other) in [(0, 2), (2, 0)] {
        let line = format!("dev wlan{number} station set {} plink_action block", stations[other]);
        places[number].run(|| run("iw", &line));
    }
    let [first, _relay, last] = places;
    let sides = [first, last];
    let mut request = Loaded::request('m');
    // A destination without a path of its own is paced because the device is an 802.11 device.
    request.usual.always = false;
    let loaded = Loaded::new(request);
    let usual = loaded.0.usual;
    let mut follower = Follower::new(object::Paths::of(loaded.name()).unwrap(), usual, Vec::new());
    let mut watcher = sides[0].run(|| Watcher::new(sources(&[], 1)).unwrap());
    assert!(watcher.reads_mesh_paths());
    let flow = Flow::start(&sides, Ipv4Addr::new(10, 42, 0, 3), loaded.name());
    let is_paced = || object::status(loaded.name()).unwrap().connections.iter().any(|one| one.paced && one.samples > 0);
    assert!(eventually(within, is_paced), "{:?}", object::status(loaded.name()));
    let mut used = None;
    let followed = eventually(within, || {
        follower.follow(watcher.read().unwrap());
        let status = object::status(loaded.name()).unwrap();
        used = status.connections.iter().find(|one| one.samples > 0).map(|one| one.hops);
        used == Some(2)
    });
    println!("HOP_COUNT used: {used:?}; in the map: {:?}", watcher.read().unwrap());
    assert!(followed, "{used:?}");
    flow.finish();
}

#[test]
fn mesh_paths_are_followed_on_linux_6_1() {
    let what = "boots Debian's kernel 6.1 in qemu with three radios of mac80211_hwsim in an 802.11s mesh";
    if meshpace_testing::is_slow_run(what) && meshpace_testing::has("iw", "iw") {
        common::debian_6_1("hops_follow_the_paths_of_a_mesh --ignored", "1 passed; 0 failed");
    }
}
