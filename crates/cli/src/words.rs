//! Words from other programs and papers that people try, and what meshpace uses in their place.
//! `meshpace keys --search` uses the list, and so do error messages about scenarios.

use meshpace_scenario::{Problem, Refusal};
use meshpace_transport::names;

/// Word with its replacement.
struct Word {
    /// Spellings of the word in lower case.
    tried: &'static [&'static str],
    /// Text to write instead, or an explanation.
    write: &'static str,
    /// Keys that the word refers to.
    keys: &'static [&'static str],
}

const fn word(tried: &'static [&'static str], write: &'static str, keys: &'static [&'static str]) -> Word {
    Word { tried, write, keys }
}

/// Words that people have tried.
const WORDS: [Word; 25] = [
    word(&["reno", "tcp-reno", "new reno"], "flow.transport = \"newreno\"", &["flow.transport"]),
    word(
        &["tcp", "sack"],
        "flow.transport = \"newreno\", or \"newreno+sack\"",
        &["flow.transport", "flow.transport.sack"],
    ),
    word(
        &["vegas", "westwood", "dctcp"],
        "it is not available; meshpace transports lists all transports",
        &["flow.transport"],
    ),
    word(&["bulk", "endless", "greedy", "iperf"], "flow.traffic = \"ftp\", which is the default", &["flow.traffic"]),
    word(
        &["web", "www", "downloads"],
        "flow.traffic = \"http\", with flow.file_size and flow.pause",
        &["flow.traffic", "flow.file_size", "flow.pause"],
    ),
    word(
        &["udp", "datagrams"],
        "flow.transport = \"udp\", with flow.traffic = \"cbr\" and flow.rate = \"64 kbit/s\"",
        &["flow.transport", "flow.traffic", "flow.rate"],
    ),
    word(
        &["p95", "latency", "percentile", "delay"],
        "it is measured, not set: the column \"delay p95 ms\" of meshpace run, delay_p95_s in records; drawn by plot.metrics = [\"delay\"]",
        &["plot.metrics"],
    ),
    word(
        &["starved", "starvation", "starves", "fairness"],
        "it is measured, not set: meshpace run says first who starved; Jain's index is drawn by plot.metrics = [\"jain\"]",
        &["plot.metrics"],
    ),
    word(
        &["mobility", "setdest", "bonnmotion", "ns2mobility"],
        "topology.motion = \"trace.ns2\", a trace of ns-2 or BonnMotion; or topology.kind = \"waypoint\"",
        &["topology.motion", "topology.moves", "topology.kind"],
    ),
    word(&["label", "alias"], "flow.name = \"long\"", &["flow.name"]),
    word(&["voice", "speech", "audio"], "flow.traffic = \"voip\", or \"mp3\"", &["flow.traffic"]),
    word(
        &["802.11n", "80211n", "11n"],
        "mac.profile = \"ht\" and radio.rate = \"MCS 7\"",
        &["mac.profile", "radio.rate"],
    ),
    word(
        &["802.11a", "80211a", "11a"],
        "mac.profile = \"ieee\" and radio.rate = \"6 Mbit/s\" to \"54 Mbit/s\"",
        &["mac.profile", "radio.rate"],
    ),
    word(
        &["802.11g", "80211g", "11g"],
        "mac.profile = \"ieee\", radio.rate = \"6 Mbit/s\" to \"54 Mbit/s\" and radio.band = \"2.4 GHz\"",
        &["mac.profile", "radio.rate", "radio.band"],
    ),
    word(&["802.11b", "80211b", "11b"], "radio.rate = \"11 Mbit/s\"", &["radio.rate"]),
    word(&["mbps", "mb/s", "mbit", "mbits/s"], "the unit is Mbit/s: \"2 Mbit/s\"", &["radio.rate", "flow.rate"]),
    word(&["kbps", "kb/s", "kbit", "kbits/s"], "the unit is kbit/s: \"64 kbit/s\"", &["flow.rate"]),
    word(&["time", "stop_time", "simulation_time"], "duration = \"200 s\"", &["duration", "warmup"]),
    word(&["seed", "runs", "repetitions", "replications"], "sweep.seeds = 10, or --seeds 10", &["sweep.seeds"]),
    word(&["buffer", "queue_length", "ifq"], "radio.queue = 50, in packets", &["radio.queue", "link.queue"]),
    word(
        &["retries", "retry"],
        "mac.short_retry_limit and mac.long_retry_limit",
        &["mac.short_retry_limit", "mac.long_retry_limit"],
    ),
    word(
        &["rts", "cts", "rtscts"],
        "radio.rts_cts = false, or radio.rts_threshold = \"500 B\"",
        &["radio.rts_cts", "radio.rts_threshold"],
    ),
    word(&["mss", "mtu", "packet_size", "packetsize"], "flow.segment = 1460, bytes of payload", &["flow.segment"]),
    word(
        &["window", "cwnd", "maxcwnd"],
        "flow.max_window = 8, in segments",
        &["flow.max_window", "flow.transport.window"],
    ),
    word(
        &["distance", "range", "txrange"],
        "topology.spacing = \"200 m\"; how far nodes reach: radio.model, radio.carrier_sense_threshold",
        &["topology.spacing", "radio.model", "radio.carrier_sense_threshold"],
    ),
];

