//! `meshpace reproduce --estimate`: estimates the time that a command would take, from short pieces
//! of its own runs.
//!
//! In every set of runs, some points are simulated for a short while. They are spread over the
//! points in the order of their expected cost. The estimate is the CPU time per simulated second,
//! times the simulated time of a whole run, times the number of runs. If a run ends with its last
//! batch, its length is computed from the measured rate of packets. Points that get more seeds
//! until their interval is narrow enough are counted with the seeds that they begin with.

use cpu_time::ThreadTime;
use meshpace_core::{Duration, Time};
use meshpace_lab::register::Runs;
use meshpace_scenario::Point;
use meshpace_scenario::estimate::Estimate;
use meshpace_sim::{Config, Outcome};
use serde_json::{Value, json};

/// Largest number of points of a set that are tried.
const TRIED: usize = 8;
/// Simulated time of a trial. The transfers are in progress for the larger part of it.
const TRY: Duration = Duration::from_millis(12_000);
const WINDOW: Duration = Duration::from_millis(1_000);
const UNDER_WAY: usize = 4;

/// Estimated cost of one set of runs.
#[derive(Debug)]
pub struct Price {
    id: String,
    runs: u64,
    tried: usize,
    cpu_s: f64,
}

/// Estimates the cost of `runs` by trying some of their points.
pub fn of(runs: &Runs) -> Result<Price, String> {
    let mut points: Vec<&Point> = runs.points().collect();
    points.sort_by(|a, b| Estimate::of(a).cpu_s.total_cmp(&Estimate::of(b).cpu_s));
    let tried = points.len().min(TRIED);
    let mut cpu_s = 0.0;
    for number in 0..tried {
        // The tried points are the middles of `tried` equal parts of the sorted list.
        let point = points[(2 * number + 1) * points.len() / (2 * tried)];
        cpu_s += run_cpu_s(point).map_err(|why| format!("{}: {why}", runs.id))?;
    }
    let number = points.len() as u64 * runs.scenario.seeds;
    Ok(Price { id: runs.id.clone(), runs: number, tried, cpu_s: number as f64 * cpu_s / tried.max(1) as f64 })
}

/// Estimated CPU time of a whole run of `point` with the first seed.
fn run_cpu_s(point: &Point) -> Result<f64, String> {
    let drawn = point.drawn(1).map_err(|why| why.to_string())?;
    let mut config = drawn.into_owned().config;
    let (whole, batches) = (config.duration, config.batches.take());
    let warmup_s = std::mem::replace(&mut config.warmup, Duration::ZERO).as_secs_f64();
    // Flows often begin when the routes have been found. The time before is measured separately,
    // because it has another cost.
    let latest = config.flows.iter().map(|flow| flow.start.since(Time::ZERO)).max().unwrap_or_default();
    let silent = latest.min(Duration(whole.0 / 2));
    let silent_cpu_s = if silent > Duration::ZERO { timed(&config, silent)?.0 } else { 0.0 };
    config.series = Some(WINDOW);
    let tried = (silent + TRY).min(whole);
    let (cpu_s, outcome) = timed(&config, tried)?;
    let under_way_s = tried.as_secs_f64() - silent.as_secs_f64();
    let simulated_s = match batches {
        None => whole.as_secs_f64(),
        Some(batches) => {
            let skipped = silent.0.div_ceil(WINDOW.0) as usize + UNDER_WAY;
            let windows = outcome.series.iter().flat_map(|series| series.windows.iter().skip(skipped));
            let (mut packets, mut seconds) = (0, 0.0);
            for flows in windows {
                packets += flows.iter().map(|flow| flow.segments_received).sum::<u64>();
                seconds += WINDOW.as_secs_f64();
            }
            let needed_s = (batches.packets * u64::from(batches.count)) as f64 * seconds / packets.max(1) as f64;
            (warmup_s + needed_s).min(whole.as_secs_f64())
        }
    };
    let rest_s = (simulated_s - silent.as_secs_f64()).max(0.0);
    Ok(silent_cpu_s + (cpu_s - silent_cpu_s).max(0.0) * rest_s / under_way_s)
}

/// Simulates the first `span` of `config`. Returns the CPU time in seconds, and the outcome.
fn timed(config: &Config, span: Duration) -> Result<(f64, Outcome), String> {
    let config = Config { duration: span, ..config.clone() };
    let begun = ThreadTime::try_now().map_err(|error| error.to_string())?;
    let outcome = meshpace_sim::run(&config, 1);
    let used = begun.try_elapsed().map_err(|error| error.to_string())?;
    Ok((used.as_secs_f64(), outcome))
}

/// Formats the prices as a table for people, the most expensive first.
pub fn table(mut prices: Vec<Price>, jobs: usize) -> String {
    prices.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
    let total: f64 = prices.iter().map(|price| price.cpu_s).sum();
    let runs: u64 = prices.iter().map(|price| price.runs).sum();
    let mut text = format!("{:<12} {:>7} {:>7} {:>10} {:>6}\n", "experiment", "runs", "tried", "CPU s", "share");
    for price in &prices {
        let share = 100.0 * price.cpu_s / total;
        text += &format!("{:<12} {:>7} {:>7} {:>10.1} {share:>5.1}%\n", price.id, price.runs, price.tried, price.cpu_s);
    }
    let minutes = total / jobs as f64 / 60.0;
    text + &format!("{:<12} {runs:>7} {:>7} {total:>10.1}  with {jobs} at a time about {minutes:.1} min\n", "all", "")
}

/// Formats the prices for programs.
pub fn json(prices: &[Price], jobs: usize) -> Value {
    let total: f64 = prices.iter().map(|price| price.cpu_s).sum();
    let each: Vec<Value> = prices
        .iter()
        .map(|price| json!({ "id": price.id, "runs": price.runs, "tried": price.tried, "cpu_s": price.cpu_s }))
        .collect();
    json!({ "experiments": each, "cpu_s": total, "jobs": jobs, "wall_s": total / jobs as f64 })
}
