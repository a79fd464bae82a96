//! Tests of loading and unloading: what remains afterwards, which connections continue, who may
//! choose the congestion control, and which requests are refused.
#![cfg(feature = "kernel")]

mod common;

use common::{Flow, Loaded, RECEIVER, choose, eventually, is_missing, network};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{MapHandle, Program};
use meshpace_core::Rate;
use meshpace_kernel::object::Request;
use meshpace_kernel::tuning::{LeastSegments, is_allowed, is_registered};
use meshpace_kernel::{Destination, Error, Form, NAME, Path, object};
use meshpace_live::tun::ip;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::TcpCongestion;
use std::fs;
use std::net::{Ipv6Addr, TcpListener, TcpStream};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The kernel's numbers of the maps and programs of a loaded congestion control.
struct Numbers {
    map: u32,
    programs: Vec<u32>,
}

impl Numbers {
    fn of(name: &str) -> Numbers {
        let pin = format!("/sys/fs/bpf/meshpace/{name}/paths");
        let map = MapHandle::from_pinned_path(pin).unwrap();
        let map = libbpf_rs::MapInfo::new(std::os::fd::AsFd::as_fd(&map)).unwrap().info.id;
        let options = libbpf_rs::query::ProgInfoQueryOptions::default().include_map_ids(true);
        let programs = ProgInfoIter::with_query_opts(options);
        let programs: Vec<u32> =
            programs.filter(|program| program.map_ids.contains(&map)).map(|program| program.id).collect();
        assert!(!programs.is_empty(), "a program uses the paths");
        Numbers { map, programs }
    }

    /// True if the kernel holds none of the maps and programs any more.
    fn gone(&self) -> bool {
        MapHandle::from_map_id(self.map).is_err()
            && self.programs.iter().all(|number| Program::fd_from_id(*number).is_err())
    }
}

/// Loads, sends, unloads while it sends, continues to send, and stops. Afterwards nothing may
/// remain.
fn cycles(form: Form, count: usize, letter: char) {
    let sides = network();
    let mut left = Vec::new();
    for cycle in 0..count {
        let loaded = Loaded::new(Request { form, ..Loaded::request(letter) });
        let numbers = Numbers::of(loaded.name());
        let flow = Flow::start(&sides, RECEIVER, loaded.name());
        let arrived = flow.arrived.clone();
        let more = |than: u64| eventually(Duration::from_secs(20), || arrived.load(Relaxed) > than);
        assert!(more(0), "cycle {cycle}: nothing arrives");
        object::unload(loaded.name()).unwrap();
        assert!(!is_registered(loaded.name()));
        assert!(!numbers.gone(), "cycle {cycle}: a connection uses it");
        // This is more than can have been in flight.
        assert!(more(arrived.load(Relaxed) + 20_000), "cycle {cycle}: the connection is stuck");
        flow.finish();
        left.push(numbers);
    }
    // A worker of the kernel frees them once no processor can be executing them any more. This
    // takes over 20 s where forty programs share two processors.
    assert!(eventually(Duration::from_secs(120), || left.iter().all(Numbers::gone)), "maps or programs are left");
    eprintln!("{count} cycles, nothing left");
}

#[test]
fn unloading_under_traffic_leaves_nothing_and_stops_nobody() {
    if !is_missing() {
        cycles(Form::Ap05, 5, 'c');
        cycles(Form::QuietTrainSolo, 5, 'C');
    }
}

#[test]
fn two_hundred_cycles_leave_nothing() {
    if !is_missing() && meshpace_testing::is_slow_run("loads and unloads each 200 times under traffic") {
        cycles(Form::Ap05, 200, 'd');
        cycles(Form::QuietTrainSolo, 200, 'D');
    }
}

/// A connection over the loopback for which a congestion control can be chosen.
fn connection() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    TcpStream::connect(listener.local_addr().unwrap()).unwrap()
}

