//! Routes of the flows of a scenario: the route that static routing takes, the loss of frames on
//! each hop, and the route that would need the fewest tries.
//!
//! If the share d of the data frames arrives over a hop, and the share r in the other direction, a
//! frame needs 1 / (d r) tries (ETX: De Couto, Aguayo, Bicket, Morris, MobiCom 2003, section 3).
//! This counts only loss by noise; collisions are additional.

use super::rates::Rate;
use crate::field::dumps::Medium;
use crate::field::path::{self, Links};
use meshpace_core::NodeId;
use meshpace_core::Rate as MbitRate;
use meshpace_mesh::config::{Propagation, RadioConfig, Reception};
use meshpace_mesh::radio::plcp::plcp;
use meshpace_mesh::radio::{Band, Channel, Neighbours, Ofdm, OfdmRate};
use meshpace_mesh::routing::StaticRoutes;
use meshpace_sim::Config;
use serde::Serialize;
use std::collections::BTreeSet;

/// Share of arriving frames below which a hop is called weak, in either direction: a tenth of the
/// tries is wasted.
pub const WEAK: f64 = 0.9;
/// Largest ratio of the tries of another route to those of the route at which the other route is
/// mentioned.
pub const CHEAPER: f64 = 0.9;

/// A hop of a route.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Hop {
    /// Sender of the data.
    pub from: usize,
    /// Receiver of the data.
    pub to: usize,
    /// Share of data frames that arrive if each is sent once and no other node sends. It is that of
    /// the dump, or that of frames with 1500 bytes at the rate of the scenario.
    pub delivery: f64,
    /// Share of data frames that arrive in the other direction.
    pub delivery_back: f64,
    /// Medium of the hop: radio, cable or tunnel.
    pub medium: &'static str,
    /// Bit rate of the data frames, Mbit/s, if the dump has it.
    pub rate_mbps: Option<f64>,
}

impl Hop {
    /// Expected number of tries of a frame.
    pub fn tries(&self) -> f64 {
        (self.delivery * self.delivery_back).recip()
    }

    /// True if the hop cannot carry its bit rate without repeating many frames.
    pub fn is_weak(&self) -> bool {
        self.delivery.min(self.delivery_back) < WEAK
    }
}

/// Route of a flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Route {
    /// Hops of the route from the source on. Empty if there is no route.
    pub hops: Vec<Hop>,
    /// Nodes of the route with the fewest tries, if it needs at least a tenth fewer tries.
    pub better: Option<Vec<usize>>,
    /// Number of tries of a frame over all hops of that route.
    pub better_tries: Option<f64>,
}

impl Route {
    /// Nodes of the route from the source on.
    pub fn nodes(&self) -> Vec<usize> {
        self.hops.iter().take(1).map(|hop| hop.from).chain(self.hops.iter().map(|hop| hop.to)).collect()
    }

    /// Number of tries of a frame over all hops.
    pub fn tries(&self) -> f64 {
        self.hops.iter().map(Hop::tries).sum()
    }
}

/// Links of a mesh, and routes of its flows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Routes {
    /// Route of each flow.
    pub of: Vec<Route>,
    /// Number of pairs of nodes that no flow's route uses and over which frames arrive, but fewer
    /// than half of them in one direction.
    pub too_weak: usize,
    /// Number of all pairs of nodes over which frames arrive in either direction.
    pub links: usize,
}

/// Size of the frame by which a link is judged, bytes, as in `meshpace_mesh::radio::channel`: a
/// packet of 1500 bytes and a MAC header.
const FRAME_BYTES: u32 = 1534;

/// Share of data frames with the received power `power`, in W, that arrive if each is sent once and
/// no other node sends.
fn share(radio: &RadioConfig, channel: &Channel, power: f64) -> f64 {
    let receiver = channel.sinr();
    if power < receiver.detect_w {
        return 0.0;
    }
    let air_time = match radio.ofdm {
        Some(ofdm) => ofdm.data.air_time(FRAME_BYTES, ofdm.band),
        None => plcp(radio.preamble, radio.rate) + radio.rate.time_for(FRAME_BYTES),
    };
    receiver.success(air_time, power / receiver.noise_w)
}

/// Share of data frames that arrive at a bit rate with this signal-to-noise ratio, dB.
pub fn share_at(rate: Rate, snr_db: f64) -> f64 {
    let data = match rate {
        Rate::Mcs(mcs) => OfdmRate::mcs(mcs, false),
        Rate::Legacy(mbps) => OfdmRate::non_ht(MbitRate::from_bps((mbps * 1e6) as u64)),
    };
    let ofdm = data.map(|data| Ofdm { band: Band::Five, data, basic: OfdmRate::NonHt(0) });
    let rate = match rate {
        Rate::Legacy(mbps) => MbitRate::from_bps((mbps * 1e6) as u64),
        Rate::Mcs(_) => RadioConfig::default().rate,
    };
    let propagation = Propagation::Links(meshpace_mesh::radio::Links::default());
    let radio = RadioConfig { rate, ofdm, propagation, reception: Reception::Sinr, ..RadioConfig::default() };
    let channel = Channel::new(&radio);
    share(&radio, &channel, channel.sinr().noise_w * 10_f64.powf(snr_db / 10.0))
}

