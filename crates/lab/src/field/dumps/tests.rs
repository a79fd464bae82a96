//! Tests of dumps: one of each form, and what is wrong with others.

use super::*;

/// Names of the ends of every link, with the share that arrives, in thousandths.
fn links(text: &str) -> Vec<(String, String, u32)> {
    let dump = read(text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}: {text}"));
    let named = |link: &LinkReport| {
        let share = (link.delivery.unwrap_or(0.0) * 1000.0).round() as u32;
        (dump.nodes[link.from].clone(), dump.nodes[link.to].clone(), share)
    };
    dump.links.iter().map(named).collect()
}

fn link(from: &str, to: &str, share: u32) -> (String, String, u32) {
    (from.to_owned(), to.to_owned(), share)
}

#[test]
fn netjson_has_an_etx() {
    let graph = r#"{"type":"NetworkGraph","protocol":"olsrv1","metric":"etx_ff","nodes":[{"id":"a"},{"id":"b"}],
        "links":[{"source":"a","target":"b","cost":4.0},{"source":"b","target":"a","cost":1.0,"cost_text":"1.000"}]}"#;
    assert_eq!(links(graph), [link("a", "b", 500), link("b", "a", 1000)]);
    let routes = r#"{"type":"NetworkRoutes","metric":"ETX","router_id":"a","routes":[
        {"destination":"b/32","next":"b","cost":1.5625},{"destination":"c/32","next":"b","cost":3.0}]}"#;
    assert_eq!(links(routes), [link("a", "b", 800), link("b", "a", 800)]);
}

#[test]
fn routes_of_olsrd2_name_routers_among_their_properties() {
    // As olsrd2 0.14.1 answers `/netjsoninfo filter route ipv4_0`, shortened.
    let dump = read(include_bytes!("samples/olsrd2-routes.json")).unwrap();
    assert_eq!(
        (dump.nodes.as_slice(), dump.metric),
        (&["10.0.1.1", "10.0.2.1", "10.0.5.1"].map(str::to_owned)[..], Metric::Cost)
    );
    assert_eq!(dump.find("id_10.0.1.1"), Some(0));
    // The neighbour, both ways, by its cost; the default route and the network behind it are no nodes.
    let links: Vec<_> = dump.links.iter().map(|link| (link.from, link.to, link.cost)).collect();
    assert_eq!(links, [(0, 1, Some(13.0)), (1, 0, Some(13.0))]);
    assert_eq!(dump.routes, [(0, 1, 1), (0, 2, 1)]);
}

#[test]
fn olsr_tells_both_ways_apart() {
    let json = r#"{"links":[{"localIP":"a","remoteIP":"b","linkQuality":0.9,"neighborLinkQuality":0.8}],
        "topology":[{"lastHopIP":"b","destinationIP":"c","linkQuality":1.0,"neighborLinkQuality":0.5}]}"#;
    let expected = [link("b", "a", 900), link("a", "b", 800), link("c", "b", 1000), link("b", "c", 500)];
    assert_eq!(links(json), expected);
    let text = "Table: Links\nLocal IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost\na\tb\t0.00\t0.900\t0.800\t1.389\t\n\n\
                Table: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\tCost\nc\tb\t1.000\t0.500\t2.000\n\nTable: HNA\nx\ty\n";
    assert_eq!(links(text), expected);
}

#[test]
fn babel_tells_costs_and_batman_qualities() {
    let babel = "BABEL 1.0\nmy-id 02\nadd neighbour 5560 address fe80::1 if wlan0 reach ffff ureach 0000 rxcost 256 txcost 320 cost 320\n\
                 add neighbour 5570 address fe80::2 if wlan0 reach 0000 ureach 0000 rxcost 65535 txcost 512 cost 65535\nok\n";
    let own = "this node";
    assert_eq!(links(babel), [link(own, "fe80::1", 800), link("fe80::1", own, 1000), link(own, "fe80::2", 500)]);
    let batman = r#"[{"orig_address":"m1","best":true,"neigh_address":"m1","tq":204},
        {"orig_address":"m2","best":true,"neigh_address":"m1","tq":100}]"#;
    assert_eq!(links(batman), [link(own, "m1", 800)]);
    let vis = r#"{"source_version":"2017.1","algorithm":4,"vis":[{"primary":"m1","neighbors":[
        {"router":"m1","neighbor":"m2","metric":"1.250"}],"clients":[]}]}"#;
    assert_eq!(links(vis), [link("m1", "m2", 800)]);
}

/// Dumps of real programs: batctl 2023.0 and iw 5.19 over batman-adv and mac80211 of Linux 6.1,
/// three radios in a row (`validation/field/dumps`).
mod of_real_programs {
    use super::*;

