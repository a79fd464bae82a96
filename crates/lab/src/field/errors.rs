//! Errors of the predictions against measurements of real meshes. The figures are also in
//! docs/field.md.

/// Comparison of predictions with measurements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Error {
    /// Number of simultaneous flows.
    pub flows: usize,
    /// Smallest and largest number of hops.
    pub hops: (usize, usize),
    /// Smallest and largest error, in per cent of the measured value.
    pub per_cent: (i32, i32),
    /// Source of the measurement.
    pub source: &'static str,
    /// True if the bit rate of the links was known.
    pub is_rate_known: bool,
}

const CHAIN: &str = "a chain of 802.11a";
const TESTBED: &str = "the testbed of Battlemesh v10";

const fn error(flows: usize, hops: (usize, usize), per_cent: (i32, i32), source: &'static str) -> Error {
    Error { flows, hops, per_cent, source, is_rate_known: flows == 1 }
}

/// Errors for single flows as they were simulated: a flow alone, a flow in a pair, and a flow in a
/// pair beside one and beside four flows that offer 5 Mbit/s.
pub const SIMULATED: [Error; 6] = [
    error(1, (1, 1), (-1, -1), CHAIN),
    error(1, (2, 2), (31, 31), CHAIN),
    error(1, (3, 3), (4, 4), CHAIN),
    error(2, (3, 4), (-74, 118), TESTBED),
    error(3, (3, 4), (-100, 27), TESTBED),
    error(6, (3, 4), (-100, -100), TESTBED),
];

/// Measurements that are closest to a prediction for `flows` flows of at most `hops` hops. They
/// have as many flows, or else the next smaller number that was measured. For one flow only those
/// of at most `hops` hops count.
pub fn nearest(flows: usize, hops: usize) -> Vec<&'static Error> {
    let known = SIMULATED.iter().map(|error| error.flows).filter(|&known| known <= flows).max().unwrap_or(1);
    let of = |error: &&Error| error.flows == known && (known > 1 || error.hops.0 <= hops.max(1));
    SIMULATED.iter().filter(of).collect()
}

/// Errors to expect of a prediction, as one sentence for each measurement that is close to it.
pub fn words(flows: usize, hops: usize) -> String {
    let mut sentences = Vec::new();
    let mut most = (1, 0);
    for error in nearest(flows, hops) {
        most = (error.flows, error.hops.1.max(most.1));
        let (low, high) = error.per_cent;
        let range = if low == high { format!("{low:+} %") } else { format!("{low:+} % to {high:+} %") };
        let hops = match error.hops {
            (1, 1) => "one hop".to_owned(),
            (one, other) if one == other => format!("{one} hops"),
            (one, other) => format!("{one} and {other} hops"),
        };
        let flows = if error.flows == 1 { "one flow".to_owned() } else { format!("one of {} flows", error.flows) };
        let rate = if error.is_rate_known { "" } else { ", whose rates are not known" };
        sentences.push(format!("{flows} over {hops}, {}{rate}: {range}", error.source));
    }
    let beyond = match most {
        (known, _) if flows > known => format!(" No measurement has as many flows as here ({flows})."),
        (_, known) if hops > known => format!(" No measurement has as many hops as here ({hops})."),
        _ => String::new(),
    };
    format!("Error of such a simulation against measurements: {}.{beyond}", sentences.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_same_figures() {
        let page = include_str!("../../../../docs/field.md");
        // Rows of the page: hops, source, by metric, simulated.
        let rows: Vec<Vec<String>> = page
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
            .collect();
        let cells = |sources: &[&str], hops: &str| -> Vec<i32> {
            let numbers =
                |cell: &String| cell.split_whitespace().filter_map(|word| word.parse::<i32>().ok()).collect::<Vec<_>>();
            let of =
                |row: &&Vec<String>| row.len() == 4 && row[0].starts_with(hops) && sources.contains(&row[1].as_str());
            rows.iter().filter(of).flat_map(|row| numbers(&row[3])).collect()
        };
        for error in SIMULATED {
            let (sources, hops): (&[&str], String) = match error.flows {
                1 => (&["802.11a"], error.hops.0.to_string()),
                2 => (&["no background"], String::new()),
                3 => (&["one background flow"], String::new()),
                _ => (&["four background flows"], String::new()),
            };
            let found = cells(sources, &hops);
            let ends = (*found.iter().min().unwrap(), *found.iter().max().unwrap());
            assert_eq!(ends, error.per_cent, "{error:?}");
        }
    }

    #[test]
    fn what_nobody_measured_is_said() {
        assert_eq!(nearest(1, 2).len(), 2);
        assert!(
            words(1, 2).contains("one flow over 2 hops, a chain of 802.11a: +31 %")
                && !words(1, 3).contains("No measurement")
        );
        assert!(words(1, 5).ends_with("as many hops as here (5)."));
        assert!(words(2, 3).contains("one of 2 flows over 3 and 4 hops") && words(2, 3).contains("-74 % to +118 %"));
        assert!(words(4, 3).contains("one of 3 flows") && words(4, 3).contains("as many flows as here (4)"));
    }
}
