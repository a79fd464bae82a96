//! Counts in a file, which a later invocation continues.

use super::Kind;
use meshpace_live::chaos::faults::Fault;
use meshpace_live::chaos::hostile::attack::Attack;
use meshpace_live::chaos::{Broken, Found, Run, Spread, Tally};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file.
const FILE: &str = "chaos.json";

/// Format of the file. A file with another format comes from another version of the program.
const FORMAT: u64 = 1;

/// Counts so far, and the seed with which to continue.
pub struct Kept {
    file: Option<PathBuf>,
    /// Kind of all runs that are counted.
    pub kind: Kind,
    /// First seed that is counted.
    pub from: u64,
    /// Next seed to run.
    pub next: u64,
    /// Counts of all runs so far.
    pub tally: Tally,
}

impl Kept {
    /// Opens the counts in this directory. If it has none, counting begins with the seed `from`.
    /// Counts that are there must be of the same kind of runs.
    ///
    /// # Errors
    ///
    /// A sentence, if the file cannot be read, or if it is of another kind or format.
    pub fn open(directory: Option<&Path>, from: u64, kind: Kind) -> Result<Kept, String> {
        let empty = Kept { file: None, kind, from, next: from, tally: Tally::default() };
        let Some(directory) = directory else { return Ok(empty) };
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let file = directory.join(FILE);
        if !file.exists() {
            return Ok(Kept { file: Some(file), ..empty });
        }
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let value: Option<Value> = serde_json::from_str(&text).ok();
        let read = value.filter(|value| value["format"] == json!(FORMAT) && kind_of(value) == kind).map(|value| {
            let (from, next) = (number(&value["from"]), number(&value["next"]));
            Kept { file: Some(file.clone()), kind, from, next, tally: tally(&value) }
        });
        read.ok_or_else(|| {
            let command = format!("meshpace dev chaos{}", kind.option());
            format!("{}: not what `{command}` of this version has counted; choose another directory", file.display())
        })
    }

    /// Writes the counts into the file, if there is a directory.
    ///
    /// # Errors
    ///
    /// A sentence, if the file cannot be written.
    pub fn write(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let fresh = file.with_extension("new");
        let text = format!("{}\n", self.json());
        let written = fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, file));
        written.map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Returns the counts as a JSON object.
    pub fn json(&self) -> Value {
        let tally = &self.tally;
        let found: Vec<Value> = tally.found.iter().map(|found| self.found_json(found)).collect();
        json!({
            "format": FORMAT,
            "radio": self.kind == Kind::Radio,
            "hostile": self.kind == Kind::Hostile,
            "from": self.from,
            "next": self.next,
            "seeds": tally.runs,
            "virtual_hours": tally.virtual_ms as f64 / 3.6e6,
            "virtual_ms": tally.virtual_ms,
            "packets": tally.packets,
            "packets_lost": tally.lost,
            "streams": tally.streams,
            "bytes_read": tally.bytes,
            "datagrams_read": tally.datagrams,
            "ends_failed": tally.failures,
            "median_virtual_s": tally.times.median() as f64 / 1e3,
            "median_packets": tally.sent.median(),
            "median_faults": tally.suffered.median(),
            "longest_wait_s": tally.waits.greatest() as f64 / 1e3,
            "broken": tally.broken,
            "found": found,
            "faults": counts(&tally.faults),
            "attacks": counts(&tally.attacks),
            "moments": counts(&tally.moments),
            "hits": counts(&tally.hits),
            "never": tally.missing(),
            "spread": {
                "virtual_ms": spread_json(&tally.times),
                "packets": spread_json(&tally.sent),
                "faults": spread_json(&tally.suffered),
                "wait_ms": spread_json(&tally.waits),
            },
        })
    }

    /// Returns the command that runs a seed again.
    pub fn again(&self, seed: u64) -> String {
        format!("meshpace dev chaos --seed {seed}{}", self.kind.option())
    }

    fn found_json(&self, found: &Found) -> Value {
        let Found { seed, broken } = found;
        let command = self.again(*seed);
        json!({ "seed": seed, "invariant": broken.invariant, "detail": broken.detail, "command": command })
    }
}

/// Kind of the runs that were counted. Older files do not name the kind if the runs were over the
/// wire.
fn kind_of(value: &Value) -> Kind {
    match (&value["radio"], &value["hostile"]) {
        (Value::Bool(true), _) => Kind::Radio,
        (_, Value::Bool(true)) => Kind::Hostile,
        _ => Kind::Wire,
    }
}

