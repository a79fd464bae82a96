//! Models of small dumps: bit rates, losses, cables, large meshes.

use super::*;
use crate::field::dumps;

fn of(text: &str) -> Dump {
    dumps::read(text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}: {text}"))
}

/// Goodput of one hop for each MCS, in round numbers.
fn scale() -> OneHop {
    [5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 45.0, 50.0]
}

fn planned(text: &str, from: &str, to: &str) -> Plan {
    let mut dump = of(text);
    fill_shares(&mut dump, Rate::Mcs(3));
    let way = ways::way(&dump, dump.find(from).unwrap(), dump.find(to).unwrap()).unwrap();
    plan(&dump, &[way], Rate::Mcs(3), &scale).unwrap()
}

fn key(plan: &Plan, name: &str) -> Option<String> {
    plan.keys.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
}

#[test]
fn losses_and_rates_of_the_dump_are_those_of_the_simulation() {
    let shares = planned("from,to,delivery\na,b,0.6\nb,a,0.45\nb,c,1\n", "a", "c");
    assert_eq!(shares.links, "from,to,delivery\n0,1,0.6\n1,0,0.45\n1,2,1\n2,1,1\n");
    assert_eq!((key(&shares, "radio.rate").as_deref(), shares.assumed), (Some("\"MCS 3\""), Some(Rate::Mcs(3))));
    assert_eq!(shares.basis, "at an assumed MCS 3; set it with --rate");
    let [first, _] = &shares.routes[0].hops[..] else { panic!("{shares:?}") };
    assert_eq!((first.delivery, first.delivery_back, first.is_weak()), (0.6, 0.45, true));
    // Rates: each has its MCS, and a direction of which nothing is told that of the other.
    let rates = planned("from,to,delivery,rate_mbps\na,b,0.9,13\nb,c,1,58.5\n", "a", "c");
    assert_eq!(rates.links, "from,to,delivery,mcs\n0,1,0.9,1\n1,0,0.9,1\n1,2,1,6\n2,1,1,6\n");
    assert_eq!(rates.basis, "at the dump's bit rates of 13 to 58.5 Mbit/s, each as the nearest MCS");
    assert_eq!((rates.assumed, key(&rates, "mac.ampdu_mpdus")), (None, None));
    // Without aggregates where all rates are older than these.
    let legacy = planned("from,to,rate_mbps\na,b,54\nb,c,6\n", "a", "c");
    assert_eq!(key(&legacy, "mac.ampdu_mpdus").as_deref(), Some("1"));
    // One old rate everywhere is simulated as it is.
    let one = planned("from,to,rate_mbps\na,b,11\nb,c,11\n", "a", "c");
    assert_eq!(
        (key(&one, "radio.rate").as_deref(), key(&one, "mac.profile").as_deref()),
        (Some("\"11 Mbit/s\""), Some("\"ieee\""))
    );
    // Some hops without a rate.
    let some = planned("from,to,mcs\na,b,5\nb,c,\n", "a", "c");
    assert!(
        some.basis.ends_with("at an assumed MCS 3 on hops without a rate in the dump; set it with --rate"),
        "{}",
        some.basis
    );
    assert_eq!(some.links, "from,to,snr_db,mcs\n0,1,30,5\n1,0,30,5\n1,2,30,3\n2,1,30,3\n");
}