    fn mesh(dumps: [&str; 3]) -> Dump {
        let names = ["roof", "mill", "barn"].map(str::to_owned);
        let dumps = dumps.map(|text| read(text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}")));
        merge(&names.into_iter().zip(dumps).collect::<Vec<_>>())
    }

    /// Share that arrives from one node at another according to the dumps, in thousandths.
    fn share(mesh: &Dump, from: &str, to: &str) -> u32 {
        let ends = (mesh.find(from).unwrap(), mesh.find(to).unwrap());
        let mut told = mesh.links.iter().filter(|link| (link.from, link.to) == ends).filter_map(|link| link.delivery);
        (1000.0 * told.next().unwrap()).round() as u32
    }

    #[test]
    fn batctl_of_version_five_tells_throughputs_and_next_hops() {
        let of = [
            include_str!("samples/batctl-5-o-0.txt"),
            include_str!("samples/batctl-5-o-1.txt"),
            include_str!("samples/batctl-5-o-2.txt"),
        ];
        let mesh = mesh(of);
        assert_eq!(
            (mesh.nodes.as_slice(), mesh.metric, mesh.missing()),
            (&["roof", "mill", "barn"].map(str::to_owned)[..], Metric::Throughput, None)
        );
        let told = |from: &str, to: &str| {
            let ends = (mesh.find(from).unwrap(), mesh.find(to).unwrap());
            mesh.links.iter().find(|link| (link.from, link.to) == ends).unwrap().mbps
        };
        let hops = [("roof", "mill"), ("mill", "barn"), ("mill", "roof"), ("barn", "mill")];
        assert_eq!(hops.map(|(from, to)| told(from, to)), [30.3, 13.3, 30.7, 12.0].map(Some));
        assert!(mesh.routes.contains(&(0, 2, 1)) && mesh.routes.contains(&(2, 0, 1)), "{:?}", mesh.routes);
        // Its neighbours alone, and both as JSON.
        for (text, expected) in [
            (include_str!("samples/batctl-5-n-1.txt"), &[13.3, 30.7][..]),
            (include_str!("samples/batctl-5-nj-1.json"), &[13.3, 30.7]),
            (include_str!("samples/batctl-5-oj-0.json"), &[30.3]),
        ] {
            let dump = read(text.as_bytes()).unwrap();
            let told: Vec<f64> = dump.links.iter().filter_map(|link| link.mbps).collect();
            assert_eq!((dump.metric, told.as_slice()), (Metric::Throughput, expected), "{text}");
        }
    }

    #[test]
    fn batctl_tells_qualities_and_next_hops() {
        let of = [
            include_str!("samples/batctl-o-0.txt"),
            include_str!("samples/batctl-o-1.txt"),
            include_str!("samples/batctl-o-2.txt"),
        ];
        let mesh = mesh(of);
        assert_eq!(
            (mesh.nodes.as_slice(), mesh.metric, mesh.missing()),
            (&["roof", "mill", "barn"].map(str::to_owned)[..], Metric::Quality, None)
        );
        // 253, 158, 177 and 252 of 255: the two good directions are so good that the penalty for the
        // other direction explains all that they lack.
        let shares =
            [("roof", "mill"), ("mill", "barn"), ("mill", "roof"), ("barn", "mill")].map(|(a, b)| share(&mesh, a, b));
        assert_eq!(shares, [1000, 620, 694, 1000]);
        assert!(read(of[0].as_bytes()).unwrap().missing().unwrap().contains("run it on the other 2"));
        assert_eq!(links(include_str!("samples/batctl-oj-0.json")), [link("this node", "02:00:00:00:01:00", 988)]);
        for without in [include_str!("samples/batctl-n-1.txt"), include_str!("samples/batctl-nj-0.json")] {
            assert!(
                read(without.as_bytes()).unwrap_err().1.contains("`batctl o"),
                "B.A.T.M.A.N. IV tells no quality there"
            );
        }
    }

    #[test]
    fn iw_tells_tries_and_what_it_expects() {
        let of = [include_str!("samples/iw-0.txt"), include_str!("samples/iw-1.txt"), include_str!("samples/iw-2.txt")];
        let mesh = mesh(of);
        assert_eq!((mesh.nodes.len(), mesh.metric, mesh.missing()), (3, Metric::Etx, None));
        // 573 packets with 201 retries, 572 with 96, 383 with 47, 385 with 514: packets over tries.
        let shares =
            [("roof", "mill"), ("mill", "barn"), ("mill", "roof"), ("barn", "mill")].map(|(a, b)| share(&mesh, a, b));
        assert_eq!(shares, [740, 856, 891, 428]);
        let rate = |from: &str, to: &str| {
            let ends = (mesh.find(from).unwrap(), mesh.find(to).unwrap());
            mesh.links.iter().find(|link| (link.from, link.to) == ends && link.delivery.is_some()).unwrap().rate
        };
        let legacy = |mbps| Some(DataRate { mbps, has_aggregates: false });
        assert_eq!((rate("roof", "mill"), rate("barn", "mill")), (legacy(54.0), legacy(18.0)));
        let expected = |from: &str, to: &str| {
            let ends = (mesh.find(from).unwrap(), mesh.find(to).unwrap());
            mesh.links.iter().find(|link| (link.from, link.to) == ends && link.mbps.is_some()).unwrap().mbps
        };
        assert_eq!((expected("roof", "mill"), expected("barn", "mill")), (Some(25.725), Some(7.873)));
        assert!(!mesh.is_measured(), "rate control expects it");
    }
}

#[test]
fn what_people_give_instead_is_told_apart_with_what_to_give() {
    let wrong = |bytes: &[u8]| read(bytes).unwrap_err().1;
    for (bytes, why) in [
        (&b"\x1f\x8b\x08\x00"[..], "gunzip"),
        (b"PK\x03\x04\x14", "save the table as CSV"),
        (b"\xff\xfef\0r\0o\0m\0", "UTF-16"),
        (b"\xd4\xc3\xb2\xa1\x02", "a capture of packets"),
        (b"from,to,etx\nm\xfchle,roof,1\n", "not UTF-8 text"),
        (b"from;to;etx\na;b;1,2\n", "semicolons: use commas"),
        (b"source,target,quality\na,b,0.9\n", "the columns source, target, quality: name the columns of the two ends of a link from and to"),
        (b"10.0.0.2 dev wlan0 lladdr 02:00:00:00:01:00 REACHABLE\n", "ip neigh"),
        (b"default via 10.0.0.1 dev wlan0\n10.0.0.0/24 dev wlan0 scope link\n", "a table of routes"),
        (b"02:00:00:00:01:00  -63 dBm / -95 dBm (SNR 32)  120 ms ago\n", "iwinfo"),
        (b"BSS 02:00:00:00:01:00(on wlan0)\n\tfreq: 5180\n", "a scan"),
        (b"DEST ADDR         NEXT HOP          IFACE\tSN\n02:00:00:00:01:00 02:00:00:00:01:00 mesh0\t1\n", "paths of 802.11s"),
        (
            b"[B.A.T.M.A.N. adv 2022.3, MainIF/MAC: wlan0/02:00:00:00:00:00 (bat0/2e:00:00:00:00:00 BATMAN_IV)]\n   Client             VID Flags Last ttvn     Via        ttvn  (CRC       )\n",
            "clients",
        ),
    ] {
        assert!(wrong(bytes).contains(why), "{}: {}", String::from_utf8_lossy(bytes), wrong(bytes));
    }
    // What Windows puts before a text does no harm.
    assert!(read("\u{feff}from,to,etx\na,b,1.2\n".as_bytes()).is_ok());
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, place, why) in [
        ("", "1", "the file is empty"),
        ("nothing of that kind\n", "1", "expected NetJSON"),
        ("<html>", "1", "a web page"),
        ("nl80211 not found.\n", "1", "as root"),
        (
            "Error - interface bat0 is not present or not a batman-adv interface\n",
            "1",
            "the program that wrote this failed",
        ),
        ("Interface wlan0\n\taddr 02:00:00:00:00:01\n", "1", "iw dev wlan0 station dump"),
        ("BABEL 1.0\nhost mesh\nok\n", "1", "it has no links"),
        (
            r#"{"version":2,"nodes":[{"id":"a","name":"roof","status":{"online":true}}]}"#,
            "1",
            "meshviewer.json or graph.json",
        ),
        ("from,to\na,b\n", "1", "etx, metric, delivery, snr_db, loss_db, hop_mbps, rate_mbps, mcs"),
        ("from,to,etx\na,,1\n", "2", "two nodes"),
        ("from,to,etx\na,b,fine\n", "2", "\"fine\""),
        ("from,to,etx\na,b,0.5\n", "2", "an ETX of 0.5"),
        ("{\n\"links\": [\n}", "3", ""),
        (r#"{"type":"NetworkGraph","metric":"etx","links":[]}"#, "1", "no link"),
        (
            r#"{"type":"NetworkGraph","metric":"etx","links":[{"source":"a","target":"b","cost":0.1}]}"#,
            "1",
            "link 0: an ETX of 0.1",
        ),
        (r#"{"type":"NetworkGraph","metric":"etx","links":[{"source":"a","target":"a","cost":1}]}"#, "1", "itself"),
        (
            r#"{"links":[{"localIP":"a","remoteIP":"b","linkQuality":1.2,"neighborLinkQuality":1}]}"#,
            "1",
            "links 0: 1.2",
        ),
        (r#"[{"neigh_address":"m1","last_seen_msecs":10}]"#, "1", "batctl oj"),
        ("Table: Links\nLocal\tRemote\n", "2", "LQ and NLQ"),
        ("Table: Links\nLocal IP\tRemote IP\tLQ\tNLQ\na\tb\t1\t?\n", "3", "\"?\""),
        ("add neighbour 1 address a rxcost 256\n", "1", "txcost"),
    ] {
        let (at, said) = read(text.as_bytes()).unwrap_err();
        assert!(at == place && said.contains(why), "{at}: {said}: {text}");
    }
}

const MACS: [&str; 4] = ["02:ba:de:af:fe:00", "02:ba:de:af:fe:01", "02:ba:de:af:fe:02", "02:ba:de:af:fe:03"];

/// Table of originators as batctl 2023.0 prints it (`cmd/originators.c`).
fn originators(own: &str, algorithm: &str, rows: &[(char, &str, &str, &str)]) -> String {
    let header = format!(
        "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: mesh0/{own} (bat0/{own} {algorithm})]\n   Originator        last-seen (#/255) Nexthop           [outgoingIF]\n"
    );
    let row = |&(best, originator, quality, next): &(char, &str, &str, &str)| {
        format!(" {best} {originator}    0.505s ({quality}) {next} [     mesh0]\n")
    };
    header + &rows.iter().map(row).collect::<String>()
}

#[test]
fn batctl_tells_neighbours_routes_and_who_is_missing() {
    let [own, a, b, c] = MACS;
    let text = originators(
        own,
        "BATMAN_IV",
        &[('*', a, "254", a), (' ', a, " 90", b), ('*', b, "102", b), ('*', c, "127", a)],
    );
    let dump = read(text.as_bytes()).unwrap();
    assert_eq!((dump.nodes.len(), dump.metric, dump.witnesses.len()), (4, Metric::Quality, 1));
    assert_eq!(links(&text), [link(own, a, 996), link(own, b, 400)]);
    let place = |name: &str| dump.find(name).unwrap();
    assert_eq!(
        dump.routes,
        [(place(own), place(a), place(a)), (place(own), place(b), place(b)), (place(own), place(c), place(a))]
    );
    let missing = dump.missing().unwrap();
    for part in [
        "this is a dump of batctl from one node (02:ba:de:af:fe:00)",
        "of the 4 nodes in it, 3 have links",
        "on the other 3",
    ] {
        assert!(missing.contains(part), "{part}: {missing}");
    }
}

#[test]
fn batman_v_tells_a_throughput() {
    let [own, a, b, _] = MACS;
    let text = originators(own, "BATMAN_V", &[('*', a, "       54.0", a), ('*', b, "       12.5", a)]);
    let dump = read(text.as_bytes()).unwrap();
    assert_eq!((dump.metric, dump.links.len(), dump.links[0].mbps), (Metric::Throughput, 1, Some(54.0)));
    let json = format!(r#"[{{"orig_address":"{a}","best":true,"neigh_address":"{a}","throughput":54000}}]"#);
    let neighbours = format!(
        "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: mesh0/{own} (bat0/{own} BATMAN_V)]\n         Neighbor   last-seen      speed           IF\n{a}    0.130s (       54.0) [     mesh0]\n"
    );
    for text in [json, neighbours] {
        let dump = read(text.as_bytes()).unwrap();
        assert_eq!((dump.metric, dump.links[0].mbps, dump.links.len()), (Metric::Throughput, Some(54.0), 1), "{text}");
    }
    let old = format!(
        "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: mesh0/{own} (bat0/{own} BATMAN_IV)]\nIF             Neighbor              last-seen\n        mesh0\t  {a}    0.130s\n"
    );
    assert!(read(old.as_bytes()).unwrap_err().1.contains("give the output of `batctl o`"));
}

/// Answers of babeld 1.12.1 to "dump" on three nodes in a row.
const BABELD: [(&str, &str); 3] = [
    ("a", include_str!("samples/babeld-a.txt")),
    ("b", include_str!("samples/babeld-b.txt")),
    ("c", include_str!("samples/babeld-c.txt")),
];

#[test]
fn dumps_of_babeld_of_three_nodes_are_one_mesh() {
    let dumps: Vec<(String, Dump)> =
        BABELD.iter().map(|(name, text)| ((*name).to_owned(), read(text.as_bytes()).unwrap())).collect();
    // Its neighbour, and the far node by its route.
    assert_eq!(dumps[0].1.nodes.len(), 3);
    assert!(dumps[0].1.missing().unwrap().contains("a dump of babeld from one node"));
    let whole = merge(&dumps);
    assert_eq!((whole.nodes.as_slice(), whole.missing()), (["a", "b", "c"].map(str::to_owned).as_slice(), None));
    let mut ends: Vec<(usize, usize)> = whole.links.iter().map(|link| (link.from, link.to)).collect();
    ends.sort_unstable();
    ends.dedup();
    assert_eq!(ends, [(0, 1), (1, 0), (1, 2), (2, 1)]);
    assert_eq!((whole.find("10.9.0.99"), whole.find("fe80::da:15ff:fe88:2c06")), (Some(2), Some(1)));
    // Two of three.
    assert!(merge(&dumps[..2]).missing().unwrap().contains("on the other 1"));
}

#[test]
fn iw_tells_tries_and_what_the_rate_control_expects() {
    // The form of iw, written by hand.
    let text = "phy#0\n\tInterface wlan0\n\t\taddr 02:00:00:00:00:01\n\t\ttype mesh point\n\
        Station 02:00:00:00:00:02 (on wlan0)\n\tinactive time:\t10 ms\n\ttx packets:\t1000\n\ttx retries:\t500\n\ttx failed:\t40\n\
        \tsignal:  \t-55 [-58, -57] dBm\n\tmesh plink:\tESTAB\n\texpected throughput:\t30.154Mbps\n\
        Station 02:00:00:00:00:03 (on wlan0)\n\ttx packets:\t12\n\ttx retries:\t0\n\ttx failed:\t0\n\tmesh plink:\tESTAB\n\
        Station 02:00:00:00:00:04 (on wlan0)\n\ttx packets:\t900\n\tmesh plink:\tHOLDING\n";
    let dump = read(text.as_bytes()).unwrap();
    // 1500 tries for 960 packets.
    assert_eq!((dump.links.len(), dump.links[0].delivery, dump.links[0].mbps), (4, Some(0.64), Some(30.154)));
    assert_eq!((dump.links[2].delivery, dump.links[2].mbps), (None, None), "twelve packets tell nothing");
    assert_eq!(dump.find("02:00:00:00:00:01"), Some(dump.witnesses[0]));
}

#[test]
fn maps_of_communities_have_qualities_and_media() {
    let text = r#"{"timestamp":"2026-01-01","nodes":[{"node_id":"aa","hostname":"roof"},{"node_id":"bb"},{"node_id":"cc"}],"links":[
        {"type":"wifi","source":"aa","target":"bb","source_tq":0.9,"target_tq":0.8},
        {"type":"vpn","source":"aa","target":"cc","source_tq":1,"target_tq":1}]}"#;
    assert_eq!(
        links(text),
        // 0.907 (1 - 0.199^3) = 0.9 and 0.801 (1 - 0.093^3) = 0.8.
        [link("aa", "bb", 907), link("bb", "aa", 801), link("aa", "cc", 1000), link("cc", "aa", 1000)]
    );
    let dump = read(text.as_bytes()).unwrap();
    assert_eq!((dump.nodes.len(), dump.find("roof")), (3, Some(0)));
    assert_eq!(
        (dump.medium(0, 1), dump.medium(0, 2), dump.medium(2, 0)),
        (Medium::Radio, Medium::Tunnel, Medium::Tunnel)
    );
    let graph = r#"{"batadv":{"nodes":[{"id":"m1","node_id":"aa"},{"id":"m2","node_id":"bb"}],
        "links":[{"source":0,"target":1,"tq":1.25,"bidirect":true}]}}"#;
    // 0.8 = p (1 - (1 - p)^3), for both directions alike: p = 0.806.
    assert_eq!(links(graph), [link("aa", "bb", 806), link("bb", "aa", 806)]);
    let plain = r#"{"nodes":[{"id":"a"},{"id":"b"}],"links":[{"source":"a","target":"b"}]}"#;
    assert_eq!(read(plain.as_bytes()).unwrap().metric, Metric::Hops);
}