/// Chooses the congestion control without any capability.
fn choose_without_rights(name: &str) -> std::io::Result<()> {
    let name = name.to_owned();
    let attempt = move || {
        let socket = connection();
        // The capabilities are those of this thread alone, which ends here.
        let none = rustix::thread::CapabilitySet::empty();
        let none = rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, none).unwrap();
        choose(&socket, &name)
    };
    std::thread::spawn(attempt).join().unwrap()
}

#[test]
fn users_choose_it_only_if_allowed() {
    if is_missing() {
        return;
    }
    let closed = Loaded::new(Loaded::request('e'));
    let error = choose_without_rights(closed.name()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    let mut request = Loaded::request('f');
    request.allow_users = true;
    let open = Loaded::new(request);
    assert!(is_allowed(open.name()) && is_allowed("reno"), "added to the list, not written over it");
    choose_without_rights(open.name()).unwrap();
    object::unload(open.name()).unwrap();
    assert!(!is_allowed(open.name()) && is_allowed("reno"));
}

#[test]
fn it_is_there_until_unloaded_and_found_again() {
    if is_missing() {
        return;
    }
    let mut request = Loaded::request('g');
    request.initial_window = 3;
    request.paths.push(("10.0.0.0/8".parse().unwrap(), Path::new(6, Rate::from_mbps(2))));
    let loaded = Loaded::new(request);
    // Only the request remains of the loader in this process. The following calls read the kernel.
    let status = object::status(loaded.name()).unwrap();
    assert!(status.registered && !status.users);
    assert_eq!((status.form, status.factor, status.initial_window), (loaded.0.form, 200, 3));
    assert_eq!(status.paths, [(Destination::ANY, loaded.0.usual), loaded.0.paths[0]]);
    assert!(object::loaded().unwrap().contains(&loaded.0.name));
    let socket = connection();
    choose(&socket, loaded.name()).unwrap();
    assert_eq!(getsockopt(&socket, TcpCongestion).unwrap(), loaded.name());
    let again = object::load(&loaded.0).unwrap_err();
    assert!(matches!(&again, Error::Refused(text) if text.contains("registered already")), "{again}");
    assert!(is_registered(loaded.name()), "the first one stays");
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    if is_missing() {
        return;
    }
    let refused = |change: &dyn Fn(&mut object::Request), expected: &str| {
        let mut request = Loaded::request('h');
        change(&mut request);
        match object::load(&request) {
            Err(Error::Refused(text)) => assert!(text.contains(expected), "{text}"),
            other => panic!("{expected}: {other:?}"),
        }
        if request.name != "reno" {
            assert!(!is_registered(&request.name));
        }
        assert!(fs::metadata(format!("/sys/fs/bpf/meshpace/{}", request.name)).is_err(), "{expected}: pins are left");
    };
    let usual = Path::new(4, Rate::from_mbps(2));
    refused(&|request| request.name = "a_name_of_16_char".to_owned(), "cannot name");
    refused(&|request| request.name = "reno".to_owned(), "not ours");
    refused(&|request| request.usual.hops = 0, "hops");
    refused(&|request| request.factor = 1001, "factor");
    refused(&|request| request.devices = vec!["nosuchdevice".to_owned()], "nosuchdevice");
    // This is one path more than the map holds.
    let host = |k: u32| Destination::from(std::net::Ipv4Addr::from(0x0a00_0000 + k));
    refused(&|request| request.paths = (0..4096).map(|k| (host(k), usual)).collect(), "at most 4096 paths");
    assert!(matches!(object::unload("mp_nobody"), Err(Error::Refused(_))));
    assert!(matches!(object::status("mp_nobody"), Err(Error::Refused(_))));
    assert!(matches!(object::unload("reno"), Err(Error::Refused(text)) if text.contains("not ours")));
    assert_ne!(NAME, "reno");
}

#[test]
fn what_a_killed_loader_left_is_no_obstacle() {
    if is_missing() {
        return;
    }
    // Creates pins without a registration, as left by a loader that is killed before the last step.
    let request = Loaded::request('k');
    let pins = format!("/sys/fs/bpf/meshpace/{}", request.name);
    drop(Loaded::new(Loaded::request('l')));
    fs::create_dir(&pins).unwrap();
    let mut map = MapHandle::create(
        libbpf_rs::MapType::Array,
        Some("left"),
        4,
        4,
        1,
        &libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        },
    )
    .unwrap();
    map.pin(format!("{pins}/paths")).unwrap();
    let loaded = Loaded::new(request);
    assert!(is_registered(loaded.name()));
    object::unload(loaded.name()).unwrap();
    assert!(fs::metadata(&pins).is_err());
}

