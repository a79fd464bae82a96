//! EDCA, the access by category, compared with ns-3.44: saturated categories of one or several
//! stations around one receiver. `validation/ns3/edca.py` writes the reference values.

use super::scene::{How, categories, mbps};
use super::{NS3, Options, Point, Sample, Table, Verdict, how, point, words};
use crate::validate::rows;
use meshpace_core::Duration;
use meshpace_mesh::mac::Category;
use meshpace_mesh::{EdcaConfig, HtConfig};
use meshpace_sim::Config;
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    /// Kind of the case. "frames": one frame for each access; "txop-filled": TXOPs that leave no
    /// room for a CF-End; "txop" and "txop-rts": other TXOPs.
    set: String,
    /// Senders, each the number of a node and its category, separated by blanks: "1VO 2BE".
    senders: String,
    mcs: u8,
    ampdu: u8,
    rts: u8,
    /// Limit of a TXOP of video, us; the next field is that of voice.
    video_txop: u64,
    voice_txop: u64,
    warmup: u64,
    duration: u64,
    runs: usize,
    /// Goodput of each flow, Mbit/s; the next field is half the 95 % interval of each. Both are
    /// separated by blanks.
    goodput: String,
    ci95: String,
    /// Half the 95 % interval of the sum.
    sum_ci95: f64,
}

fn table() -> Vec<Row> {
    rows("ns3/ht-edca", include_str!("../../../../../validation/reference/ns3/ht-edca.csv"))
}

fn numbers(text: &str) -> impl Iterator<Item = f64> + '_ {
    text.split(' ').map(|word| word.parse().unwrap_or_else(|_| panic!("embedded reference: {word}")))
}

impl Row {
    fn senders(&self) -> Vec<(u16, Category)> {
        let sender = |word: &str| {
            let (node, category) = word.split_at_checked(word.len().checked_sub(2)?)?;
            let category = match category {
                "BK" => Category::Background,
                "BE" => Category::BestEffort,
                "VI" => Category::Video,
                "VO" => Category::Voice,
                _ => return None,
            };
            Some((node.parse().ok()?, category))
        };
        self.senders
            .split(' ')
            .map(|word| sender(word).unwrap_or_else(|| panic!("embedded reference: {word}")))
            .collect()
    }

    fn case(&self) -> String {
        let limits = match (self.video_txop, self.voice_txop) {
            (0, 0) => String::new(),
            (video, voice) => format!(", TXOP {video} and {voice} us"),
        };
        format!("{}, {}{limits}", self.senders, words(self.mcs, self.ampdu == 1, self.rts == 1, true))
    }

    fn config(&self) -> Config {
        let limit = Duration::from_micros;
        let edca = EdcaConfig { video_txop: limit(self.video_txop), voice_txop: limit(self.voice_txop) };
        let how = how(self.mcs, self.ampdu == 1, self.rts == 1, true);
        let ht = how.ht.map(|ht| HtConfig { edca: Some(edca), ..ht });
        // Eight attempts correspond to ns-3's limit of 7 with one more backoff, as in the chains.
        categories(How { ht, retries: 8, ..how }, &self.senders(), self.duration - self.warmup)
    }

    /// Goodput of each flow in ns-3.
    fn reference(&self) -> Vec<Sample> {
        let pairs = numbers(&self.goodput).zip(numbers(&self.ci95));
        pairs.map(|(mean, half_width)| Sample { mean, half_width, n: self.runs }).collect()
    }

    /// Returns whether the row has a rule. It has none if ns-3 ends a TXOP with a CF-End, protects
    /// it by a single RTS, or lets other stations wait for its limit. docs/ht.md computes the
    /// effect of these differences.
    fn is_judged(&self) -> bool {
        match self.set.as_str() {
            "frames" => true,
            "txop-filled" => self.senders().windows(2).all(|pair| pair[0].0 == pair[1].0),
            _ => false,
        }
    }

    fn reference_sum(&self) -> Sample {
        Sample { mean: numbers(&self.goodput).sum(), half_width: self.sum_ci95, n: self.runs }
    }
}

/// Compares the share of a flow: within 5 % or joined.
fn share(case: String, reference: Sample, ours: Sample, is_judged: bool) -> Point {
    let met = ours.error_pct(&reference).abs() <= 5.0 || ours.joins(&reference);
    let (verdict, rule) = if is_judged { (met.into(), "5 % or joined") } else { (Verdict::Shown, "") };
    Point { case, reference: Some(reference), ours, rule: rule.into(), verdict }
}

/// Compares the sum of the flows, and the share of each flow.
pub fn compare(options: &Options) -> Vec<Table> {
    let (mut sums, mut shares) = (Vec::new(), Vec::new());
    for row in options.sampled(table(), &[0, 8, 34, 41]) {
        let runs: Vec<Vec<f64>> = options.runs(&row.config(), options.seeds(row.runs)).iter().map(mbps).collect();
        let totals: Vec<f64> = runs.iter().map(|run| run.iter().sum()).collect();
        sums.push(point(row.case(), row.reference_sum(), Sample::of(&totals), row.is_judged().then_some(3.0)));
        let references = row.reference();
        if references.len() > 1 {
            for ((place, reference), sender) in references.into_iter().enumerate().zip(row.senders.split(' ')) {
                let ours: Vec<f64> = runs.iter().map(|run| run[place]).collect();
                shares.push(share(
                    format!("{sender} of {}", row.case()),
                    reference,
                    Sample::of(&ours),
                    row.is_judged(),
                ));
            }
        }
    }
    vec![
        Table {
            name: "ht_edca",
            title: "802.11n: categories of access, the sum of the flows",
            source: NS3,
            unit: "Mbit/s",
            rule: "`ns3/ht-edca.csv`. Numbers are nodes, VO, VI, BE and BK their saturated categories. Within 3 %; TXOPs in which ns-3 sends what we do not are shown (docs/ht.md).",
            points: sums,
        },
        Table {
            name: "ht_edca_shares",
            title: "802.11n: categories of access, the share of each",
            source: NS3,
            unit: "Mbit/s",
            rule: "The same runs: each flow within 5 % or joined.",
            points: shares,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_share_as_they_do_in_ns3() {
        // Two runs of a station with two categories, of two stations, and of a station with TXOPs.
        for (senders, video_txop) in [("1VI 1BE", 0), ("1VO 2VI", 0), ("1VI 1BE", 2_880)] {
            let one_mpdu = |row: &&Row| row.senders == senders && (row.ampdu, row.rts) == (0, 0);
            let table = table();
            let row = table.iter().filter(one_mpdu).find(|row| row.video_txop == video_txop).unwrap();
            let config = row.config();
            let runs: Vec<Vec<f64>> = [1, 2].map(|seed| mbps(&meshpace_sim::run(&config, seed))).to_vec();
            let sum = Sample::of(&runs.iter().map(|run| run.iter().sum()).collect::<Vec<f64>>());
            let error = sum.error_pct(&row.reference_sum());
            assert!(error.abs() <= 3.0, "{}: {runs:?}, {error} %", row.case());
            for (place, reference) in row.reference().into_iter().enumerate() {
                let ours = Sample::of(&runs.iter().map(|run| run[place]).collect::<Vec<f64>>());
                let point = share(row.case(), reference, ours, row.is_judged());
                assert_eq!(point.verdict, Verdict::Met, "{point:?}");
            }
        }
    }
}
