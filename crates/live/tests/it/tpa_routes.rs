//! Tests TPA over a router: a link with a smaller MTU behind it, and the router's messages when it
//! has no route.

use crate::common::{exchange, noise, quick};
use meshpace_live::testbed::{Namespace, veth};
use meshpace_live::tpa::{Options, Security, TpaListener, TpaPort, TpaStream};
use meshpace_live::tun::ip;
use meshpace_testing::{Class, skipped};
use meshpace_transport::{Config, names};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 82, 0, 2);
const TO: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(SERVER, 5000));

/// Namespaces of client, router and server.
fn network(behind: u16) -> Option<[Namespace; 3]> {
    let made = Namespace::new().and_then(|client| {
        let (router, server) = (Namespace::new()?, Namespace::new()?);
        veth::join([&client, &router], "near", [CLIENT, Ipv4Addr::new(10, 81, 0, 2)], 1500)?;
        veth::join([&router, &server], "far", [Ipv4Addr::new(10, 82, 0, 1), SERVER], behind)?;
        client.run(|| ip(&["route", "add", "10.80.0.0/12", "via", "10.81.0.2"]))?;
        server.run(|| ip(&["route", "add", "10.81.0.0/24", "via", "10.82.0.1"]))?;
        router.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
        // The kernel limits the rate of messages about missing routes.
        router.run(|| std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0"))?;
        Ok([client, router, server])
    });
    let why = |error| format!("no namespaces joined by veth here ({error}); needs root");
    made.map_err(|error| skipped(Class::Rights, why(error))).ok()
}

fn listener(server: &Namespace) -> TpaListener {
    let listener = server.run(|| TpaPort::with_options(TO, quick()).unwrap().listen(4).unwrap());
    listener.set_timeout(Some(crate::common::ms(20_000))).unwrap();
    listener
}

fn connect(client: &Namespace) -> std::io::Result<TpaStream> {
    client.run(|| TpaPort::with_options("0.0.0.0:0", quick()).unwrap().connect(TO))
}

#[test]
fn a_router_before_a_narrow_link_is_understood() {
    let Some([client, _router, server]) = network(600) else { return };
    let listener = listener(&server);
    // The second request of the handshake is as large as a full segment. The message "fragmentation
    // needed" (RFC 1191) makes the segments fit.
    let first = connect(&client).unwrap();
    exchange(first, listener.accept().unwrap().0, &noise(3, 100_000), &noise(4, 100_000));
    // The host knows the MTU now, so the segments of the next connection fit.
    let second = connect(&client).unwrap();
    exchange(second, listener.accept().unwrap().0, &noise(1, 100_000), &noise(2, 100_000));
}

#[test]
fn no_way_to_the_peer() {
    let Some([client, router, server]) = network(1500) else { return };
    // There is no route; a router reports that there is none; a neighbour does not answer.
    let error = |to: &str| client.run(|| TpaPort::with_options("0.0.0.0:0", quick()).unwrap().connect(to)).unwrap_err();
    assert_eq!(error("192.0.2.1:1").kind(), ErrorKind::NetworkUnreachable);
    router.run(|| ip(&["route", "add", "unreachable", "10.83.0.0/24"]).unwrap());
    let told = error("10.83.0.1:1");
    assert_eq!(told.kind(), ErrorKind::HostUnreachable, "{told}");
    assert_eq!(error("10.81.0.9:1").kind(), ErrorKind::HostUnreachable);
    // An open connection survives the same error if it lasts for two seconds.
    let listener = listener(&server);
    let stream = connect(&client).unwrap();
    let accepted = listener.accept().unwrap().0;
    router.run(|| ip(&["route", "add", "unreachable", &SERVER.to_string()]).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            #[expect(clippy::disallowed_methods, reason = "an outage takes its time")]
            std::thread::sleep(crate::common::ms(2000));
            router.run(|| ip(&["route", "del", "unreachable", &SERVER.to_string()]).unwrap());
        });
        exchange(stream, accepted, &noise(3, 200_000), &noise(4, 200_000));
    });
}

/// Makes a router send no message when a packet is too long for its link. Returns false, and skips
/// the test, without `nft`.
fn silence(router: &Namespace) -> bool {
    let rules = "add table ip quiet\n\
                 add chain ip quiet out { type filter hook output priority 0; }\n\
                 add rule ip quiet out icmp type destination-unreachable drop\n";
    let done = router.run(|| {
        let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn()?;
        nft.stdin.take().map_or(Ok(()), |mut input| input.write_all(rules.as_bytes()))?;
        nft.wait()
    });
    let is_done = done.as_ref().is_ok_and(std::process::ExitStatus::success);
    if !is_done {
        skipped(Class::Tools, format!("no packet filter here ({done:?}); needs nft"));
    }
    is_done
}

/// Options for TPA, for quiet trains, and for BBR in their place, with keys.
fn carriers() -> [Options; 3] {
    let Some(Config::Train(config)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    let options = Options { security: Security::Shared([7; 32]), ..quick() };
    let trains = Options { trains: Some(config), ..options.clone() };
    [options, trains.clone(), Options { bbr: true, ..trains }]
}

/// Both ends of a connection through the router, to a port that only this connection uses: a closed
/// port is free only a while later.
fn through(client: &Namespace, server: &Namespace, options: &Options, port: u16) -> [TpaStream; 2] {
    let to = SocketAddr::from((SERVER, port));
    let listener = server.run(|| TpaPort::with_options(to, options.clone()).unwrap().listen(4).unwrap());
    listener.set_timeout(Some(crate::common::ms(60_000))).unwrap();
    let own = client.run(|| TpaPort::with_options("0.0.0.0:0", options.clone()).unwrap().connect(to).unwrap());
    [own, listener.accept().unwrap().0]
}

#[test]
fn a_router_that_drops_long_packets_in_silence_is_found_out_while_a_connection_opens() {
    let Some([client, router, server]) = network(1280) else { return };
    if !silence(&router) {
        return;
    }
    for (options, port) in carriers().into_iter().zip(5000..) {
        let [own, other] = through(&client, &server, &options, port);
        assert_eq!(own.narrowed(), Some(1280));
        exchange(own, other, &noise(1, 300_000), &noise(2, 100_000));
    }
}

#[test]
fn a_router_that_drops_long_packets_in_silence_later_is_found_out_under_way() {
    let Some([client, router, server]) = network(1500) else { return };
    if !silence(&router) {
        return;
    }
    for (options, port) in carriers().into_iter().zip(5000..) {
        let set = |mtu: &str| router.run(|| ip(&["link", "set", "far", "mtu", mtu]).unwrap());
        set("1500");
        let [own, other] = through(&client, &server, &options, port);
        let (mut a, mut b) = (&own, &other);
        a.write_all(&noise(5, 10_000)).unwrap();
        b.read_exact(&mut [0; 10_000]).unwrap();
        assert_eq!(own.narrowed(), None);
        set("1300");
        a.write_all(&noise(6, 200_000)).unwrap();
        b.read_exact(&mut vec![0; 200_000]).unwrap();
        assert_eq!(own.narrowed(), Some(1280));
        exchange(own, other, &noise(3, 100_000), &noise(4, 1000));
    }
}