#[test]
fn another_metric_than_etx_is_a_cost_of_routes() {
    let text = r#"{"type":"NetworkCollection","collection":[{"type":"NetworkGraph","metric":"ff_dat_metric","links":[]},
        {"type":"NetworkGraph","protocol":"olsrv2","metric":"ff_dat_metric","links":[{"source":"a","target":"b","cost":262144}]}]}"#;
    let dump = read(text.as_bytes()).unwrap();
    assert_eq!((dump.metric, dump.links[0].cost, dump.links[0].delivery), (Metric::Cost, Some(262_144.0), None));
    let wired = "add neighbour 1 address a rxcost 96 txcost 96\n";
    let wired = read(wired.as_bytes()).unwrap();
    assert_eq!((wired.links[0].delivery, wired.medium(0, 1)), (None, Medium::Cable), "of a wired link no loss is told");
}

#[test]
fn a_table_has_names_or_numbers_and_a_line_is_for_both_directions() {
    let named = "from,to,etx,hop_mbps\nroof,mill,1.5625,12\nmill,barn,1.0,\nbarn,mill,4.0,3\n";
    assert_eq!(
        links(named),
        [link("roof", "mill", 800), link("mill", "roof", 800), link("mill", "barn", 1000), link("barn", "mill", 500)]
    );
    let dump = read(named.as_bytes()).unwrap();
    assert_eq!((dump.links[0].mbps, dump.links[2].mbps, dump.links[3].mbps), (Some(12.0), None, Some(3.0)));
    let numbered = read(b"from,to,metric\n2,0,7\n").unwrap();
    assert_eq!(
        (numbered.nodes.as_slice(), numbered.metric),
        (["0", "1", "2"].map(str::to_owned).as_slice(), Metric::Cost)
    );
}

