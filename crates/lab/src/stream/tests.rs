use super::*;
use meshpace_scenario::{Scenario, Source};
use std::path::Path;

fn read(text: &str) -> Scenario {
    let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
    Scenario::read(source, Path::new("."), "test").unwrap_or_else(|why| panic!("{}", why.render(false)))
}

#[test]
fn what_is_recorded_is_the_run_and_recording_changes_nothing() {
    let scenario = read(
        "duration = '8 s'\nwarmup = '1 s'\n[topology]\nhops = 4\n[routing]\nprotocol = 'aodv'\n[[flow]]\nstart = '0 s'\n",
    );
    let point = &scenario.points[0];
    let mut bytes = Vec::new();
    let (outcome, written) = record("test", point, 3, &mut bytes);
    written.unwrap();
    let plain = meshpace_sim::run(&point.config, 3);
    assert_eq!(outcome.fingerprint, plain.fingerprint);
    assert_eq!(outcome.flows[0].delivered_bytes, plain.flows[0].delivered_bytes);
    let (header, events) = Reader::new(bytes.as_slice()).unwrap();
    assert_eq!((header.nodes.len(), header.links.len(), header.flows.len()), (5, 4, 1));
    let events: Vec<Event> = events.collect::<Result<_, _>>().unwrap();
    let frames = events.iter().filter(|event| matches!(event, Event::Frame { .. })).count() as u64;
    assert_eq!(frames, plain.frames);
    let collisions = events.iter().filter(|event| matches!(event, Event::Collision { .. })).count() as u64;
    assert_eq!(collisions, plain.counters.collisions);
    let sent = |what: &str| {
        let is_it = |event: &&Event| matches!(event, Event::Sent { what: other, node: 0, .. } if other == what);
        events.iter().filter(is_it).count() as u64
    };
    assert!(sent("data") >= plain.flows[0].segments_sent && plain.flows[0].segments_sent > 10);
    let longest = events.iter().filter_map(|event| match event {
        Event::Route { nodes: Some(nodes), .. } => Some(nodes.len()),
        _ => None,
    });
    assert_eq!(longest.max(), Some(5), "the route over four hops was there");
    let last = events.iter().rev().find_map(|event| match event {
        Event::Flow { delivered, window, .. } => Some((*delivered, *window)),
        _ => None,
    });
    let (delivered, window) = last.unwrap();
    assert!(delivered >= plain.flows[0].delivered_bytes && window.is_some_and(|window| window >= 1.0));
    let end =
        Event::End { time: 8_000_000_000, frames: plain.frames, fingerprint: format!("{:016x}", plain.fingerprint) };
    assert_eq!(events.last(), Some(&end));
    // In the order of their times.
    let text = String::from_utf8(bytes).unwrap();
    let time = |line: &str| -> u64 { line.split(',').nth(1).unwrap().parse().unwrap() };
    let times: Vec<u64> = text.lines().skip(1).map(time).collect();
    assert!(times.is_sorted(), "{:?}", times.windows(2).find(|pair| pair[0] > pair[1]));
}

#[test]
fn nodes_that_move_have_places() {
    let scenario = read(
        "duration = '3 s'\n[topology]\nhops = 2\nmoves = [{ node = 2, start = '1 s', end = '2 s', to = ['400 m', '90 m'] }]\n\
         [routing]\nprotocol = 'aodv'\n[[flow]]\n",
    );
    let mut bytes = Vec::new();
    record("test", &scenario.points[0], 1, &mut bytes).1.unwrap();
    let (_, events) = Reader::new(bytes.as_slice()).unwrap();
    let places = events.filter_map(|event| match event.unwrap() {
        Event::Place { node, x, y, .. } => Some((node, x, y)),
        _ => None,
    });
    assert_eq!(places.last(), Some((2, 400.0, 90.0)));
}

#[test]
fn what_is_no_stream_or_a_later_one_is_refused_and_a_broken_line_named() {
    let refused = |text: &str| Reader::new(text.as_bytes()).map(|_| ()).unwrap_err();
    assert!(refused("[[flow]]\n").contains("not a recorded run"));
    assert!(refused("").contains("not a recorded run"));
    assert!(refused("{\"stream\":\"meshpace\",\"format\":3}\n").contains("format 3"));
    let header = Header {
        stream: STREAM.to_owned(),
        format: FORMAT,
        model: 1,
        version: String::new(),
        scenario: String::new(),
        seed: 1,
        point: Map::new(),
        duration_ns: 1,
        warmup_ns: 0,
        sample_ns: 1,
        nodes: Vec::new(),
        links: Vec::new(),
        flows: Vec::new(),
    };
    let text = format!("{}\n[\"later\",1]\n[\"queue\",5]\n[\"que", serde_json::to_string(&header).unwrap());
    let (read, mut lines) = Reader::new(text.as_bytes()).unwrap();
    assert_eq!(read, header);
    assert!(matches!(lines.next(), Some(Ok(Event::Other(_)))), "a kind of later is passed on");
    assert!(lines.next().unwrap().unwrap_err().starts_with("line 3"));
    assert!(lines.next().unwrap().unwrap_err().starts_with("line 4"), "a line that was cut off");
}
