//! Computes the output of a command, and the cells of tables from it.

use super::pages::Table;
use super::spec::{Place, Simulated};
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::{Campaign, Run, Work};
use meshpace_lab::record::{Record, line};
use meshpace_lab::selection::Selection;
use meshpace_lab::session::{Observer, Session};
use meshpace_lab::statistics::estimate;
use meshpace_lab::variants::sweep;
use meshpace_scenario::{Scenario, Source};
use meshpace_testing::generated::root;
use serde_json::Value;
use std::borrow::Borrow;
use std::io;
use std::sync::Arc;

/// The records of a command.
pub struct Computed(Vec<Line>);

/// A record, with its line as JSON, because a page names fields by their paths.
#[derive(Clone)]
struct Line {
    record: Record,
    value: Value,
}

impl Line {
    fn read(text: &str) -> Line {
        Line { record: Record::read(text).unwrap(), value: line::open(text).unwrap() }
    }
}

impl Borrow<Record> for Line {
    fn borrow(&self) -> &Record {
        &self.record
    }
}

struct Nobody;

impl Observer for Nobody {
    fn on_kept(&mut self, _: &mut Session, _: &[Run], _: Work) -> io::Result<()> {
        Ok(())
    }
}

impl Computed {
    /// Carries out the runs of `meshpace run FILE [--set KEY=VALUE] [--sweep KEY=A,B] [--seed N]
    /// [--seeds N]`.
    pub fn of(command: &str) -> Computed {
        let campaign = Arc::new(campaign(command).unwrap_or_else(|why| panic!("{command}: {why}")));
        let mut session = Session::in_memory(Arc::clone(&campaign));
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let stop = Arc::default();
        let failed = session.make(campaign.all().collect(), &mut Threads::new(jobs, &stop), &mut Nobody);
        assert_eq!(failed.ok(), Some(0), "{command}: runs failed");
        let lines = session.lines().unwrap();
        Computed(lines.iter().map(|text| Line::read(text)).collect())
    }
}

fn campaign(command: &str) -> Result<Campaign, String> {
    let words = words(command);
    let mut words = words.iter().map(String::as_str);
    if (words.next(), words.next()) != (Some("meshpace"), Some("run")) {
        return Err("expected meshpace run".to_owned());
    }
    let file = words.next().ok_or("expected a file")?;
    let (mut sets, mut first_seed, mut seeds) = (Vec::new(), 1, None);
    while let Some(option) = words.next() {
        let value = words.next().ok_or("expected a value")?;
        match option {
            "--set" => sets.push(value.to_owned()),
            "--sweep" => sets.push(sweep(value)?),
            "--seed" => first_seed = value.parse().map_err(|_| value.to_owned())?,
            "--seeds" => seeds = Some(value.parse().map_err(|_| value.to_owned())?),
            other => return Err(format!("{other} is not known here")),
        }
    }
    let path = root().join(file);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{file}: {error}"))?;
    let directory = path.parent().ok_or("a file has a folder")?;
    let scenario = Scenario::read(Source { name: file.to_owned(), text, sets }, directory, file);
    let scenario = scenario.map_err(|refusal| refusal.render(false))?;
    let seeds = seeds.unwrap_or(scenario.seeds);
    Ok(Campaign { scenario, first_seed, seeds })
}

/// Words of a command. Text in single quotes is one word.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for letter in command.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().unwrap().push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Fills the computed cells of a table. Returns their number.
pub fn fill(spec: &Simulated, computed: &Computed, table: &mut Table) -> Result<usize, String> {
    let mut count = 0;
    for row in &mut table.rows {
        let label = row[0].trim_matches(['*', '`']);
        let place = spec.rows.get(label).or_else(|| spec.rows.get(&row[0])).ok_or_else(|| format!("no row {label}"))?;
        if place.is_apart {
            continue;
        }
        if row.len() != spec.columns.len() + 1 {
            return Err(format!("{} columns, and {} are described", row.len() - 1, spec.columns.len()));
        }
        for (cell, column) in row[1..].iter_mut().zip(&spec.columns).filter(|(_, column)| !column.is_apart) {
            let show = column.show.as_deref().or(place.show.as_deref()).unwrap_or(&spec.show);
            *cell = shown(show, &selected(computed, place, column)?)?;
            count += 1;
        }
    }
    Ok(count)
}