#[test]
fn entries_that_cannot_be_used_are_left_out_with_their_lines() {
    let netjson = "{\"type\":\"NetworkGraph\",\"metric\":\"etx\",\n\"links\":[\n{\"source\":\"a\",\"target\":\"b\",\"cost\":1.5},\n{\"source\":\"a\",\"target\":\"c\"},\n{\"source\":\"c\",\"target\":\"c\",\"cost\":1}]}";
    let viewer = "{\"nodes\":[],\"links\":[{\"source\":\"a\",\"target\":\"b\",\"source_tq\":0.9},\n{\"source\":\"a\",\"target\":\"c\",\"source_tq\":1.5}]}";
    let batman = format!(
        "{}   {}    0.1s   (nan) {} [wlan0]\n",
        originators(MACS[0], "BATMAN_IV", &[('*', MACS[1], "254", MACS[1]), ('*', MACS[2], "300", MACS[2])]),
        MACS[3],
        MACS[3]
    );
    let babel = "add neighbour 1 address fe80::1 if wlan0 rxcost 256 txcost 300\nadd neighbour 2 address fe80::2 if wlan0 rxcost 65535 txcost 65535\nadd neighbour 3 if wlan0\n";
    let olsr = "Table: Links\nLocal IP\tRemote IP\tLQ\tNLQ\na\tb\t1\t1\na\tc\t0.000\t0.000\na\td\tone\t1\n";
    let iw = "Station m1 (on wlan0)\n\ttx packets:\t500\nStation m2 (on wlan0)\n\ttx packets:\tmany\nStation m3 (on wlan0)\n\ttx packets:\t500\n\ttx failed:\t500\n";
    let table = "from,to,etx\na,b,1.2\na,,1\nb,c,0,9\nb,d,0.9\n";
    for (text, lines, links) in [
        (netjson, &["4", "5"][..], 1),
        (viewer, &["2"], 1),
        (batman.as_str(), &["5", "4"], 1),
        (babel, &["2", "3"], 2),
        (olsr, &["4", "5"], 2),
        (iw, &["4", "5"], 4),
        (table, &["3", "4", "5"], 2),
    ] {
        let dump = read(text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}: {text}"));
        let places: Vec<&str> = dump.left_out.iter().map(|entry| entry.place.as_str()).collect();
        assert_eq!((places.as_slice(), dump.links.len()), (lines, links), "{:?}: {text}", dump.left_out);
    }
    let named = read(table.as_bytes()).unwrap().in_file("roofs.csv");
    assert!(named.left_out[0].place == "roofs.csv:3" && named.left_out[1].why.contains("decimal comma"), "{named:?}");
}