#[test]
fn devices_are_put_back() {
    if is_missing() {
        return;
    }
    let sides = network();
    sides[1].run(|| {
        let bursting = meshpace_kernel::tuning::bursting();
        assert_eq!(bursting, [common::DEVICE], "the side that the network leaves alone");
        let mut request = Loaded::request('v');
        request.devices = vec![common::DEVICE.to_owned()];
        let loaded = Loaded::new(request);
        assert!(meshpace_kernel::tuning::bursting().is_empty());
        object::unload(loaded.name()).unwrap();
        assert_eq!(meshpace_kernel::tuning::bursting(), bursting);
    });
}

#[test]
fn the_least_of_segments_is_one_and_put_back() {
    if is_missing() {
        return;
    }
    let sides = network();
    let least = || fs::read_to_string("/proc/sys/net/ipv4/tcp_min_tso_segs").unwrap().trim().to_owned();
    sides[0].run(|| {
        assert_eq!(least(), "2", "the kernel's own");
        // Quiet trains have a program that returns this number to the kernel.
        drop(Loaded::new(Request { form: Form::QuietTrainSolo, ..Loaded::request('r') }));
        assert_eq!(least(), "2");
        let _loaded = Loaded::new(Loaded::request('g'));
        assert_eq!(least(), "1");
        // The last `unload` calls this. Other tests may have congestion controls loaded, so the
        // test calls it itself.
        LeastSegments::here().unwrap().restore().unwrap();
        assert_eq!(least(), "2");
        // A value that somebody has chosen since is kept.
        LeastSegments::here().unwrap().change().unwrap();
        fs::write("/proc/sys/net/ipv4/tcp_min_tso_segs", "3").unwrap();
        LeastSegments::here().unwrap().restore().unwrap();
        assert_eq!(least(), "3");
    });
}

/// Loads one congestion control in a process of its own, which is killed meanwhile.
#[test]
#[ignore = "part of the test below"]
fn loads_what_the_environment_names() {
    let mut request = Loaded::request('z');
    request.name = std::env::var("MESHPACE_TEST_NAME").unwrap();
    object::load(&request).unwrap();
}

#[test]
fn a_loader_that_is_killed_leaves_all_or_nothing() {
    if is_missing() {
        return;
    }
    let mut request = Loaded::request('x');
    request.allow_users = true;
    let mut finished = 0;
    for milliseconds in [0, 5, 10, 20, 30, 45, 70, 100, 150, 300, 20_000] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "loads_what_the_environment_names", "--ignored"])
            .env("MESHPACE_TEST_NAME", &request.name)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        eventually(Duration::from_millis(milliseconds), || child.try_wait().unwrap().is_some());
        let _ = child.kill();
        child.wait().unwrap();
        if is_registered(&request.name) {
            finished += 1;
            assert!(object::status(&request.name).unwrap().registered, "with all its pins");
            choose(&connection(), &request.name).unwrap();
            object::unload(&request.name).unwrap();
        }
        // Whatever the killed loader left is not an obstacle.
        drop(Loaded::new(request.clone()));
        assert!(!is_registered(&request.name));
    }
    assert!(finished > 0, "the last one had time enough");
}

