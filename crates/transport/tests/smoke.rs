mod common;
use common::*;
use meshpace_core::Duration;
use meshpace_transport::names;

#[test]
fn every_named_transport_moves_data() {
    for entry in names::table() {
        let mut pair = Pair::new(&names::lookup(entry.name).unwrap(), Duration::from_millis(30), 7);
        pair.sender.open(pair.now);
        pair.sender.write(pair.now, 300_000);
        pair.sender.close(pair.now);
        pair.drive(ms(60_000), &mut |_| Fate::Deliver);
        println!("{} {} {:?}", entry.name, pair.now, pair.sender.stats());
        assert_eq!(pair.receiver.delivered(), 300_000, "{}", entry.name);
        assert_eq!(pair.sender.stats().retransmissions, 0);
        assert!(pair.sender.is_done());
    }
}
