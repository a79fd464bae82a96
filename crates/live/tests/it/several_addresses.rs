//! Tests of hosts with several addresses, and of hosts whose addresses change. All addresses are
//! tried, and they are looked up again for every session.
#![expect(clippy::disallowed_methods, reason = "an address is looked up again after a second")]

use crate::common::{exchange, listener, ms, noise, nowhere, quick};
use crate::tunnel::{echo, exchange as echoed, server, to};
use meshpace_core::Duration;
use meshpace_live::hosts::Host;
use meshpace_live::tpa::{Options, Security, TpaPort};
use meshpace_live::tunnel::{Allowed, CarriedBy, Connector, Exit, Service};
use meshpace_transport::{Config, names};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// Sockets that receive everything and answer nothing, like an address behind a firewall.
fn silent<const N: usize>() -> [UdpSocket; N] {
    [(); N].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap())
}

fn at(sockets: &[UdpSocket]) -> Vec<SocketAddr> {
    sockets.iter().map(|socket| socket.local_addr().unwrap()).collect()
}

#[test]
fn the_first_address_that_answers_is_taken() {
    let silent = silent::<2>();
    let [a, b] = [0, 1].map(|number| Some(at(&silent)[number]));
    let refused = Some(nowhere());
    // An address of the other family, to which there is no path.
    let elsewhere = Some("[2001:db8::1]:7".parse().unwrap());
    // `None` stands for the address at which the peer listens.
    let cases: [&[Option<SocketAddr>]; 6] =
        [&[None], &[a, None], &[refused, None], &[a, refused, b, None], &[elsewhere, a, a, None], &[None, a]];
    for security in [Security::Opportunistic, Security::Plain, Security::Shared([7; 32])] {
        let options = Options { security, ..quick() };
        let listener = listener(options.clone());
        let good = listener.local_addr().unwrap();
        for case in cases {
            let addresses: Vec<_> = case.iter().map(|address| address.unwrap_or(good)).collect();
            let own = TpaPort::reaching(&addresses, options.clone()).unwrap();
            let client = own.connect(&addresses[..]).unwrap();
            assert_eq!(client.peer_addr().unwrap(), good, "{addresses:?}");
            exchange(client, listener.accept().unwrap().0, &noise(1, 20_000), &noise(2, 20_000));
        }
    }
}

#[test]
fn where_none_answers_each_is_named() {
    let silent = silent::<1>();
    let options = Options { connect_timeout: Duration::from_millis(1500), ..quick() };
    let own = TpaPort::with_options("127.0.0.1:0", options).unwrap();
    let (dark, nobody) = (at(&silent)[0], nowhere());
    let error = own.connect(&[nobody, dark][..]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&dark.to_string()) && text.contains(&nobody.to_string()), "{text}");
    assert_eq!(own.connect(&[dark, nobody][..]).unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(own.connect(&[nobody, nowhere()][..]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    // An address of a family that the port does not support is left out. It is named if there is no
    // other.
    let error = own.connect("[::1]:9").unwrap_err().to_string();
    assert!(error.contains("no IPv4 address"), "{error}");
}

fn options(by: CarriedBy) -> Options {
    let Some(Config::Train(config)) = names::lookup("quiet-train") else { panic!("no quiet trains") };
    // A far end that is gone is given up soon, because a test waits for it.
    let options = Options { connect_timeout: Duration::from_secs(3), takes_tpa: true, ..quick() };
    match by {
        CarriedBy::Tpa => options,
        CarriedBy::Session => Options { trains: Some(config), ..options },
        CarriedBy::Bbr => Options { trains: Some(config), bbr: true, ..options },
    }
}

fn exit(by: CarriedBy) -> (SocketAddr, Service) {
    let port = TpaPort::with_options("127.0.0.1:0", Options { trains: options(CarriedBy::Bbr).trains, ..options(by) });
    let listener = port.unwrap().listen(16).unwrap();
    (listener.local_addr().unwrap(), Exit::new(Allowed::Anywhere).serve(listener, |_| {}).unwrap())
}

#[test]
fn a_far_end_that_gets_another_address_is_found_again() {
    let target = server(echo);
    for by in [CarriedBy::Tpa, CarriedBy::Session, CarriedBy::Bbr] {
        let (first, service) = exit(by);
        let silent = silent::<1>();
        let dark = at(&silent)[0];
        let addresses = Arc::new(Mutex::new(Ok(vec![dark, first])));
        let list = Arc::clone(&addresses);
        let host = Host::with("moving.test", move || {
            let list = list.lock().unwrap();
            list.as_ref().map(Vec::clone).map_err(|kind: &ErrorKind| (*kind).into())
        });
        let port = TpaPort::with_options("127.0.0.1:0", options(by)).unwrap();
        let connector = match by {
            CarriedBy::Tpa => Connector::new(port, host.clone()),
            CarriedBy::Session | CarriedBy::Bbr => Connector::in_session(port, host.clone()),
        };
        let entrance = to(&connector, target);
        assert_eq!(echoed(entrance, b"at the first").unwrap(), b"at the first", "{by:?}");
        assert_eq!(host.last(), Some(first));
        // The resolver does not answer. The known addresses are still used.
        *addresses.lock().unwrap() = Err(ErrorKind::TimedOut);
        std::thread::sleep(ms(1100));
        assert_eq!(echoed(entrance, b"still there").unwrap(), b"still there");
        // The far end moves to another address.
        service.end();
        let (second, another) = exit(by);
        *addresses.lock().unwrap() = Ok(vec![second, dark]);
        let found = (0..20).find_map(|_| {
            std::thread::sleep(ms(300));
            echoed(entrance, b"at the second").ok().filter(|said| said == b"at the second")
        });
        assert!(found.is_some(), "{by:?}: not found at its new address");
        assert_eq!(host.last(), Some(second));
        connector.end();
        another.end();
    }
}
