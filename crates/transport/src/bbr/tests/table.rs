//! The table of docs/tunnel-off-mesh.md: bytes that BBR delivers over links in virtual time. The links are
//! chosen so that every constant of `control` changes some cell.

use super::{Link, World};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use meshpace_core::Duration;
use meshpace_testing::generated::{hold, root};

const PAGE: &str = "docs/tunnel-off-mesh.md";
const HEADER: &str =
    "| Mbit/s, round trip, queue, lost each way | kB in 0.1 s | in 1 s | in 5 s | in 30 s | sent again |";

/// Rate in Mbit/s, round trip and longest wait in the queue in ms, share of packets that are lost, and
/// how many of the times are looked at: a fast link has a million packets in the last.
type Row = (f64, u64, u64, f64, usize);

const LINKS: [Row; 8] = [
    (10.0, 40, 200, 0.0, 4),
    (10.0, 40, 10, 0.0, 4),
    (5.0, 40, 200, 0.02, 4),
    (5.0, 100, 20, 0.06, 4),
    (10.0, 100, 50, 0.1, 4),
    (2.0, 200, 100, 0.1, 4),
    (20.0, 200, 200, 0.005, 4),
    (1000.0, 2, 10, 0.001, 2),
];
const TIMES: [f64; 4] = [0.1, 1.0, 5.0, 30.0];
const SEEDS: u64 = 10;

/// Bytes that have arrived at the times of a row, and segments sent again until the last.
fn run((megabits, rtt_ms, queue_ms, loss, times): Row, seed: u64) -> Vec<u64> {
    let link = Link { queue: Duration::from_millis(queue_ms), ..Link::new(megabits, rtt_ms, loss) };
    let mut world = World::new(link, seed);
    world.ends[0].write(1 << 40);
    let delivered = |seconds: &f64| {
        world.run(*seconds);
        world.ends[1].delivered()
    };
    let mut found: Vec<u64> = TIMES[..times].iter().map(delivered).collect();
    found.push(world.ends[0].stats().retransmissions);
    found
}

/// The row of a link: means over the seeds.
fn row(link: Row) -> String {
    let runs: Vec<Vec<u64>> = (1..=SEEDS).map(|seed| run(link, seed)).collect();
    let mean = |place: usize| runs.iter().map(|run| run[place]).sum::<u64>() as f64 / SEEDS as f64;
    let (megabits, rtt_ms, queue_ms, loss, times) = link;
    let cells: Vec<String> = (0..TIMES.len())
        .map(|place| if place < times { format!(" {:.1} |", mean(place) / 1e3) } else { String::from(" |") })
        .collect();
    let name = format!("| {megabits}, {rtt_ms} ms, {queue_ms} ms, {} % |", 100.0 * loss);
    format!("{name}{} {:.1} |", cells.concat(), mean(times))
}

#[test]
fn generated_table_of_bbr_over_links() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let (before, rest) = page.split_once(HEADER).expect("the header of the table");
    let mut rest = rest.lines().skip(1);
    let rule = rest.next().unwrap();
    let after: Vec<&str> = rest.skip_while(|line| line.starts_with('|')).collect();
    let rows: Vec<String> = LINKS.into_iter().map(row).collect();
    std::println!("{}", rows.join("\n"));
    hold(PAGE, &format!("{before}{HEADER}\n{rule}\n{}\n{}\n", rows.join("\n"), after.join("\n")));
}