fn counts(all: &BTreeMap<String, u64>) -> Value {
    Value::Object(all.iter().map(|(name, count)| (name.clone(), json!(count))).collect::<Map<_, _>>())
}

fn spread_json(spread: &Spread) -> Value {
    Value::Array(spread.0.iter().map(|(value, count)| json!([value, count])).collect())
}

/// Returns the results of one run as a JSON object.
pub fn run_json(run: &Run, kind: Kind) -> Value {
    let attacks = Attack::ALL.iter().zip(&run.attacks).filter(|(_, count)| **count > 0);
    let attacks: Map<String, Value> = attacks.map(|(attack, count)| (attack.name().to_owned(), json!(count))).collect();
    let faults = Fault::ALL.iter().zip(&run.faults).filter(|(_, count)| **count > 0);
    let faults: Map<String, Value> = faults.map(|(fault, count)| (fault.name().to_owned(), json!(count))).collect();
    json!({
        "format": FORMAT,
        "radio": kind == Kind::Radio,
        "hostile": kind == Kind::Hostile,
        "seed": run.seed,
        "mood": format!("{:?}", run.mood).to_lowercase(),
        "virtual_s": run.virtual_time.as_secs_f64(),
        "packets": run.packets,
        "packets_lost": run.lost,
        "streams": run.streams,
        "bytes_read": run.bytes,
        "datagrams_read": run.datagrams,
        "ends_failed": run.failures,
        "faults": faults,
        "attacks": attacks,
        "invariant": run.broken.as_ref().map(|broken| &broken.invariant),
        "detail": run.broken.as_ref().map(|broken| &broken.detail),
        "trail": run.trail,
    })
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn named(value: &Value) -> BTreeMap<String, u64> {
    value.as_object().into_iter().flatten().map(|(name, count)| (name.clone(), number(count))).collect()
}

fn spread(value: &Value) -> Spread {
    Spread(value.as_array().into_iter().flatten().map(|pair| (number(&pair[0]), number(&pair[1]))).collect())
}

fn tally(value: &Value) -> Tally {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = |one: &Value| Found {
        seed: number(&one["seed"]),
        broken: Broken { invariant: text(&one["invariant"]), detail: text(&one["detail"]) },
    };
    Tally {
        runs: number(&value["seeds"]),
        virtual_ms: number(&value["virtual_ms"]),
        packets: number(&value["packets"]),
        lost: number(&value["packets_lost"]),
        streams: number(&value["streams"]),
        bytes: number(&value["bytes_read"]),
        datagrams: number(&value["datagrams_read"]),
        failures: number(&value["ends_failed"]),
        faults: named(&value["faults"]),
        attacks: named(&value["attacks"]),
        moments: named(&value["moments"]),
        hits: named(&value["hits"]),
        times: spread(&value["spread"]["virtual_ms"]),
        sent: spread(&value["spread"]["packets"]),
        suffered: spread(&value["spread"]["faults"]),
        waits: spread(&value["spread"]["wait_ms"]),
        broken: number(&value["broken"]),
        found: value["found"].as_array().into_iter().flatten().map(found).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_live::chaos::Trail;

    fn assert_kept(kind: Kind, others: [Kind; 2]) {
        let directory = tempfile::tempdir().unwrap();
        let mut kept = Kept::open(Some(directory.path()), 3, kind).unwrap();
        for seed in 3..8 {
            kept.tally.add(&kind.run(seed, Trail::Nothing));
        }
        kept.tally.broken = 1;
        kept.tally.found.push(Found { seed: 4, broken: Broken { invariant: "a".into(), detail: "b".into() } });
        kept.next = 8;
        kept.write().unwrap();
        let again = Kept::open(Some(directory.path()), 0, kind).unwrap();
        assert_eq!((again.from, again.next, &again.tally), (3, 8, &kept.tally));
        for other in others {
            assert!(Kept::open(Some(directory.path()), 0, other).is_err(), "{other:?} is another matter");
        }
        fs::write(directory.path().join(FILE), "{}").unwrap();
        assert!(Kept::open(Some(directory.path()), 0, kind).is_err());
    }

    #[test]
    fn what_was_kept_is_what_was_counted() {
        assert_kept(Kind::Wire, [Kind::Radio, Kind::Hostile]);
        assert_kept(Kind::Hostile, [Kind::Wire, Kind::Radio]);
    }
}