/// Dump of routers whose radio has another address than their main interface, as with Gluon. The
/// rows are originator, quality and next hop.
fn gluon(own: u8, rows: &[(&str, &str, &str)]) -> (String, Dump) {
    let mac = |short: &str| format!("02:00:00:00:{short}");
    let all: Vec<(String, String, String)> =
        rows.iter().map(|(one, quality, next)| (mac(one), (*quality).to_owned(), mac(next))).collect();
    let rows: Vec<(char, &str, &str, &str)> =
        all.iter().map(|(one, quality, next)| ('*', one.as_str(), quality.as_str(), next.as_str())).collect();
    let algorithm = if rows.iter().any(|row| row.2.contains('.')) { "BATMAN_V" } else { "BATMAN_IV" };
    let text = originators(&mac(&format!("0{own}:00")), algorithm, &rows);
    ((own + 9).to_string(), read(text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}: {text}")))
}

#[test]
fn n_routers_are_n_nodes_whatever_their_addresses() {
    let count = |parts: &[(String, Dump)]| {
        let whole = merge(parts);
        (whole.nodes.len(), whole.missing(), whole)
    };
    // B.A.T.M.A.N. IV has a row for the radio and one for the main interface of each neighbour; those behind them have one.
    let four = [
        gluon(1, &[("02:01", "240", "02:01"), ("02:00", "239", "02:01"), ("03:00", "205", "02:01")]),
        gluon(
            2,
            &[
                ("01:01", "238", "01:01"),
                ("01:00", "238", "01:01"),
                ("03:01", "230", "03:01"),
                ("03:00", "229", "03:01"),
            ],
        ),
        gluon(3, &[("02:01", "231", "02:01"), ("02:00", "231", "02:01"), ("01:00", "200", "02:01")]),
    ];
    let (nodes, missing, whole) = count(&four);
    assert_eq!((nodes, missing), (3, None), "{whole:?}");
    assert_eq!(whole.find("02:00:00:00:02:01"), whole.find("02:00:00:00:02:00"));
    // A router with a radio on each side: two addresses beside that of its main interface.
    let two_radios = [
        gluon(1, &[("02:01", "240", "02:01"), ("02:00", "240", "02:01"), ("03:00", "200", "02:01")]),
        gluon(
            2,
            &[
                ("01:01", "238", "01:01"),
                ("01:00", "238", "01:01"),
                ("03:01", "230", "03:01"),
                ("03:00", "230", "03:01"),
            ],
        ),
        gluon(3, &[("02:02", "231", "02:02"), ("02:00", "231", "02:02"), ("01:00", "200", "02:02")]),
    ];
    let (nodes, missing, whole) = count(&two_radios);
    assert_eq!((nodes, missing, whole.find("02:00:00:00:02:02")), (3, None, whole.find("11")), "{whole:?}");
    // B.A.T.M.A.N. V has rows of main interfaces alone; what a relay passes on is less.
    let five = [
        gluon(1, &[("02:00", "54.0", "02:01"), ("03:00", "24.0", "02:01")]),
        gluon(2, &[("01:00", "54.0", "01:01"), ("03:00", "48.0", "03:01")]),
        gluon(3, &[("02:00", "47.0", "02:01"), ("01:00", "23.0", "02:01")]),
    ];
    let (nodes, missing, whole) = count(&five);
    assert_eq!((nodes, missing), (3, None), "{whole:?}");
    // Host names of one image, and the address that every router has, are no sign.
    let babel = |own: &str, far: &str| {
        read(format!("BABEL 1.0\nhost OpenWrt\nmy-id 02:00:00:ff:fe:00:00:{own}\nadd interface br-lan up true ipv6 fe80::{own}:1 ipv4 192.168.1.1\nadd interface wlan0 up true ipv6 fe80::{own} ipv4 10.0.0.{own}\nadd neighbour 1 address fe80::{far} if wlan0 rxcost 256 txcost 256\nok\n").as_bytes()).unwrap()
    };
    let (nodes, missing, whole) = count(&[("a".to_owned(), babel("1", "2")), ("b".to_owned(), babel("2", "1"))]);
    assert_eq!((nodes, missing), (2, None), "{whole:?}");
    // The same without names of files, as through pipes, and in one file.
    let (nodes, _, whole) = count(&[(String::new(), babel("1", "2")), (String::new(), babel("2", "1"))]);
    assert_eq!((nodes, whole.find("10.0.0.2")), (2, Some(1)), "{whole:?}");
    let both = "BABEL 1.0\nmy-id 01\nadd interface w up true ipv6 fe80::1\nadd neighbour 1 address fe80::2 if w rxcost 256 txcost 256\nok\nBABEL 1.0\nmy-id 02\nadd interface w up true ipv6 fe80::2\nadd neighbour 1 address fe80::1 if w rxcost 256 txcost 256\nok\n";
    assert_eq!(read(both.as_bytes()).unwrap().nodes, ["01", "02"]);
}

#[test]
fn several_addresses_of_a_router_are_one_node_in_the_other_formats() {
    let names = |text: &str| read(text.as_bytes()).unwrap_or_else(|why| panic!("{why:?}: {text}")).nodes;
    let vis = r#"{"source_version":"2023.0","algorithm":4,"vis":[{"primary":"p1","secondary":["s1"],"neighbors":[{"router":"s1","neighbor":"s2","metric":"1.1"}]},
        {"primary":"p2","secondary":["s2"],"neighbors":[{"router":"p2","neighbor":"p1","metric":"1.2"}]}]}"#;
    assert_eq!(names(vis), ["p1", "p2"]);
    let vis_lines = "{ \"primary\" : \"p1\" }\n{ \"secondary\" : \"s1\", \"of\" : \"p1\" }\n{ \"router\" : \"s1\", \"neighbor\" : \"p2\", \"label\" : \"1.25\" }\n{ \"primary\" : \"p2\" }\n";
    assert_eq!(
        (names(vis_lines), links(vis_lines)),
        (vec!["p1".to_owned(), "p2".to_owned()], vec![link("p1", "p2", 800)])
    );
    let mid = "Table: Links\nLocal IP\tRemote IP\tHyst.\tLQ\tNLQ\tCost\n10.1.0.1\t10.1.0.2\t0.00\t1.000\t1.000\t1.000\n\nTable: Topology\nDest. IP\tLast hop IP\tLQ\tNLQ\tCost\n10.0.0.2\t10.0.0.1\t0.900\t0.900\t1.2\n\n\
               Table: MID\nIP address\tAliases\n10.0.0.2\t10.1.0.2\n\nTable: Interfaces\nName\tState\tMTU\tWLAN\tSrc-Adress\tMask\tDst-Adress\nwlan0\tUP\t1472\tYes\t10.0.0.1\t255.0.0.0\t10.255.255.255\neth0\tUP\t1472\tNo\t10.1.0.1\t255.0.0.0\t10.255.255.255\n";
    let dump = read(mid.as_bytes()).unwrap();
    assert_eq!((dump.nodes.len(), dump.medium(0, 1)), (2, Medium::Cable), "{dump:?}");
    let jsoninfo = r#"{"interfaces":[{"name":"wlan0","wireless":true,"ipv4Address":"10.0.0.1"},{"name":"eth1","wireless":false,"ipv4Address":"10.1.0.1"}],
        "mid":[{"main":{"ipAddress":"10.0.0.2"},"aliases":[{"ipAddress":"10.1.0.2"}]},{"ipAddress":"10.0.0.3","aliases":["10.1.0.3"]}],
        "links":[{"localIP":"10.1.0.1","remoteIP":"10.1.0.2","linkQuality":1,"neighborLinkQuality":1},{"localIP":"10.0.0.1","remoteIP":"10.1.0.3","linkQuality":0.5,"neighborLinkQuality":0.5}],
        "topology":[{"lastHopIP":"10.0.0.2","destinationIP":"10.0.0.3","linkQuality":1,"neighborLinkQuality":1}]}"#;
    let dump = read(jsoninfo.as_bytes()).unwrap();
    let place = |name: &str| dump.find(name).unwrap();
    assert_eq!(dump.nodes.len(), 3, "{dump:?}");
    assert_eq!(
        (dump.medium(place("10.0.0.1"), place("10.0.0.2")), dump.medium(place("10.1.0.1"), place("10.0.0.3"))),
        (Medium::Cable, Medium::Radio)
    );
    let netjson = r#"{"type":"NetworkGraph","metric":"etx","nodes":[{"id":"a","local_addresses":["a1"]},{"id":"b","properties":{"local_addresses":["b1"]}}],"links":[{"source":"a1","target":"b","cost":1},{"source":"b1","target":"a","cost":1}]}"#;
    assert_eq!(names(netjson), ["a", "b"]);
    // iw with `iw dev` of two radios, and the dump of a neighbour that hears both.
    let iw = |own: &[&str], far: &[&str]| {
        let own: String = own.iter().map(|mac| format!("\tInterface wlan0\n\t\taddr {mac}\n")).collect();
        let far: String = far.iter().map(|mac| format!("Station {mac} (on wlan0)\n\ttx packets:\t500\n")).collect();
        read(format!("phy#0\n{own}{far}").as_bytes()).unwrap()
    };
    let [a, b, c, _] = MACS;
    let parts = [("roof".to_owned(), iw(&[a], &[b, c])), ("mill".to_owned(), iw(&[b, c], &[a]))];
    assert_eq!(merge(&parts).nodes, ["roof", "mill"]);
    assert!(iw(&[], &[a]).is_anonymous() && !iw(&[b], &[a]).is_anonymous());
}

