//! Scenarios that together make the reader ask for every key that there is.

use meshpace_transport::pacing::rules::Kind;

/// Everything but the topology and the flow.
const REST: &str = "\
series = '1 s'
[plot]
[batches]
[link]
queue = { kind = 'llap' }
marker = { kind = 'lred' }
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
[link]
queue = { kind = 'fq-codel' }
marker = { kind = 'dcc' }
[topology]
spacing = '100 m'
";

/// Radios that need more than a line of their own.
const RADIOS: [&str; 2] = [
    "[radio]\nrate = 'MCS 7'\n[mac]\nprofile = 'ht'\n[topology]\nspacing = '10 m'\n",
    "[radio]\nlinks = 'links.csv'\n[topology]\nkind = 'chain'\nhops = 1\n",
];

/// Queues.
const QUEUES: [&str; 1] = ["[link]\nqueue = { kind = 'fq-codel-airtime' }\n"];

/// Shapes whose flows say nothing.
const TOPOLOGIES: [&str; 11] = [
    "",
    "moves = [{ node = 1, start = '1 s', end = '2 s', to = ['0 m', '9 m'] }]",
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

/// Where nodes are that have no flows of their own.
const PLACES: [&str; 2] = ["positions = [['0 m', '0 m'], ['200 m', '0 m']]", "file = 'map.csv'"];

/// Flows over a chain.
const FLOWS: [&str; 25] = [
    "traffic = 'http'\npause = '1 s'",
    "traffic = 'cbr'\nrate = '9 kbit/s'\ntransport = { name = 'udp' }",
    "traffic = 'mp3'",
    "traffic = 'fixed-rate'\nrate = '9 kbit/s'",
    "traffic = 'trace'\ntrace = 'trace.csv'",
    "transport = {}",
    "transport = { rto = {}, ecn = {} }",
    "transport = { window = { kind = 'newreno' } }",
    "transport = { window = { kind = 'clamp' } }",
    "transport = { window = { kind = 'constant' } }",
    "transport = { window = { kind = 'hop-limit' } }",
    "transport = { window = { kind = 'few' } }",
    "transport = { window = { kind = 'cubic' } }",
    "transport = { ack = { kind = 'delayed' } }",
    "transport = { ack = { kind = 'dynamic' } }",
    "transport = { pacing = 'none' }",
    "transport = { pacing = { kind = 'adaptive' } }",
    "transport = { pacing = { kind = 'adaptive', measure = 'out-of-interference', interference = {} } }",
    "transport = { pacing = { kind = 'dcc' } }",
    "transport = { pacing = { kind = 'trains' } }",
    "transport = { name = 'tpa-3' }",
    "transport = { name = 'tpa-3', rto = {} }",
    "transport = { name = 'tpa-ap-3', pacing = {} }",
    "transport = { name = 'tpa-ap-3', pacing = 'none' }",
    "transport = { name = 'quiet-train', rto = {} }",
];

/// All of them.
pub fn all() -> Vec<String> {
    let mut texts = vec![format!("{REST}[[flow]]\n"), format!("{OTHER_REST}[[flow]]\n")];
    // Static routes do not follow nodes that move.
    let shape = |shape: &&str| format!("[routing]\nprotocol = 'aodv'\n[topology]\n{shape}\n[[flow]]\n");
    texts.extend(TOPOLOGIES.iter().map(shape));
    let place = |place: &&str| format!("[topology]\nkind = 'nodes'\n{place}\n[[flow]]\nfrom = 0\nto = 1\n");
    texts.extend(PLACES.iter().map(place));
    texts.extend(FLOWS.iter().map(|flow| format!("[[flow]]\n{flow}\n")));
    texts.extend(RADIOS.iter().chain(&QUEUES).map(|part| format!("{part}[[flow]]\n")));
    let rule = |kind: &Kind| format!("[[flow]]\ntransport = {{ pacing = {{ kind = '{}' }} }}\n", kind.about().name);
    texts.extend(Kind::ALL.iter().map(rule));
    texts
}

/// The files that they name.
pub fn load(name: &str) -> Result<Vec<u8>, String> {
    Ok(match name {
        "links.csv" => b"from,to,loss_db\n0,1,60\n".to_vec(),
        "trace.csv" => b"time_s,bytes\n0,1000\n".to_vec(),
        _ => b"x_m,y_m\n0,0\n200,0\n".to_vec(),
    })
}