#[test]
fn a_path_can_change_under_a_connection() {
    if is_missing() {
        return;
    }
    let sides = network();
    let loaded = Loaded::new(Loaded::request('p'));
    let flow = Flow::start(&sides, RECEIVER, loaded.name());
    let hops = || {
        let status = object::status(loaded.name()).unwrap();
        status.connections.iter().find(|one| one.samples > 0).map(|one| (one.hops, one.channel))
    };
    assert!(eventually(Duration::from_secs(5), || hops() == Some((4, Rate::from_mbps(11)))), "{:?}", hops());
    let paths = object::Paths::of(loaded.name()).unwrap();
    let whole: Destination = "10.79.0.0/16".parse().unwrap();
    paths.set(&whole, &Path::new(7, Rate::from_mbps(2))).unwrap();
    assert!(eventually(Duration::from_secs(5), || hops() == Some((7, Rate::from_mbps(2)))), "{:?}", hops());
    paths.set(&Destination::from(RECEIVER), &Path::new(2, Rate::from_mbps(2))).unwrap();
    assert!(eventually(Duration::from_secs(5), || hops() == Some((2, Rate::from_mbps(2)))), "the longer prefix");
    paths.remove(&Destination::from(RECEIVER)).unwrap();
    paths.remove(&whole).unwrap();
    assert!(eventually(Duration::from_secs(5), || hops() == Some((4, Rate::from_mbps(11)))), "{:?}", hops());
    assert!(paths.set(&whole, &Path { hops: 0, ..Path::new(1, Rate::from_mbps(2)) }).is_err());
    flow.finish();
}

#[test]
fn connections_of_ipv6_have_their_paths() {
    if is_missing() {
        return;
    }
    let sides = network();
    let [near, far] = ["fd79::1", "fd79::2"].map(|text| text.parse::<Ipv6Addr>().unwrap());
    for (side, address) in sides.iter().zip([near, far]) {
        side.run(|| ip(&["address", "add", &format!("{address}/64"), "dev", common::DEVICE, "nodad"])).unwrap();
    }
    let mut request = Loaded::request('i');
    let rate = Rate::from_mbps(11);
    request.paths.push(("fd79::/64".parse().unwrap(), Path::new(6, rate)));
    request.paths.push(("10.79.0.0/16".parse().unwrap(), Path::new(5, rate)));
    let loaded = Loaded::new(request);
    // One connection to an IPv6 address, and one by an IPv6 socket to an IPv4 address (RFC 4291,
    // section 2.5.5.2).
    let mapped = RECEIVER.to_ipv6_mapped();
    for (address, called, hops) in [(far.into(), far.into(), 6), (RECEIVER.into(), mapped.into(), 5)] {
        let flow = Flow::between(&sides, address, called, loaded.name());
        let found = || {
            let status = object::status(loaded.name()).unwrap();
            status.connections.iter().find(|one| one.remote.ip() == address && one.samples > 0).map(|one| one.hops)
        };
        assert!(eventually(Duration::from_secs(10), || found() == Some(hops)), "{called}: {:?}", found());
        flow.finish();
    }
}

#[test]
fn quiet_trains_are_there_and_carry() {
    if is_missing() {
        return;
    }
    let sides = network();
    let request = Request { form: Form::QuietTrainSolo, initial_window: 2, ..Loaded::request('t') };
    let loaded = Loaded::new(request);
    let status = object::status(loaded.name()).unwrap();
    assert!(status.registered && status.form == Form::QuietTrainSolo);
    let flow = Flow::start(&sides, RECEIVER, loaded.name());
    // After this number of samples the control law has left its initial phase.
    let found = || {
        let status = object::status(loaded.name()).unwrap();
        status.connections.into_iter().find(|one| one.samples > 50)
    };
    assert!(eventually(Duration::from_secs(20), || found().is_some()), "{:?}", object::status(loaded.name()));
    let one = found().unwrap();
    assert!(one.paced && one.train >= 2 && one.train.is_multiple_of(2), "{one:?}");
    assert!(one.gap <= one.interval && one.interval.0 > 0, "{one:?}");
    assert!(flow.arrived.load(Relaxed) > 100_000);
    flow.finish();
}

#[test]
fn the_same_programs_run_on_linux_6_1() {
    let what = "boots Debian's kernel 6.1 in qemu and runs these tests there";
    if meshpace_testing::is_slow_run(what) {
        let tests = "it_is_there users_choose what_a_killed a_path_can_change quiet_trains_are_there";
        common::debian_6_1(tests, "5 passed; 0 failed");
    }
}