#[test]
fn addresses_that_no_dump_shows_are_asked_for_with_the_command() {
    let one = |own: &str, far: &str| {
        let text = format!(
            "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: primary0/{own} (bat0/{own} BATMAN_V)]\n * {far}    0.505s (       30.0) {far} [     mesh0]\n"
        );
        read(text.as_bytes()).unwrap()
    };
    let [a, b, c, d] = MACS;
    let apart = merge(&[("a".to_owned(), one(a, c)), ("b".to_owned(), one(b, d))]).missing().unwrap();
    assert!(apart.contains("put the output of `ip -o link` before each dump"), "{apart}");
    // With it: a hears c, which is b's radio.
    let with = |own: &str, radio: &str, far: &str| {
        let text = format!(
            "2: mesh0: <UP> mtu 1532\\    link/ether {radio} brd ff:ff:ff:ff:ff:ff\n[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: primary0/{own} (bat0/{own} BATMAN_V)]\n * {far}    0.505s (       30.0) {far} [     mesh0]\n"
        );
        read(text.as_bytes()).unwrap()
    };
    let whole = merge(&[("a".to_owned(), with(a, d, c)), ("b".to_owned(), with(b, c, d))]);
    assert_eq!((whole.nodes.as_slice(), whole.missing()), (["a", "b"].map(str::to_owned).as_slice(), None));
}

