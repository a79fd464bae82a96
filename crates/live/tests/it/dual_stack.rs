//! Tests of ports of `[::]`, which serve IPv4 and IPv6, and of link-local addresses with zones.

use crate::common::{exchange, ms, noise, nowhere, quick};
use meshpace_live::hosts;
use meshpace_live::testbed::{Namespace, veth};
use meshpace_live::tpa::socket::{Families, Socket};
use meshpace_live::tpa::{Options, TpaListener, TpaPort};
use meshpace_testing::ports::spare_port;
use meshpace_testing::{Class, skipped};
use meshpace_transport::{Config, names};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A listener on a port of `[::]`; `None` on a machine without IPv6.
fn listener(options: Options) -> Option<TpaListener> {
    match TpaPort::with_options("[::]:0", options) {
        Ok(port) if TpaPort::bind("[::1]:0").is_ok() => {
            let listener = port.listen(4).unwrap();
            listener.set_timeout(Some(ms(60_000))).unwrap();
            Some(listener)
        }
        _ => {
            skipped(Class::Rights, "no IPv6 on this machine");
            None
        }
    }
}

/// Options for TPA, for quiet trains, and for BBR in their place.
fn carriers() -> [Options; 3] {
    let Some(Config::Train(config)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    let trains = Options { trains: Some(config), takes_tpa: true, ..quick() };
    [quick(), trains.clone(), Options { bbr: true, ..trains }]
}

#[test]
fn a_port_of_all_addresses_serves_both_families_by_every_carrier() {
    for (number, options) in carriers().into_iter().enumerate() {
        let Some(all) = listener(options.clone()) else { return };
        let at = all.local_addr().unwrap();
        for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let to = SocketAddr::new(host, at.port());
            let own = TpaPort::with_options((host, 0), options.clone()).unwrap();
            let client = own.connect(to).unwrap();
            let (server, peer) = all.accept().unwrap();
            // The peer's address is one of its own family, not the IPv6 address to which the kernel
            // maps an IPv4 address.
            assert_eq!(peer, own.local_addr().unwrap(), "carrier {number}");
            assert_eq!((server.local_addr().unwrap(), server.peer_addr().unwrap()), (to, peer));
            exchange(client, server, &noise(1, 100_000), &noise(2, 50_000));
        }
    }
}

#[test]
fn a_port_of_all_addresses_opens_connections_to_both_families() {
    let Some(own) = listener(quick()) else { return };
    drop(own);
    let own = TpaPort::with_options("[::]:0", quick()).unwrap();
    assert_eq!(own.families(), Families::Both);
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let far = TpaPort::with_options(host, quick()).unwrap().listen(4).unwrap();
        let client = own.connect(far.local_addr().unwrap()).unwrap();
        let server = far.accept().unwrap().0;
        exchange(client, server, &noise(3, 50_000), &noise(4, 100_000));
    }
    // Reports of the network about IPv4 datagrams are received too.
    assert_eq!(own.connect(nowhere()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    // The MTU of the path is known for both families.
    for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        assert!(Socket::mtu_between((Ipv6Addr::UNSPECIFIED, 0).into(), (host, 9).into()).unwrap() > 1280);
    }
}

#[test]
fn a_port_says_which_families_it_serves() {
    let Some(all) = listener(quick()) else { return };
    drop(all);
    let families = |local: SocketAddr| TpaPort::with_options(local, quick()).map(|port| port.families());
    assert_eq!(families("0.0.0.0:0".parse().unwrap()).unwrap(), Families::V4);
    assert_eq!(families("[::1]:0".parse().unwrap()).unwrap(), Families::V6);
    assert_eq!(families("[::ffff:127.0.0.1]:0".parse().unwrap()).unwrap(), Families::V4);
    assert_eq!(families("[::]:0".parse().unwrap()).unwrap(), Families::Both);
    // Two ports with the same number, as before one port could serve both families.
    let port = spare_port();
    let v4 = TpaPort::with_options(("0.0.0.0", port), quick()).unwrap();
    let v6 = TpaPort::with_options(("::", port), quick()).unwrap();
    assert_eq!((v4.families(), v6.families()), (Families::V4, Families::V6));
    assert!(TpaPort::with_options(("::", port), quick()).is_err(), "the port is taken");
    let error = v6.connect("127.0.0.1:9").unwrap_err().to_string();
    assert!(error.contains("no IPv6 address"), "{error}");
}

#[test]
fn link_local_addresses_have_zones_at_both_ends() {
    let sides = match Namespace::new().and_then(|a| Ok([a, Namespace::new()?])) {
        Ok(sides) => sides,
        Err(error) => return skipped(Class::Rights, format!("no network namespaces here ({error}); needs root")),
    };
    let addresses = [Ipv4Addr::new(10, 66, 1, 1), Ipv4Addr::new(10, 66, 1, 2)];
    if let Err(error) = veth::join([&sides[0], &sides[1]], "zone.0", addresses, 1500) {
        return skipped(Class::Rights, format!("no devices here ({error}); needs root and ip"));
    }
    // The addresses are usable at once, without duplicate address detection.
    for (side, address) in sides.iter().zip(["fe80::a1/64", "fe80::a2/64"]) {
        side.run(|| meshpace_live::tun::ip(&["address", "add", address, "dev", "zone.0", "nodad"])).unwrap();
    }
    let at = |text: &str| hosts::place(text).unwrap()[0];
    for local in ["[fe80::a2%zone.0]:0", "[::]:0"] {
        let (server, to) = sides[1].run(|| {
            let listener = TpaPort::with_options(at(local), quick()).unwrap().listen(4).unwrap();
            let port = listener.local_addr().unwrap().port();
            listener.set_timeout(Some(ms(60_000))).unwrap();
            (listener, format!("[fe80::a2%zone.0]:{port}"))
        });
        let client = sides[0].run(|| {
            // The server is reached from a port of the link, and from a port of all addresses.
            let own = if local == "[::]:0" { local } else { "[fe80::a1%zone.0]:0" };
            let own = TpaPort::with_options(at(own), quick()).unwrap();
            own.connect(at(&to)).unwrap()
        });
        let (server, peer) = server.accept().unwrap();
        assert_eq!(peer.ip(), "fe80::a1".parse::<IpAddr>().unwrap());
        exchange(client, server, &noise(5, 50_000), &noise(6, 50_000));
    }
}