fn find(tried: &str) -> Option<&'static Word> {
    WORDS.iter().find(|word| word.tried.contains(&tried))
}

/// Returns the text to write in place of `tried`; `None` if the word is not known.
pub fn instead(tried: &str) -> Option<String> {
    let small = tried.trim().to_lowercase();
    // The word may be a transport in another spelling, such as "CUBIC" or "TCP AP".
    let name = small.replace([' ', '_'], "-");
    if name != tried && names::lookup(&name).is_some() {
        return Some(format!("flow.transport = \"{name}\""));
    }
    // The word may be a number with a unit.
    let word = find(&small).or_else(|| small.split_whitespace().rev().find_map(find))?;
    Some(word.write.to_owned())
}

/// Returns the keys that a word refers to.
pub fn keys(tried: &str) -> &'static [&'static str] {
    find(&tried.trim().to_lowercase()).map_or(&[], |word| word.keys)
}

/// Adds help to each problem that comes from a known word.
pub fn advise(refusal: &mut Refusal) {
    refusal.problems.iter_mut().for_each(|problem| {
        if let Some(write) = tried(problem).and_then(|word| instead(&word)) {
            problem.help = Some(format!("write {write}"));
        }
    });
}

/// Word that caused a problem: an unknown key, an unknown transport, or a text where something else
/// was expected.
fn tried(problem: &Problem) -> Option<String> {
    let message = problem.message.as_str();
    let quoted = |after: &str| {
        let rest = &message[message.find(after)? + after.len()..];
        Some(rest[..rest.find('"')?].to_owned())
    };
    if let Some((key, _)) = message.split_once(": unknown key") {
        return Some(key.rsplit('.').next().unwrap_or(key).to_owned());
    }
    quoted("there is no transport \"").or_else(|| quoted("found the string \""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::{Scenario, Source, keys};
    use std::path::Path;

    /// Returns the help of the first problem of a scenario.
    fn help(text: &str) -> String {
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let mut refusal = Scenario::read(source, Path::new("."), "test").unwrap_err();
        advise(&mut refusal);
        refusal.problems[0].help.clone().unwrap_or_default()
    }

    #[test]
    fn words_that_people_try_are_answered() {
        for (text, write) in [
            ("[[flow]]\ntransport = 'reno'\n", "flow.transport = \"newreno\""),
            ("[[flow]]\ntransport = 'CUBIC'\n", "flow.transport = \"cubic\""),
            ("[[flow]]\ntransport = 'TCP AP'\n", "flow.transport = \"tcp-ap\""),
            ("[[flow]]\ntraffic = 'bulk'\n", "flow.traffic = \"ftp\""),
            ("[[flow]]\ntraffic = 'web'\n", "flow.traffic = \"http\""),
            ("[radio]\nrate = '2 Mbps'\n[[flow]]\n", "Mbit/s"),
            ("[mac]\nprofile = '802.11n'\n[[flow]]\n", "mac.profile = \"ht\""),
            ("time = '9 s'\n[[flow]]\n", "duration = "),
        ] {
            assert!(help(text).contains(write), "{text}: {}", help(text));
        }
        assert!(help("[[flow]]\ntransport = 'newrena'\n").contains("newreno"), "a slip is told as before");
    }

    #[test]
    fn what_is_written_instead_exists() {
        let all: Vec<String> = keys::all().into_iter().map(|key| key.name).collect();
        for word in WORDS {
            assert!(word.keys.iter().all(|key| all.contains(&(*key).to_owned())), "{:?}", word.keys);
            assert!(word.tried.iter().all(|tried| *tried == tried.to_lowercase()), "{:?}", word.tried);
        }
        // What is measured is no key, and is told all the same.
        assert!(instead("p95").is_some_and(|told| told.contains("delay_p95_s")));
        assert!(instead("Starvation").is_some_and(|told| told.contains("who starved")));
        assert!(instead("setdest").is_some_and(|told| told.contains("topology.motion")));
        assert_eq!(instead("newreno"), None, "that is its name");
    }
}
