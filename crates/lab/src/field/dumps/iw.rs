//! `iw dev wlan0 station dump` of one node. The output of `iw dev` may stand before it and tells
//! the node's own addresses.
//!
//! The share of the frames that arrive is computed from the traffic since the association: (tx
//! packets - tx failed) / (tx packets + tx retries), that is, delivered packets over all tries. A
//! try is repeated because the frame or its acknowledgement was lost. Acknowledgements are short
//! and slow, so they are seldom lost if the frame arrives. The share is therefore that of the data
//! frames to the neighbour, and the other direction remains unknown. With fewer than 100 packets no
//! share is computed. "tx bitrate" is the bit rate of the last frame; "expected throughput" is what
//! the rate control expects the link to carry alone.

use super::{DataRate, Dump, LinkReport, Metric, OWN, Wrong};

/// Number of packets below which no share is computed.
const FEW: f64 = 100.0;

#[derive(Default)]
struct Station {
    line: usize,
    address: String,
    packets: f64,
    retries: f64,
    failed: f64,
    mbps: Option<f64>,
    rate: Option<DataRate>,
    is_down: bool,
    /// Line of the last field that could not be read, and the reason.
    wrong: Option<(usize, String)>,
}

impl Station {
    fn add_to(self, dump: &mut Dump) {
        if self.is_down {
            return;
        }
        let (tries, delivered) = (self.packets + self.retries, self.packets - self.failed);
        let share = (self.packets >= FEW).then(|| (delivered / tries).clamp(0.0, 1.0));
        let report = LinkReport { delivery: share, mbps: self.mbps, rate: self.rate, ..LinkReport::default() };
        let there = dump.report(OWN, &self.address, report);
        // All that is known about the other direction is that the neighbour is heard.
        let back = LinkReport { rate: self.rate, ..LinkReport::default() };
        let read = there.and_then(|()| dump.report(&self.address, OWN, back));
        dump.take(self.line, read);
        if let Some((line, why)) = self.wrong {
            dump.leave_out(line, why);
        }
    }

    /// Reads a field. A value that is not understood is noted in `wrong`.
    fn read(&mut self, line: usize, key: &str, value: &str) {
        let number = || {
            let digits: String = value.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect();
            let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| format!("{key}: expected a number, found \"{value}\""))
        };
        let read = match key {
            "tx packets" => number().map(|number| self.packets = number),
            "tx retries" => number().map(|number| self.retries = number),
            "tx failed" => number().map(|number| self.failed = number),
            "expected throughput" => number().map(|number| self.mbps = Some(number).filter(|number| *number > 0.0)),
            "tx bitrate" => {
                // The value is "(unknown)" before the first frame.
                let has_aggregates = value.contains("MCS");
                let rate = number().ok().filter(|mbps| *mbps > 0.0);
                self.rate = rate.map(|mbps| DataRate { mbps, has_aggregates });
                Ok(())
            }
            "mesh plink" => {
                self.is_down = value != "ESTAB";
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(why) = read {
            self.wrong = Some((line, why));
        }
    }
}

/// Reads the dump of one node.
pub fn read(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("iw", Metric::Etx);
    let own = dump.witness(OWN);
    let mut stations: Vec<Station> = Vec::new();
    for (line, row) in text.lines().enumerate() {
        let words: Vec<&str> = row.split_whitespace().collect();
        match words[..] {
            ["Station", address, ..] => {
                stations.push(Station { line: line + 1, address: address.to_owned(), ..Station::default() });
            }
            ["addr", address] => dump.also(own, address),
            _ => {}
        }
        if let (Some(station), Some((key, value))) = (stations.last_mut(), row.trim().split_once(':')) {
            station.read(line + 1, key, value.trim());
        }
    }
    if stations.is_empty() {
        let why = "`iw dev` shows no stations; give the output of `iw dev wlan0 station dump`, with the name of the mesh's interface";
        return Err(("1".to_owned(), why.to_owned()));
    }
    stations.into_iter().for_each(|station| station.add_to(&mut dump));
    Ok(dump)
}