fn selected(computed: &Computed, row: &Place, column: &Place) -> Result<Vec<Value>, String> {
    let conditions: Vec<String> = row.conditions.iter().chain(&column.conditions).cloned().collect();
    let lines = Selection::parse(&conditions)?.of(computed.0.clone())?;
    Ok(lines.into_iter().map(|line| line.value).collect())
}

/// Text of a cell, in which each `{...}` stands for a field of the records.
fn shown(show: &str, records: &[Value]) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = show;
    while let Some((before, behind)) = rest.split_once('{') {
        let (field, behind) = behind.split_once('}').ok_or("a { without }")?;
        text = text + before + &quantity(field, records)?;
        rest = behind;
    }
    Ok(text + rest)
}

/// Evaluates `FIELD UNIT DIGITS` or `FIELD UNIT DIGITS ±`: the mean of a field, with the half width
/// of its interval. The unit is `k` for thousands, `%` for per cent, or `-` for none.
/// `flows.*.FIELD` stands for the means of all flows, separated by commas, and `dead` for the
/// number of runs in which a flow has no byte.
fn quantity(words: &str, records: &[Value]) -> Result<String, String> {
    if words == "dead" {
        let is_dead = |record: &&Value| flows(record).iter().any(|flow| flow["delivered_bytes"] == 0);
        return Ok(records.iter().filter(is_dead).count().to_string());
    }
    let words: Vec<&str> = words.split(' ').collect();
    let [field, unit, digits, ref more @ ..] = words[..] else { return Err(format!("{words:?}: no quantity")) };
    let factor = match unit {
        "k" => 1e-3,
        "%" => 100.0,
        _ => 1.0,
    };
    let digits: usize = digits.parse().map_err(|_| format!("{digits}: digits?"))?;
    let of = |pick: &dyn Fn(&Value) -> Option<f64>| -> Result<String, String> {
        let values = records.iter().map(|record| pick(record).map(|value| factor * value));
        let values: Vec<f64> = values.collect::<Option<_>>().ok_or_else(|| format!("not every record has {field}"))?;
        let found = estimate(&values, 0.95);
        let mean = format!("{:.digits$}", found.mean);
        Ok(if more == ["±"] { format!("{mean} ± {:.digits$}", found.half_width) } else { mean })
    };
    match field.strip_prefix("flows.*.") {
        None => of(&|record| at(record, field)),
        Some(field) => {
            let count = records.first().map_or(0, |record| flows(record).len());
            let each = (0..count).map(|flow| of(&|record| at(&flows(record)[flow], field)));
            Ok(each.collect::<Result<Vec<_>, _>>()?.join(", "))
        }
    }
}

fn flows(record: &Value) -> &[Value] {
    record["flows"].as_array().map_or(&[], Vec::as_slice)
}

/// Value of a field of a record, by its path.
fn at(record: &Value, path: &str) -> Option<f64> {
    path.split('.').try_fold(record, |value, part| value.get(part))?.as_f64()
}

#[test]
fn cells_are_means_with_intervals_in_their_units() {
    let record = |goodput: f64, first: u64| serde_json::json!({"g": goodput, "index": 0.125, "flows": [{"delivered_bytes": first, "g": goodput}, {"delivered_bytes": 9, "g": 1000.0}]});
    // Three values with mean 2 and deviation 1: the half width is 4.303 / sqrt(3) = 2.484.
    let records = [record(1000.0, 0), record(2000.0, 5), record(3000.0, 0)];
    assert_eq!(shown("{g k 1 ±}, {index % 1} %", &records).as_deref(), Ok("2.0 ± 2.5, 12.5 %"));
    assert_eq!(shown("{flows.*.g - 0}; {dead}", &records).as_deref(), Ok("2000, 1000; 2"));
    assert!(shown("{h k 1}", &records).is_err() && shown("{g k}", &records).is_err());
    assert_eq!(words("meshpace run f.toml --set 'a={ b = 1 }'"), ["meshpace", "run", "f.toml", "--set", "a={ b = 1 }"]);
}
