//! Check before a campaign starts: does it take days, or more memory than the machine has?

use meshpace_lab::campaign::Campaign;
use meshpace_scenario::estimate::Estimate;

/// Longest time of a campaign without a warning, hours.
const PATIENCE_H: f64 = 24.0;

/// Returns the reason why the campaign should not be started on `jobs` threads without
/// confirmation; `None` if there is no such reason.
pub fn too_much(campaign: &Campaign, jobs: usize) -> Option<String> {
    judge(&campaign.estimates(), campaign.seeds, jobs.min(campaign.runs()), available_bytes())
}

fn judge(estimates: &[Estimate], seeds: u64, jobs: usize, available: Option<f64>) -> Option<String> {
    let mut bytes: Vec<f64> = estimates.iter().map(|estimate| estimate.bytes).collect();
    bytes.sort_by(|a, b| b.total_cmp(a));
    // The estimate assumes that the points that need the most memory run at the same time, each
    // with several seeds.
    let at_once: f64 = bytes.iter().flat_map(|&bytes| (0..seeds).map(move |_| bytes)).take(jobs).sum();
    if let Some(available) = available.filter(|&available| at_once > available) {
        return Some(format!(
            "this needs about {:.1} GB of memory with {jobs} run{} at a time, but only {:.1} GB are free",
            at_once / 1e9,
            if jobs == 1 { "" } else { "s" },
            available / 1e9
        ));
    }
    let cpu_s: f64 = estimates.iter().map(|estimate| estimate.cpu_s).sum();
    let hours = cpu_s * seeds as f64 / 3600.0 / jobs.max(1) as f64;
    (hours > PATIENCE_H).then(|| {
        format!(
            "this takes about {:.1} days with {jobs} run{} at a time",
            hours / 24.0,
            if jobs == 1 { "" } else { "s" }
        )
    })
}

/// Available memory, bytes; `None` if the system does not report it.
fn available_bytes() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map(|kib: f64| kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_counts_for_the_runs_that_are_there_at_once() {
        let estimates = [1e9, 4e9, 2e9].map(|bytes| Estimate { cpu_s: 1.0, bytes });
        assert_eq!(judge(&estimates, 1, 2, Some(6.5e9)), None);
        let why = judge(&estimates, 1, 2, Some(5.5e9)).expect("4 GB and 2 GB side by side");
        assert!(why.contains("6.0 GB") && why.contains("5.5 GB"), "{why}");
        assert!(judge(&estimates, 2, 2, Some(6.5e9)).is_some(), "two seeds of the largest");
        assert_eq!(judge(&estimates, 2, 2, None), None);
    }

    #[test]
    fn days_are_told() {
        let estimates = [Estimate { cpu_s: 3600.0, bytes: 1e6 }];
        assert_eq!(judge(&estimates, 48, 2, None), None, "a day on two threads");
        let why = judge(&estimates, 96, 2, None).expect("two days");
        assert!(why.contains("2.0 days"), "{why}");
    }
}
