//! Goodput of one hop in the simulator. It is the scale by which measured goodputs are translated
//! into bit rates and losses.

use super::plan::{OneHop, Plan};
use super::questions::{questions, sets};
use super::{Keys, Mesh, scenario};
use crate::field::state::State;
use meshpace_scenario::{Scenario, Source};

/// Measured time of a run, seconds. The warm-up comes before it.
const SECONDS: u64 = 3;

/// Goodput of bulk TCP over one hop without loss for each MCS, Mbit/s, with the settings of a
/// state.
pub fn one_hop(state: &State) -> OneHop {
    let mut found = OneHop::default();
    for (mcs, mbps) in (0u8..).zip(found.iter_mut()) {
        *mbps = goodput(state, mcs).unwrap_or_default();
    }
    found
}

fn goodput(state: &State, mcs: u8) -> Option<f64> {
    let keys = [("mac.profile", "\"ht\"".to_owned()), ("radio.rate", format!("\"MCS {mcs}\""))];
    goodput_with(state, &keys, 1.0)
}

/// Goodput of bulk TCP over one hop with a known radio and a share of frames that arrive, Mbit/s.
/// `None` if the simulator has no such radio.
pub fn goodput_with(state: &State, keys: &Keys, share: f64) -> Option<f64> {
    let text = scenario(&Mesh::Routed(2), &[(0, 1)], keys, SECONDS).ok()?;
    let source = Source { name: "one hop".to_owned(), text, sets: sets(&questions(state), None) };
    let load = |name: &str| {
        match name {
        "links.csv" => Ok(format!("from,to,delivery\n0,1,{share}\n").into_bytes()),
        _ => Ok(br#"{"nodes":[{"id":"0","x_m":0,"y_m":0},{"id":"1","x_m":1,"y_m":0}],"links":[{"source":"0","target":"1"}]}"#.to_vec()),
    }
    };
    let scenario = Scenario::read_with(source, &load, "one hop").ok()?;
    Some(meshpace_sim::run(&scenario.points.first()?.config, 1).flows.first()?.goodput_bps / 1e6)
}

/// Smallest share that is searched. Below it frames are given up so often that TCP stalls.
const LEAST_SHARE: f64 = 0.4;
/// Largest ratio of a goodput to that of a hop without loss at which the hop is still taken for one
/// without loss.
const TOLERANCE: f64 = 1.25;

/// Share of the frames that arrive over a hop that carries `mbps` with a known radio, found by
/// bisection. `None` if no share explains the goodput.
pub fn share_for(state: &State, keys: &Keys, mbps: f64) -> Option<f64> {
    let whole = goodput_with(state, keys, 1.0)?;
    if mbps >= 0.95 * whole {
        return (mbps <= TOLERANCE * whole).then_some(1.0);
    }
    let (mut low, mut high) = (LEAST_SHARE, 1.0);
    if goodput_with(state, keys, low)? > mbps {
        return None;
    }
    for _ in 0..6 {
        let middle = (low + high) / 2.0;
        if goodput_with(state, keys, middle)? < mbps { low = middle } else { high = middle }
    }
    Some(high)
}

/// Goodput of one flow of a model alone, Mbit/s, as the mean of two runs.
pub fn path_goodput(state: &State, plan: &Plan, flow: usize) -> Option<f64> {
    let text = scenario(&Mesh::Routed(plan.nodes.len()), &[*plan.ends.get(flow)?], &plan.keys, SECONDS).ok()?;
    let source = Source { name: "path".to_owned(), text, sets: sets(&questions(state), None) };
    let load = |name: &str| match name {
        "links.csv" => Ok(plan.links.clone().into_bytes()),
        _ => Ok(plan.map.clone().into_bytes()),
    };
    let scenario = Scenario::read_with(source, &load, "path").ok()?;
    let config = &scenario.points.first()?.config;
    let mbps = |seed: u64| Some(meshpace_sim::run(config, seed).flows.first()?.goodput_bps / 1e6);
    Some((mbps(1)? + mbps(2)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mcs_carries_more_and_none_more_than_its_bit_rate() {
        let found = one_hop(&State::default());
        assert!(found.is_sorted(), "{found:?}");
        for (mbps, rate) in found.iter().zip([6.5, 13.0, 19.5, 26.0, 39.0, 52.0, 58.5, 65.0]) {
            assert!((0.6 * rate..rate).contains(mbps), "{found:?}");
        }
    }
}
