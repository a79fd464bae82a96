//! `iw dev wlan0 station dump` of one node, also with the output of `iw dev` before it, which tells the node's own address.
//!
//! Tries for a packet are (tx packets + tx retries) / (tx packets - tx failed): the ETX of the link, both ways, as the traffic since the association met it. Of
//! fewer than 100 packets nothing is said of loss. "expected throughput" is what the rate control expects the link to carry alone.

use super::{Dump, Heard, Metric, OWN, Wrong};

/// Packets below which a share says nothing.
const FEW: f64 = 100.0;

#[derive(Default)]
struct Station {
    address: String,
    packets: Option<f64>,
    retries: f64,
    failed: f64,
    mbps: Option<f64>,
    is_down: bool,
}

impl Station {
    fn add_to(self, dump: &mut Dump) -> Result<(), String> {
        if self.is_down {
            return Ok(());
        }
        let delivered = self.packets.unwrap_or(0.0) - self.failed;
        let tries = (self.packets.unwrap_or(0.0) + self.retries) / delivered;
        let share = (self.packets.unwrap_or(0.0) >= FEW && delivered > 0.0).then(|| tries.max(1.0).sqrt().recip());
        let heard = || Heard { delivery: share, mbps: self.mbps, ..Heard::default() };
        dump.heard(OWN, &self.address, heard())?;
        dump.heard(&self.address, OWN, Heard { mbps: None, ..heard() })
    }
}

/// The dump of one node.
pub fn read(text: &str) -> Result<Dump, Wrong> {
    let mut dump = Dump::of("iw", Metric::Etx);
    let own = dump.witness(OWN);
    let mut station: Option<Station> = None;
    for (line, row) in text.lines().enumerate() {
        let at = |why: String| ((line + 1).to_string(), why);
        let words: Vec<&str> = row.split_whitespace().collect();
        match words[..] {
            ["Station", address, ..] => {
                if let Some(known) = station.replace(Station { address: address.to_owned(), ..Station::default() }) {
                    known.add_to(&mut dump).map_err(at)?;
                }
            }
            ["addr", address] => dump.also(own, address),
            _ => {}
        }
        let Some(known) = &mut station else { continue };
        let Some((key, value)) = row.trim().split_once(':') else { continue };
        let value = value.trim();
        let number = || {
            let digits: String = value.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '.').collect();
            let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| at(format!("{key}: expected a number, found \"{value}\"")))
        };
        match key {
            "tx packets" => known.packets = Some(number()?),
            "tx retries" => known.retries = number()?,
            "tx failed" => known.failed = number()?,
            "expected throughput" => known.mbps = Some(number()?),
            "mesh plink" => known.is_down = value != "ESTAB",
            _ => {}
        }
    }
    match station {
        Some(known) => known.add_to(&mut dump).map_err(|why| ("1".to_owned(), why))?,
        None => {
            let why = "`iw dev` tells of no station: give the output of `iw dev wlan0 station dump`, with the name of the mesh's interface";
            return Err(("1".to_owned(), why.to_owned()));
        }
    }
    Ok(dump)
}
