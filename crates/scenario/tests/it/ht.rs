//! Tests of 802.11a and 802.11n in a scenario: the meaning of the keys, refusals, and links from a
//! file.

use meshpace_core::{Duration, NodeId, Rate};
use meshpace_mesh::config::{MacProfile, Propagation, QueueConfig, RateControl, Reception};
use meshpace_mesh::radio::{Band, OfdmRate};
use meshpace_scenario::{Refusal, Scenario, Source};

const LINKS: &[u8] = b"from,to,snr_db\n0,1,30\n1,2,20\n2,1,10\n";

fn read(text: &str) -> Result<Scenario, Refusal> {
    let source = Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    let load = |name: &str| {
        match name {
        "links.csv" => Ok(LINKS.to_vec()),
        "delivery.csv" => Ok(b"to,from,delivery\n0,1,0.6\n1,2,0\n".to_vec()),
        "one-way.csv" => Ok(b"from,to,delivery\n0,2,0.12\n2,0,0.999\n0,1,0.999\n1,2,0.999\n".to_vec()),
        "whole.csv" => Ok(b"from,to,delivery\n0,1,1\n".to_vec()),
        "most.csv" => Ok(b"from,to,delivery\n0,1,0.8\n".to_vec()),
        "some.csv" => Ok(b"from,to,delivery\n0,1,0.4\n".to_vec()),
        "names.csv" => Ok(b"from,to,delivery\nbarn,mill,1\nmill,roof,1\n".to_vec()),
        "stranger.csv" => Ok(b"from,to,delivery\nbarn,cellar,1\n".to_vec()),
        "mcs.csv" => Ok(b"from,to,delivery,mcs\n0,1,1,7\n0,2,1,0\n".to_vec()),
        "mcs-too-fast.csv" => Ok(b"from,to,delivery,mcs\nroof,mill,1,5\n".to_vec()),
        "map.csv" => Ok(b"name,x_m,y_m\nroof,0,0\nmill,50,0\nbarn,90,0\n".to_vec()),
        "map.json" => Ok(br#"{"nodes":[{"node_id":"aa","hostname":"mill","x_m":0,"y_m":0},{"id":"barn","x_m":5,"y_m":0},{"id":"roof","x_m":9,"y_m":0}]}"#.to_vec()),
        "broken.csv" => Ok(b"from,to,loss_db\n0,1,60\n1,x,60\n".to_vec()),
        "empty.csv" => Ok(b"from,to\n0,1\n".to_vec()),
        "both.csv" => Ok(b"from,to,loss_db,snr_db\n0,1,60,\n0,2,60,30\n".to_vec()),
        _ => Err(format!("{name}: no such file")),
    }
    };
    Scenario::read_with(source, &load, "mesh")
}

#[track_caller]
fn assert_refused(text: &str, key: &str, words: &[&str]) {
    let Err(refusal) = read(text) else { panic!("accepted:\n{text}") };
    crate::refused::assert_names_the_place(&refusal.to_string(), text, key, words);
}

fn config(text: &str) -> meshpace_sim::Config {
    read(text).unwrap_or_else(|refusal| panic!("{refusal}")).points[0].config.clone()
}

#[test]
fn the_profile_ht_and_its_keys() {
    let config = config(
        "[topology]\nkind = 'chain'\nhops = 1\nspacing = '10 m'\n[[flow]]\n[mac]\nprofile = 'ht'\nampdu_mpdus = 16\n\
         ampdu_size = '8191 B'\nampdu_time = '2 ms'\nblock_ack_request = false\nimmediate_access = false\nbusy_slot_counts = false\nreorder_timeout = '50 ms'\n\
         short_retry_limit = 10\n[radio]\nrate = 'MCS 11'\nguard_interval = '400 ns'\nband = '2.4 GHz'\n\
         channel_width = '20 MHz'\nbasic_rate = '12 Mbit/s'\n",
    );
    let (radio, mac) = (&config.mesh.radio, &config.mesh.mac);
    let (ofdm, ht) = (radio.ofdm.unwrap(), mac.ht.unwrap());
    assert_eq!((mac.profile, mac.retries.short), (MacProfile::Ieee, 10));
    assert_eq!((ht.mpdus, ht.bytes, ht.longest), (16, 8191, Duration::from_millis(2)));
    assert_eq!((ht.requests_block_ack, ht.reorder_timeout), (false, Duration::from_millis(50)));
    assert_eq!((ht.immediate, ht.busy_slot_counts), (Some(false), false));
    assert_eq!((ofdm.data, ofdm.band), (OfdmRate::mcs(11, true).unwrap(), Band::Two));
    // MCS 11: 57.8 Mbit/s with the short guard interval.
    assert_eq!((radio.rate.0 / 100_000, radio.basic_rate), (577, Rate::from_mbps(12)));
    assert_eq!((radio.reception, radio.noise_dbm, radio.carrier_sense_dbm), (Reception::Sinr, -94.0, -62.0));
    let Propagation::LogDistance(model) = &radio.propagation else { panic!("log-distance by default") };
    assert!((model.reference_loss_db - 39.74).abs() < 0.01);
}

#[test]
fn categories_and_the_code_points_of_flows() {
    let text = "[topology]\nkind = 'chain'\nhops = 1\nspacing = '10 m'\n[mac]\nprofile = 'ht'\nedca = true\nvideo_txop = '4096 us'\n\
                voice_txop = '0 s'\n[[flow]]\ndscp = 'EF'\n[[flow]]\ndscp = 'AF41'\n[[flow]]\n";
    let with = config(text);
    let edca = with.mesh.mac.ht.unwrap().edca.unwrap();
    assert_eq!((edca.video_txop, edca.voice_txop), (Duration::from_micros(4_096), Duration::ZERO));
    assert_eq!(with.flows.iter().map(|flow| flow.dscp).collect::<Vec<_>>(), [46, 34, 0]);
    assert_eq!(config(&text.replace("edca = true", "edca = false")).mesh.mac.ht.unwrap().edca, None);
    assert_refused(&text.replace("dscp = 'EF'", "dscp = 'AF44' #!"), "flow.0.dscp", &["AF43", "EF"]);
    assert_refused("[mac]\nedca = true #!\n[[flow]]\n", "mac.edca", &["mac.profile = \"ht\""]);
    let queue = text.replace("profile = 'ht'", "profile = 'ht'\nampdu_mpdus = 1") + "[link] #!\nqueue = 'fq-codel'\n";
    assert_refused(&queue, "link", &["mac.edca", "drop-tail", "fq-codel-airtime"]);
    let airtime = config(&queue.replace("'fq-codel'", "'fq-codel-airtime'"));
    assert_eq!(airtime.mesh.link.queue, QueueConfig::FqCodelAirtime(<_>::default()));
    let marked = queue.replace("queue = 'fq-codel'", "queue = 'fq-codel-airtime'\nmarker = 'lred'");
    assert_refused(&marked, "link", &["mac.edca", "no link.marker"]);
}

#[test]
fn rate_control_is_fixed_by_default_and_belongs_to_802_11n() {
    let text = "[topology]\nkind = 'chain'\nhops = 1\nspacing = '10 m'\n[mac]\nprofile = 'ht'\n[radio]\nrate_control = 'minstrel'\n[[flow]]\n";
    assert_eq!(config(text).mesh.radio.rate_control, RateControl::Minstrel);
    assert_eq!(config(&text.replace("minstrel", "ideal")).mesh.radio.rate_control, RateControl::Ideal);
    assert_eq!(config(&text.replace("rate_control = 'minstrel'", "")).mesh.radio.rate_control, RateControl::Fixed);
    assert_refused(&text.replace("'minstrel'", "'best' #!"), "radio.rate_control", &["fixed", "ideal", "minstrel"]);
    assert_refused("[radio]\nrate_control = 'ideal' #!\n[[flow]]\n", "radio.rate_control", &["mac.profile = \"ht\""]);
}

#[test]
fn a_rate_of_802_11a_makes_the_profile_ieee_802_11a() {
    let config =
        config("[topology]\nspacing = '10 m'\n[radio]\nrate = '54 Mbit/s'\n[mac]\nprofile = 'ieee'\n[[flow]]\n");
    let (radio, mac) = (&config.mesh.radio, &config.mesh.mac);
    assert_eq!((radio.ofdm.unwrap().data, mac.ht), (OfdmRate::NonHt(7), None));
    let Propagation::LogDistance(model) = &radio.propagation else { panic!("log-distance by default") };
    assert!((model.reference_loss_db - 46.35).abs() < 0.01, "20 log10(5220) - 28");
}

#[test]
fn what_is_not_there_or_does_not_go_together_is_refused() {
    let ht = "[mac]\nprofile = 'ht'\n[topology]\nspacing = '10 m'\n[[flow]]\n[radio]\n";
    let radio = |line: &str| format!("{ht}{line} #!\n");
    assert_refused(&radio("rate = 'MCS 16'"), "radio.rate", &["\"MCS 0\" to \"MCS 15\"", "one and two streams"]);
    assert_refused(&radio("rate = '54 Mbit/s'"), "radio.rate", &["\"MCS 0\" to \"MCS 15\""]);
    assert_refused(&radio("channel_width = '40 MHz'"), "radio.channel_width", &["20 MHz", "40 MHz"]);
    assert_refused(&radio("reception = 'ns2'"), "radio.reception", &["sinr"]);
    assert_refused(&radio("model = 'two-ray'"), "radio.model", &["914 MHz", "log-distance"]);
    assert_refused(&radio("preamble = 'short'"), "radio.preamble", &["802.11b"]);
    assert_refused(&radio("basic_rate = '9 Mbit/s'"), "radio.basic_rate", &["6, 12 or 24 Mbit/s"]);
    assert_refused("[radio]\nrate = 'MCS 7' #!\n[[flow]]\n", "radio.rate", &["mac.profile = \"ht\""]);
    assert_refused("[radio]\nrate = '6 Mbit/s' #!\n[[flow]]\n", "radio.rate", &["mac.profile = \"ieee\""]);
    assert_refused("[radio]\nband = '5 GHz' #!\n[[flow]]\n", "radio.band", &["802.11a and 802.11n"]);
    assert_refused("[mac]\nampdu_mpdus = 4 #!\n[[flow]]\n", "mac.ampdu_mpdus", &["mac.profile = \"ht\""]);
    let mac = |line: &str| format!("[topology]\nspacing = '10 m'\n[[flow]]\n[mac]\nprofile = 'ht'\n{line} #!\n");
    assert_refused(&mac("ampdu_mpdus = 65"), "mac.ampdu_mpdus", &["1 to 64"]);
    assert_refused(&mac("long_retry_limit = 4"), "mac.long_retry_limit", &["short_retry_limit"]);
    let llap = format!("{ht}[link] #!\nqueue = 'llap'\n");
    assert_refused(&llap, "link", &["drop-tail"]);
    assert!(read(&format!("{ht}[link]\nqueue = 'llap'\n").replace("'ht'", "'ht'\nampdu_mpdus = 1")).is_ok());
    for queue in ["fq-codel", "fq-codel-airtime"] {
        assert!(read(&format!("{ht}[link]\nqueue = '{queue}'\n")).is_ok(), "{queue}");
        assert_refused(&format!("{ht}[link] #!\nqueue = '{queue}'\nmarker = 'lred'\n"), "link", &["without a marker"]);
    }
}

/// The positions in [`PLACES`].
const POSITIONS: &str = "positions = [['0 m', '0 m'], ['10 m', '0 m'], ['20 m', '0 m']]";

const PLACES: &str = "[topology]\nkind = 'nodes'\npositions = [['0 m', '0 m'], ['10 m', '0 m'], ['20 m', '0 m']]\n\
    [[flow]]\nfrom = 0\nto = 2\n[mac]\nprofile = 'ht'\n[radio]\nrate = 'MCS 0'\n";

#[test]
fn links_come_from_a_file() {
    let config = config(&format!("{PLACES}links = 'links.csv'\n"));
    let Propagation::Links(links) = &config.mesh.radio.propagation else { panic!("links") };
    // Noise of -94 dBm plus the SNR. A direction without a line has the value of the other
    // direction.
    let expected = [(0, 1, -64.0), (1, 0, -64.0), (1, 2, -74.0), (2, 1, -84.0)];
    let found: Vec<_> = links.all().iter().map(|&(from, to, dbm)| (from.0, to.0, dbm)).collect();
    assert_eq!(found, expected);
    // The route has two hops, because 0 and 2 do not receive each other.
    assert_eq!(meshpace_sim::run(&config, 1).flows[0].hops, 2);
    // Six of ten frames arrive. A link on which none arrives has no line.
    let text = PLACES.replace("to = 2", "to = 1").replace("MCS 0", "MCS 7") + "links = 'delivery.csv'\n";
    let config = self::config(&text);
    let Propagation::Links(links) = &config.mesh.radio.propagation else { panic!("links") };
    assert_eq!(links.all().len(), 2);
    let channel = meshpace_mesh::radio::Channel::new(&config.mesh.radio);
    let snr = links.all()[0].2 - config.mesh.radio.noise_dbm;
    let success =
        channel.sinr().success(OfdmRate::mcs(7, false).unwrap().air_time(1534, Band::Five), 10f64.powf(snr / 10.0));
    assert!((success - 0.6).abs() < 1e-6, "{success}");
    assert_eq!(links.all()[0].0, NodeId(0));
    assert!((meshpace_sim::run(&config, 1).flows[0].goodput_bps) > 0.0);
}

#[test]
fn a_static_route_over_a_link_that_is_good_one_way_is_warned_of() {
    let of = |places: &str, more: &str| read(&format!("{places}{more}")).unwrap().warnings;
    assert_eq!(of(PLACES, "links = 'links.csv'\n"), [""; 0]);
    // At a lower rate an eighth of the frames corresponds to a signal that is too weak for a
    // preamble.
    let warnings = |more: &str| of(&PLACES.replace("MCS 0", "MCS 3"), more);
    let told = warnings("links = 'one-way.csv'\n");
    assert!(
        told.len() == 1
            && told[0].contains("the route of flow 0 has the link from 0 to 2")
            && told[0].contains("remove the link"),
        "{told:?}"
    );
    assert_eq!(warnings("links = 'one-way.csv'\n[routing]\nprotocol = 'olsr'\n"), [""; 0]);
}

#[test]
fn a_file_of_links_that_is_none_names_its_line() {
    for (file, words) in [
        ("broken.csv", ["broken.csv:3", "number of a node"]),
        ("empty.csv", ["empty.csv:1", "loss_db"]),
        ("both.csv", ["both.csv:3", "in each line"]),
        ("none.csv", ["none.csv", "no such file"]),
    ] {
        assert_refused(&format!("{PLACES}links = '{file}' #!\n"), "radio.links", &words);
    }
    let text = format!("{PLACES}links = 'links.csv'\nshadowing = '3 dB' #!\n");
    assert_refused(&text, "radio.shadowing", &["links that are computed"]);
    // At MCS 0 half of the frames would arrive with a signal at which no preamble is detected. This
    // is refused if the scenario itself requests it.
    let text = format!("{PLACES}preamble_sinr = '4 dB'\nlinks = 'delivery.csv' #!\n");
    assert_refused(&text, "radio.links", &["delivery.csv", "below radio.preamble_sinr (4 dB)"]);
    for (file, words) in [
        ("mcs-too-fast.csv", ["mcs-too-fast.csv:2", "up to 0, which is radio.rate"]),
        ("stranger.csv", ["stranger.csv:2", "the name of a node of the map (roof, mill, barn)"]),
    ] {
        let text = format!("{}links = '{file}' #!\n", PLACES.replace(POSITIONS, "file = 'map.csv'"));
        assert_refused(&text, "radio.links", &words);
    }
    let of_b = "[topology]\nhops = 1\n[radio]\nlinks = 'mcs.csv' #!\n[[flow]]\n";
    assert_refused(of_b, "radio.links", &["mcs.csv:2", "mcs belongs to 802.11n"]);
}

/// Goodput of saturating datagrams from node 0 over links of `file` with these keys, as a share of
/// that of a link without losses.
fn share_of(file: &str, more: &str) -> f64 {
    let goodput = |file: &str| {
        let text = format!(
            "duration = '3 s'\n[topology]\nhops = 1\n[[flow]]\ntransport = 'udp'\ntraffic = 'cbr'\nrate = '20 Mbit/s'\nsegment = 1472\n\
             [radio]\nlinks = '{file}'\nrts_cts = false\n{more}"
        );
        meshpace_sim::run(&config(&text), 1).flows[0].goodput_bps
    };
    goodput(file) / goodput("whole.csv")
}

#[test]
fn deliveries_work_at_every_rate_of_the_defaults() {
    // A frame is sent 1 / 0.8 or 1 / 0.4 times. Longer backoffs after each loss take a part of the
    // rest, so there are bounds instead of values.
    for rate in ["1 Mbit/s", "2 Mbit/s", "5.5 Mbit/s", "11 Mbit/s"] {
        let key = format!("rate = '{rate}'\n");
        let (most, some) = (share_of("most.csv", &key), share_of("some.csv", &key));
        assert!((0.65..0.82).contains(&most), "{rate}: {most}");
        assert!(
            (0.2..0.42).contains(&some),
            "{rate}: {some}: a link of less than half is used where there is no other"
        );
    }
    assert!((0.65..0.82).contains(&share_of("most.csv", "")), "all defaults");
}

#[test]
fn names_are_those_of_the_map_or_the_order_of_the_file() {
    let ends = |text: &str| {
        let config = config(text);
        let Propagation::Links(links) = &config.mesh.radio.propagation else { panic!("links") };
        links.all().iter().map(|&(from, to, _)| (from.0, to.0)).collect::<Vec<_>>()
    };
    let mapped = PLACES.replace(POSITIONS, "file = 'map.csv'") + "links = 'names.csv'\n";
    assert_eq!(ends(&mapped), [(0, 1), (1, 0), (1, 2), (2, 1)], "barn is the last of the map");
    let by_host = PLACES.replace(POSITIONS, "file = 'map.json'") + "links = 'names.csv'\n";
    assert_eq!(ends(&by_host), [(0, 1), (0, 2), (1, 0), (2, 0)], "mill is the first of that map");
    // barn, mill and roof are 0, 1 and 2.
    assert_eq!(ends(&(PLACES.to_owned() + "links = 'names.csv'\n")), [(0, 1), (1, 0), (1, 2), (2, 1)]);
}

#[test]
fn a_direction_has_the_rate_of_its_line() {
    let text = PLACES.replace("MCS 0", "MCS 7").replace("to = 2", "to = 1");
    let goodput = |file: &str, to: u16| {
        let text = text.replace("to = 1", &format!("to = {to}")) + &format!("links = '{file}'\n");
        let config = config(&text);
        assert_eq!(config.mesh.radio.rate_control, RateControl::Listed);
        meshpace_sim::run(&config, 1).flows[0].goodput_bps
    };
    let (fast, slow) = (goodput("mcs.csv", 1), goodput("mcs.csv", 2));
    // 65 and 6.5 Mbit/s on the air.
    assert!(fast > 6.5e6 && slow < 6.5e6 && fast > 2.0 * slow, "{fast} {slow}");
}