#[test]
fn measured_hops_have_the_slowest_rate_that_carries_them_and_the_loss_that_is_left() {
    let measured = planned("from,to,hop_mbps\na,b,12\nb,c,4\n", "a", "c");
    // 12 of 15, and 4 of 5.
    assert_eq!(measured.links, "from,to,delivery,mcs\n0,1,0.8,2\n1,0,0.8,2\n1,2,0.8,0\n2,1,0.8,0\n");
    assert_eq!((measured.basis.as_str(), measured.not_simulated), ("with hops that carry what was measured", None));
    // The share of the table is the cause: 20 Mbit/s with half of the frames lost.
    let lossy = planned("from,to,hop_mbps,delivery\na,b,10,0.5\n", "a", "b");
    assert_eq!(lossy.links, "from,to,delivery,mcs\n0,1,0.5,3\n1,0,0.5,3\n");
    for (hop, why) in [("1", "rates that carry 5.0 to 50.0"), ("400", "a hop carries 400.0 Mbit/s")] {
        let plan = planned(&format!("from,to,hop_mbps\na,b,{hop}\n"), "a", "b");
        assert!(plan.not_simulated.as_ref().is_some_and(|said| said.contains(why)), "{plan:?}");
    }
    let fast = planned("from,to,rate_mbps\na,b,433.3\n", "a", "b");
    assert!(fast.not_simulated.is_some_and(|why| why.contains("433.3 Mbit/s")));
}

#[test]
fn cables_and_tunnels_make_two_routers_one_station() {
    let text = "from,to,delivery,medium\na,b,0.9,radio\nb,c,1,cable\nc,d,0.8,\nd,e,1,tunnel\n";
    let found = planned(text, "a", "e");
    // b and c are station 1, d and e station 3.
    assert_eq!(found.links, "from,to,delivery\n0,1,0.9\n1,0,0.9\n1,3,0.8\n3,1,0.8\n");
    assert_eq!((found.ends.as_slice(), found.nodes.len()), (&[(0, 3)][..], 5));
    assert!(
        found.map.contains(r#""links":[{"source":"0","target":"1"},{"source":"1","target":"3"}]"#),
        "{}",
        found.map
    );
    let media: Vec<&str> = found.routes[0].hops.iter().map(|hop| hop.medium).collect();
    assert_eq!(media, ["radio", "cable", "radio", "tunnel"]);
    let dump = of(text);
    let refused = plan(&dump, &[vec![1, 2]], Rate::Mcs(3), &scale).unwrap_err();
    assert!(refused.contains("flow 0 has no radio hop: b-c has only cables"), "{refused}");
}

#[test]
fn ratios_become_shares_by_which_the_mesh_routes() {
    // 30 dB is no loss at MCS 3, 5 dB nothing: two good hops.
    let text = "from,to,snr_db\na,c,5\na,b,30\nb,c,30\n";
    let found = planned(text, "a", "c");
    assert_eq!(found.routes[0].nodes(), [0, 2, 1], "c is the second name");
    assert_eq!(found.links, "from,to,snr_db\n0,2,30\n1,2,30\n2,0,30\n2,1,30\n");
    // 9.5 dB lose one in ten of 1000 bytes at MCS 3 (docs/ht.md).
    let share = routes::share_at(Rate::Mcs(3), 9.5);
    assert!((0.8..0.92).contains(&share), "{share}");
    assert!(routes::share_at(Rate::Legacy(6.0), 9.5) > 0.999 && routes::share_at(Rate::Legacy(11.0), 3.0) < 0.1);
}

#[test]
fn of_a_large_mesh_the_routes_are_simulated() {
    let rows: String = (0..80).map(|node| format!("n{node},n{},0.9\n", node + 1)).collect();
    let found = planned(&format!("from,to,delivery\n{rows}"), "n40", "n43");
    assert_eq!((found.nodes.as_slice(), found.ends[0]), (&[40, 41, 42, 43][..], (0, 3)));
    assert_eq!(found.links.lines().count(), 7);
}

#[test]
fn links_that_nobody_uses_are_there_if_they_are_good_or_their_strength_is_known() {
    let known = planned("from,to,delivery\na,b,1\nb,c,0.2\n", "a", "b");
    assert!(known.links.contains("1,2,0.2\n") && known.pairs == (2, 1), "{known:?}");
    let cost = planned("from,to,metric\na,b,1\nb,c,9\n", "a", "b");
    assert_eq!((cost.links.lines().count(), cost.pairs), (5, (2, 0)), "no share is told: as good as others");
    let better = planned("from,to,delivery\na,b,0.3\na,c,0.9\nc,b,0.9\n", "a", "c");
    assert_eq!(better.routes[0].better, None);
}
