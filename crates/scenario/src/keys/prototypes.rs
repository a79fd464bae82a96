//! Scenarios that together make the reader request every key.

use meshpace_mesh::config::{MarkerConfig, QueueConfig};
use meshpace_transport::pacing;
use meshpace_transport::tcp::{ack, window};

/// Parts of a scenario besides the topology and the flow.
const REST: &str = "\
series = '1 s'
[plot]
[batches]
";
const OTHER_REST: &str = "\
watch = [{ node = 0, toward = 1 }]
series = '1 s'
[[program]]
node = 0
command = 'true'
[routing]
protocol = 'olsr'
[radio]
model = 'log-distance'
[topology]
spacing = '100 m'
";

/// Radios that are written in several tables.
const RADIOS: [&str; 3] = [
    "[radio]\nrate = 'MCS 7'\n[mac]\nprofile = 'ht'\n[topology]\nspacing = '10 m'\n",
    "[radio]\nrate = 'MCS 7'\n[mac]\nprofile = 'ht'\nedca = true\n[topology]\nspacing = '10 m'\n",
    "[radio]\nlinks = 'links.csv'\n[topology]\nkind = 'chain'\nhops = 1\n",
];

/// Topologies whose flows need no ends.
const TOPOLOGIES: [&str; 12] = [
    "",
    "moves = [{ node = 1, start = '1 s', end = '2 s', to = ['0 m', '9 m'] }]",
    "motion = 'walk.txt'",
    "kind = 'cross'",
    "kind = 'tpa-cross'",
    "kind = 'parallel'",
    "kind = 'asymmetric'",
    "kind = 'grid'\nflows = { per_side = 1 }",
    "kind = 'grid'\nflows = 'paper'",
    "kind = 'random'\nnodes = 8\nwidth = '400 m'\nheight = '400 m'\nflows = { count = 1 }",
    "kind = 'roaming'",
    "kind = 'waypoint'\nnodes = 8\nwidth = '400 m'\nheight = '400 m'\nflows = { count = 1 }",
];

/// Topologies that give no ends to flows.
const PLACES: [&str; 2] = ["positions = [['0 m', '0 m'], ['200 m', '0 m']]", "file = 'map.csv'"];

/// Flows over a chain.
const FLOWS: [&str; 14] = [
    "traffic = 'http'\npause = '1 s'",
    "traffic = 'cbr'\nrate = '9 kbit/s'\ntransport = { name = 'udp' }",
    "traffic = 'mp3'",
    "traffic = 'fixed-rate'\nrate = '9 kbit/s'",
    "traffic = 'trace'\ntrace = 'trace.csv'",
    "transport = {}",
    "transport = { ecn = {} }",
    "transport = { pacing = 'none' }",
    "transport = { pacing = { kind = 'adaptive', measure = 'out-of-interference', interference = {} } }",
    "transport = { name = 'tpa-3' }",
    "transport = { name = 'tpa*-2' }",
    "transport = { name = 'tpa-ap-3', pacing = {} }",
    "transport = { name = 'tpa-ap-3', pacing = 'none' }",
    "transport = { name = 'quiet-train' }",
];

/// All scenarios.
pub fn all() -> Vec<String> {
    let mut texts = vec![format!("{REST}[[flow]]\n"), format!("{OTHER_REST}[[flow]]\n")];
    // Static routes cannot be used with nodes that move.
    let shape = |shape: &&str| format!("[routing]\nprotocol = 'aodv'\n[topology]\n{shape}\n[[flow]]\n");
    texts.extend(TOPOLOGIES.iter().map(shape));
    let place = |place: &&str| format!("[topology]\nkind = 'nodes'\n{place}\n[[flow]]\nfrom = 0\nto = 1\n");
    texts.extend(PLACES.iter().map(place));
    texts.extend(FLOWS.iter().map(|flow| format!("[[flow]]\n{flow}\n")));
    texts.extend(RADIOS.iter().map(|part| format!("{part}[[flow]]\n")));
    let link = |piece: &str, kind: &str| format!("[link]\n{piece} = {{ kind = '{kind}' }}\n[[flow]]\n");
    texts.extend(QueueConfig::kinds().iter().map(|(kind, _)| link("queue", kind)));
    texts.extend(MarkerConfig::kinds().iter().map(|(kind, _)| link("marker", kind)));
    let transport = |piece: &str, kind: &str| format!("[[flow]]\ntransport = {{ {piece} = {{ kind = '{kind}' }} }}\n");
    texts.extend(window::Config::kinds().iter().map(|(kind, _)| transport("window", kind)));
    texts.extend(ack::Config::kinds().iter().map(|(kind, _)| transport("ack", kind)));
    texts.extend(pacing::Config::kinds().iter().map(|(kind, _)| transport("pacing", kind)));
    texts
}

/// Files that the scenarios name.
pub fn load(name: &str) -> Result<Vec<u8>, String> {
    Ok(match name {
        "links.csv" => b"from,to,loss_db\n0,1,60\n".to_vec(),
        "walk.txt" => b"$ns_ at 1.0 \"$node_(1) setdest 0.0 9.0 1.0\"\n".to_vec(),
        "trace.csv" => b"time_s,bytes\n0,1000\n".to_vec(),
        _ => b"x_m,y_m\n0,0\n200,0\n".to_vec(),
    })
}