#[test]
fn interfaces_say_what_a_link_goes_over() {
    for (name, medium) in [
        ("eth0.2", Some(Medium::Cable)),
        ("lan4", Some(Medium::Cable)),
        ("br-lan", Some(Medium::Cable)),
        ("vx_mesh_lan", Some(Medium::Cable)),
        ("wg0", Some(Medium::Tunnel)),
        ("mesh-vpn", Some(Medium::Tunnel)),
        ("tun-babel", Some(Medium::Tunnel)),
        ("wlan0", Some(Medium::Radio)),
        ("phy1-mesh0", Some(Medium::Radio)),
        ("mesh0", Some(Medium::Radio)),
        ("x", None),
    ] {
        assert_eq!(Medium::of_interface(name), medium, "{name}");
    }
    let [own, a, b, _] = MACS;
    let text = originators(own, "BATMAN_IV", &[('*', a, "255", a), ('*', b, "255", b)]).replacen("mesh0]", "eth0]", 1);
    let dump = read(text.as_bytes()).unwrap();
    assert_eq!((dump.medium(0, 1), dump.medium(0, 2)), (Medium::Cable, Medium::Radio), "{text}");
}

/// Dumps of babeld 1.12.1 in three namespaces. One and two are connected by an interface that is
/// configured as wireless, two and three by a cable between two other interfaces.
#[test]
fn babeld_with_two_interfaces_and_a_cable_is_three_routers() {
    let parts: Vec<(String, Dump)> = [
        ("one", include_str!("samples/babeld-cable-one.txt")),
        ("two", include_str!("samples/babeld-cable-two.txt")),
        ("three", include_str!("samples/babeld-cable-three.txt")),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), read(text.as_bytes()).unwrap()))
    .collect();
    // Each alone names three routers, too: by the ids of routes.
    assert_eq!(parts.iter().map(|(_, dump)| dump.nodes.len()).collect::<Vec<_>>(), [3, 3, 3]);
    let whole = merge(&parts);
    assert_eq!(
        (whole.nodes.as_slice(), whole.missing()),
        (["one", "two", "three"].map(str::to_owned).as_slice(), None)
    );
    assert_eq!((whole.medium(0, 1), whole.medium(1, 2)), (Medium::Radio, Medium::Cable));
    assert_eq!((whole.find("10.8.0.2"), whole.find("10.9.0.3")), (Some(1), Some(2)));
    // The other way round, and with names of one host for all, nothing changes.
    let mut turned = parts.clone();
    turned.reverse();
    assert_eq!(merge(&turned).nodes, ["three", "two", "one"]);
    let nameless: Vec<(String, Dump)> = parts.into_iter().map(|(_, dump)| (String::new(), dump)).collect();
    assert_eq!(merge(&nameless).nodes.len(), 3);
}
