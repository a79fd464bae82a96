//! How fast the simulator is, beside ns-2 where that is installed: the same work in turn, A B A B, so that a machine whose
//! speed drifts does not favour either. Times are user + system CPU seconds as the operating system accounts for them.
//!
//! `cargo bench --bench speed` (option: `-- PAIRS`, 5 by default).

use nix::sys::resource::{UsageWho, getrusage};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SIMULATED_S: f64 = 2000.0;

/// Runs `command` to its end; its CPU seconds and what it printed.
fn cpu_seconds(command: &mut Command) -> Result<(f64, String), String> {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
        Ok::<f64, String>(seconds(usage.user_time()) + seconds(usage.system_time()))
    };
    let before = used()?;
    let output = command.stderr(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    Ok((used()? - before, String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

fn installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

fn main() -> Result<(), String> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pairs = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(5usize).max(1);
    let mut ours = Command::new(env!("CARGO_BIN_EXE_meshpace"));
    ours.args(["run", "--format", "json"]).arg(root.join("scenarios/bench/chain-7.toml"));
    let mut theirs = Command::new("ns");
    theirs.arg(root.join("validation/ns2/chain.tcl")).args(["hops=7", "window=3", "duration=2000"]);
    let compare = installed("ns");

    let (_, record) = cpu_seconds(&mut ours)?;
    let record: serde_json::Value = serde_json::from_str(&record).map_err(|error| error.to_string())?;
    let frames = record["frames"].as_f64().unwrap_or(f64::NAN);
    let kbps = record["aggregate_goodput_bps"].as_f64().unwrap_or(f64::NAN) / 1e3;
    println!(
        "chain of 7 hops, NewReno, window 3, AODV, {SIMULATED_S} simulated seconds: {frames} frames, {kbps:.1} kbit/s"
    );
    let (mut a, mut b, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 1..=pairs {
        let (mine, _) = cpu_seconds(&mut ours)?;
        a.push(mine);
        print!("pair {pair}: meshpace {mine:.3} s CPU");
        if compare {
            let (other, line) = cpu_seconds(&mut theirs)?;
            b.push(other);
            ratios.push(other / mine);
            let goodput = line.split_whitespace().find_map(|word| word.strip_prefix("goodput_kbps=")).unwrap_or("?");
            print!(", ns-2 {other:.3} s CPU ({goodput} kbit/s), ratio {:.2}", other / mine);
        }
        println!();
    }
    let mine = median(&mut a);
    println!(
        "meshpace: median {mine:.3} s, {:.0} simulated s per CPU s, {:.3} us per frame",
        SIMULATED_S / mine,
        mine * 1e6 / frames
    );
    if compare {
        let other = median(&mut b);
        println!("ns-2:     median {other:.3} s, {:.0} simulated s per CPU s", SIMULATED_S / other);
        println!("ratio ns-2 / meshpace, pair by pair: median {:.2}", median(&mut ratios));
    } else {
        println!("ns-2 is not installed (apt-get install ns2): no comparison");
    }
    Ok(())
}
