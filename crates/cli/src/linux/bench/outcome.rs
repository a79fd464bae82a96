//! Measurements of one workload, as a JSON object and as lines for people.

use super::pairs::{Series, median};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Measurements of one workload, to which those of other simulators are added.
pub struct Outcome {
    record: Value,
    text: String,
    frames_per_s: f64,
}

impl Outcome {
    /// Creates the outcome of our own runs. `cpu_s` is the median CPU time of a run, and `last` is
    /// the record that the last run printed.
    pub fn new(name: &str, nodes: usize, flows: usize, simulated_s: f64, cpu_s: f64, last: &Value) -> Self {
        let frames = last["frames"].as_f64().unwrap_or(f64::NAN);
        let sensed = last["sensed"].as_f64().unwrap_or(f64::NAN);
        let broadcasts = last["broadcasts"].as_f64().unwrap_or(f64::NAN);
        let goodput_bps = last["goodput_bps"].as_f64().unwrap_or(f64::NAN);
        let record = json!({
            "workload": name,
            "nodes": nodes,
            "flows": flows,
            "simulated_s": simulated_s,
            "frames": last["frames"],
            "broadcasts": last["broadcasts"],
            "sensed": last["sensed"],
            "cpu_s": cpu_s,
            "frames_per_cpu_s": frames / cpu_s,
            "simulated_s_per_cpu_s": simulated_s / cpu_s,
            "peak_kib": last["peak_kib"],
            "goodput_bps": goodput_bps,
            "fingerprint": last["fingerprint"],
        });
        let text = format!(
            "{name}: {nodes} nodes, {flows} flows, {simulated_s} simulated s, {frames} frames, {:.1} kbit/s, fingerprint {}\n  \
             {cpu_s:.3} s CPU, {:.2} million frames/s, {:.1} simulated s per CPU s, {:.2} us per frame, {:.1} MiB\n  \
             a frame is sensed by {:.1} stations, {:.0} ns of CPU each; {:.0} % of the frames are broadcasts\n",
            goodput_bps / 1e3,
            last["fingerprint"].as_str().unwrap_or("?"),
            frames / cpu_s / 1e6,
            simulated_s / cpu_s,
            cpu_s * 1e6 / frames,
            last["peak_kib"].as_f64().unwrap_or(f64::NAN) / 1024.0,
            sensed / frames,
            cpu_s * 1e9 / sensed,
            100.0 * broadcasts / frames,
        );
        Self { record, text, frames_per_s: frames / simulated_s }
    }

    /// Adds the measurements of ns-2.
    pub fn beside_ns2(&mut self, series: &Series) {
        let kbps = series.printed("goodput_kbps");
        let (cpu_s, ratio) = (median(&series.others), median(&series.ratios));
        let record = &mut self.record;
        record["ns2_cpu_s"] = json!(cpu_s);
        record["ns2_goodput_bps"] = json!(kbps.map(|kbps| kbps * 1e3));
        record["ns2_ratios"] = json!(series.ratios);
        record["ns2_ratio"] = json!(ratio);
        let _ = writeln!(
            self.text,
            "  ns-2: {cpu_s:.3} s CPU, {:.1} kbit/s; ratio of CPU times, pair by pair: median {ratio:.2}",
            kbps.unwrap_or(f64::NAN)
        );
    }

    /// Adds the measurements of ns-3, which simulated `simulated_s` seconds with a library that
    /// takes `slowdown` times as long as a release build.
    pub fn beside_ns3(&mut self, series: &Series, simulated_s: f64, slowdown: f64) {
        let (kbps, frames) = (series.printed("goodput_kbps"), series.printed("frames"));
        let (cpu_s, ratio) = (median(&series.others), median(&series.ratios));
        // ns-3 carries more and sends more frames for that, so the CPU time is also compared per
        // frame.
        let frame_ratio = frames.map(|frames| ratio * self.frames_per_s / (frames / simulated_s));
        let record = &mut self.record;
        record["ns3_simulated_s"] = json!(simulated_s);
        record["ns3_cpu_s"] = json!(cpu_s);
        record["ns3_frames"] = json!(frames);
        record["ns3_goodput_bps"] = json!(kbps.map(|kbps| kbps * 1e3));
        record["ns3_ratios"] = json!(series.ratios);
        record["ns3_ratio"] = json!(ratio);
        record["ns3_frame_ratio"] = json!(frame_ratio);
        record["ns3_slowdown"] = json!(slowdown);
        record["ns3_ratio_corrected"] = json!(ratio / slowdown);
        let frame_ratio = frame_ratio.unwrap_or(f64::NAN);
        let _ = writeln!(
            self.text,
            "  ns-3: {cpu_s:.3} s CPU for {simulated_s} simulated s, {:.1} kbit/s; ratio of CPU times per simulated second, \
             median of {}: {ratio:.1}, per frame {frame_ratio:.1}",
            kbps.unwrap_or(f64::NAN),
            series.ratios.len()
        );
        if slowdown > 1.0 {
            let _ = writeln!(
                self.text,
                "        this ns-3 has assertions and logging compiled in, for about {slowdown} times the CPU time of a release \
                 build: corrected {:.1}, per frame {:.1}",
                ratio / slowdown,
                frame_ratio / slowdown
            );
        }
    }

    /// Returns the JSON object on one line.
    pub fn json(&self) -> String {
        format!("{}\n", self.record)
    }

    /// Returns the lines for people.
    pub fn text(self) -> String {
        self.text
    }
}