/// Links and routes of a scenario whose static routes have the fewest hops.
pub fn routes(config: &Config) -> Routes {
    let radio = &config.mesh.radio;
    let channel = Channel::new(radio);
    let delivery = |from: NodeId, to: NodeId| {
        let distance = config.positions[from.index()].distance(config.positions[to.index()]);
        match radio.reception {
            Reception::Ns2 => f64::from(u8::from(channel.is_link(from, to, distance))),
            Reception::Sinr => share(radio, &channel, channel.received_power(from, to, distance)),
        }
    };
    let allowed: Option<BTreeSet<(NodeId, NodeId)>> = config
        .firewall
        .as_ref()
        .map(|links| links.iter().flat_map(|&(one, other)| [(one, other), (other, one)]).collect());
    let is_allowed = |from, to| allowed.as_ref().is_none_or(|links| links.contains(&(from, to)));
    let mut adjacency = Neighbours::new(&channel, &config.positions).adjacency();
    for (node, neighbours) in adjacency.iter_mut().enumerate() {
        neighbours.retain(|&other| is_allowed(NodeId(node as u16), other));
    }
    let ids = || (0..config.positions.len()).map(|node| NodeId(node as u16));
    let (mut tries, mut weak, mut found) = (Links::new(), Vec::new(), Routes::default());
    for from in ids() {
        for to in ids().filter(|&to| to > from && is_allowed(from, to)) {
            let shares = [delivery(from, to), delivery(to, from)];
            // A measurement of a link cannot tell a share below a thousandth from zero.
            if shares.iter().all(|&share| share < 0.001) {
                continue;
            }
            found.links += 1;
            if !(adjacency[from.index()].contains(&to) && adjacency[to.index()].contains(&from)) {
                weak.push((from.index(), to.index()));
            } else {
                let cost = (shares[0] * shares[1]).recip();
                tries.insert((from.index(), to.index()), cost);
                tries.insert((to.index(), from.index()), cost);
            }
        }
    }
    let ways = StaticRoutes::new(&adjacency, config.flows.iter().map(|flow| flow.to));
    for flow in &config.flows {
        let mut route = Route::default();
        let mut at = flow.from;
        while let Some(next) = ways.next_hop(at, flow.to) {
            let hop = Hop {
                from: at.index(),
                to: next.index(),
                delivery: delivery(at, next),
                delivery_back: delivery(next, at),
                medium: Medium::Radio.name(),
                rate_mbps: None,
            };
            route.hops.push(hop);
            at = next;
        }
        if let Some(nodes) = path::shortest(&tries, flow.from.index(), flow.to.index()) {
            let cost: f64 = path::metrics(&tries, &nodes).iter().sum();
            if cost < CHEAPER * route.tries() {
                (route.better, route.better_tries) = (Some(nodes), Some(cost));
            }
        }
        found.of.push(route);
    }
    let is_used = |pair: &(usize, usize)| {
        found.of.iter().flat_map(|route| &route.hops).any(|hop| (hop.from.min(hop.to), hop.from.max(hop.to)) == *pair)
    };
    found.too_weak = weak.iter().filter(|pair| !is_used(pair)).count();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::{Scenario, Source};

    /// Routes of a flow from node 0 to node 2 over these links.
    fn of(links: &str) -> Routes {
        let text = "duration = '5 s'\nradio.rate = 'MCS 3'\nradio.links = 'links.csv'\nmac.profile = 'ht'\n[topology]\nkind = 'nodes'\n\
                    positions = [['0 m', '0 m'], ['1 m', '0 m'], ['2 m', '0 m']]\n[[flow]]\nfrom = 0\nto = 2\n";
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let load = |_: &str| Ok(links.as_bytes().to_vec());
        routes(&Scenario::read_with(source, &load, "test").unwrap_or_else(|why| panic!("{why}")).points[0].config)
    }

    #[test]
    fn a_hop_loses_what_its_list_says_and_another_route_is_named() {
        // The reader makes powers of the shares, the routes make shares of the powers.
        let found = of("from,to,delivery\n0,2,0.6\n2,0,0.8\n0,1,0.999\n1,2,0.999\n");
        let route = &found.of[0];
        assert_eq!((route.nodes(), found.links, found.too_weak), (vec![0, 2], 3, 0));
        let hop = route.hops[0];
        assert!((hop.delivery - 0.6).abs() < 1e-3 && (hop.delivery_back - 0.8).abs() < 1e-3, "{hop:?}");
        assert!(hop.is_weak() && (route.tries() - 1.0 / 0.48).abs() < 0.02);
        // Two hops of 1 / 0.999^2 tries are 2.004, less than a tenth fewer than 2.08; with 0.5 and 0.6 there are 3.33.
        assert_eq!(route.better, None);
        let found = of("from,to,delivery\n0,2,0.51\n2,0,0.6\n0,1,0.999\n1,2,0.999\n");
        assert_eq!(found.of[0].better, Some(vec![0, 1, 2]));
    }

    #[test]
    fn a_link_that_is_good_one_way_only_is_named_where_a_route_uses_it() {
        // Static routes take a link that is good one way to work both ways.
        let found = of("from,to,delivery\n0,2,0.12\n2,0,0.999\n0,1,0.999\n1,2,0.999\n");
        let route = &found.of[0];
        assert_eq!((route.nodes(), found.too_weak), (vec![0, 2], 0), "it is used: {found:?}");
        assert!(route.hops[0].is_weak());
        assert_eq!(route.better, Some(vec![0, 1, 2]));
    }

    #[test]
    fn links_below_half_carry_no_route() {
        let found = of("from,to,delivery\n0,2,0.3\n0,1,0.999\n1,2,0.999\n");
        assert_eq!((found.of[0].nodes(), found.links, found.too_weak), (vec![0, 1, 2], 3, 1));
    }
}
