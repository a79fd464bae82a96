//! Labels of the transports in reports.

/// Name of each transport and its label.
const LABELS: &[(&str, &str)] = &[
    ("newreno", "NewReno"),
    ("newreno+dyn-delack", "NewReno + dynamic delayed ACK"),
    ("newreno+delack", "NewReno + delayed ACK"),
    ("newreno+ecn", "NewReno with ECN"),
    ("newreno-cwl", "NewReno, best window limit"),
    ("cwl", "NewReno, window limit by hops"),
    ("tcp-2", "TCP-2"),
    ("tcp-3", "TCP-3"),
    ("tcp-ap", "TCP-AP (paper)"),
    ("tcp-ap+dyn-delack", "TCP-AP (paper) + dynamic delayed ACK"),
    ("tcp-ap+delack", "TCP-AP (paper) + delayed ACK"),
    ("tcp-ap-oid", "TCP-AP, out-of-interference delay"),
    ("tcp-ap-released", "TCP-AP (released agent)"),
    ("tcp-ap-released+delack", "TCP-AP (released agent) + delayed ACK"),
    ("tcp-ap-released+dyn-delack", "TCP-AP (released agent) + dynamic delayed ACK"),
    ("tcp-ap-released-karn", "TCP-AP (released agent, samples as printed)"),
    ("tcp-ap-sync", "TCP-AP, synchronized clocks"),
    ("tcp-ap-sync+dyn-delack", "TCP-AP, synchronized clocks + dynamic delayed ACK"),
    ("udp-paced", "UDP, best rate"),
    ("udp", "UDP"),
    ("udp+llap", "UDP over LLAP"),
    ("tpa-2", "TPA-2"),
    ("tpa-3", "TPA-3"),
    ("tpa*-3", "TPA*-3"),
    ("tpa*-2", "TPA*-2"),
    ("tpa-ap-2", "TPA-AP-2"),
    ("tpa-ap-3", "TPA-AP-3"),
    ("tpa*-ap-3", "TPA*-AP-3"),
    ("tpa*-ap-2", "TPA*-AP-2"),
    ("newreno+llap", "NewReno over LLAP"),
    ("tcp-ap+llap", "TCP-AP over LLAP"),
    ("dcc", "DCC"),
    ("few", "TCP-FeW"),
    ("lred", "Link RED with pacing"),
    ("dack", "Delayed ACK"),
    ("cubic", "CUBIC"),
    ("newreno+tack", "NewReno with TACK"),
    ("tcp-daa", "TCP-DAA"),
    ("copa", "Copa"),
    ("bbr", "BBR"),
    ("flush", "Flush"),
    ("paced-pairs", "Paced pairs"),
    ("paced-pairs-8", "Paced pairs, at most 8"),
    ("quiet-train", "Quiet trains"),
    ("quiet-train-solo", "Quiet trains, alone"),
];

/// Label of the transport called `name`, for people. The name itself if it has no label.
pub fn label(name: &str) -> &str {
    LABELS.iter().find(|(other, _)| *other == name).map_or(name, |(_, label)| label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_transports_are_called_the_same() {
        for (number, (name, label)) in LABELS.iter().enumerate() {
            assert!(LABELS[..number].iter().all(|(other, called)| other != name && called != label), "{name}");
        }
    }
}
