//! Goodput of each flow's path from the goodputs of its hops: the prediction of [`predict`] with
//! its error interval, the bound, and the share beside the other flows.

use super::rates::goodput_mbps;
use crate::field::dumps::{Dump, LinkReport, Medium};
use crate::field::{path, predict, ways};
use serde::Serialize;

/// Path of a flow. Goodputs are in kbit/s.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Path {
    /// Number of the flow.
    pub flow: usize,
    /// Nodes of the path.
    pub path: Vec<usize>,
    /// Bound: the goodput that the air time of the hops allows if the flow is alone.
    pub alone_kbps: f64,
    /// Goodput that is predicted if the flow is alone.
    pub predicted_kbps: f64,
    /// Error interval of the prediction. `None` for a single hop, and if the goodput of a hop is
    /// itself an estimate.
    pub interval_kbps: Option<(f64, f64)>,
    /// Fair share of the bound beside the other flows.
    pub shared_kbps: f64,
    /// Fair share of the prediction beside the other flows.
    pub predicted_shared_kbps: f64,
    /// Measured goodput, if there is one.
    pub measured_kbps: Option<f64>,
}

/// Sources of the goodput of a hop, in addition to the goodputs in the dump.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources {
    /// Goodput of a good hop, kbit/s. It is divided by the hop's ETX.
    pub hop_kbps: Option<f64>,
    /// True if the goodput may be computed from the bit rate where there is no other source.
    pub by_rate: bool,
}

/// Paths of flows, predicted from the goodputs of their radio hops. These come from the dump, or
/// else from `sources`. The result is empty if the goodput of any hop is not known. Cables and
/// tunnels take no air time. `measured` are the measured goodputs of the flows, kbit/s.
pub fn paths(dump: &Dump, ways: &[Vec<usize>], sources: Sources, measured: &[Option<f64>]) -> Vec<Path> {
    let (etx, mbps) = (ways::etx(dump), ways::mbps(dump));
    let told = |hop: &[usize]| mbps.get(&(hop[0], hop[1])).map(|mbps| 1e3 * mbps);
    let by_metric = |hop: &[usize]| Some(sources.hop_kbps? / etx.get(&(hop[0], hop[1]))?);
    let rates = |hop: &[usize]| {
        let is_hop =
            |link: &&LinkReport| (link.from, link.to) == (hop[0], hop[1]) || (link.to, link.from) == (hop[0], hop[1]);
        dump.links.iter().filter(is_hop).find_map(|link| link.rate)
    };
    let by_rate = |hop: &[usize]| {
        let rate = rates(hop).filter(|_| sources.by_rate)?;
        Some(1e3 * goodput_mbps(rate) * ways::delivery(dump, hop[0], hop[1]).unwrap_or(1.0))
    };
    let predicted: Option<Vec<(predict::Prediction, bool)>> = ways
        .iter()
        .map(|way| {
            let radio: Vec<&[usize]> =
                way.windows(2).filter(|hop| dump.medium(hop[0], hop[1]) == Medium::Radio).collect();
            let of = |hop: &&[usize]| told(hop).or_else(|| by_metric(hop)).or_else(|| by_rate(hop));
            let hops: Vec<f64> = radio.iter().map(of).collect::<Option<_>>()?;
            let is_measured = dump.is_measured() && radio.iter().all(|hop| told(hop).is_some());
            (!hops.is_empty()).then(|| (predict::predict(&hops), is_measured))
        })
        .collect();
    let predicted = predicted.unwrap_or_default();
    let share = |of: fn(&predict::Prediction) -> f64| {
        path::shared(&predicted.iter().map(|(one, _)| of(one)).collect::<Vec<f64>>(), &[])
    };
    let (of_bound, of_goodput) = (share(|one| one.bound), share(|one| one.goodput));
    let each = predicted.iter().zip(ways).enumerate();
    each.map(|(flow, ((one, is_measured), way))| Path {
        flow,
        path: way.clone(),
        alone_kbps: one.bound,
        predicted_kbps: one.goodput,
        interval_kbps: one.bar.filter(|_| *is_measured),
        shared_kbps: of_bound[flow],
        predicted_shared_kbps: of_goodput[flow],
        measured_kbps: measured.get(flow).copied().flatten(),
    })
    .collect()
}

/// Line on a path for people.
pub fn words(one: &Path, name: &dyn Fn(usize) -> String) -> String {
    let nodes: Vec<String> = one.path.iter().map(|&node| name(node)).collect();
    let how_sure = match (one.interval_kbps, one.path.len()) {
        (Some((low, high)), _) => format!("nine in ten such paths had {low:.0} to {high:.0}; "),
        (None, 2) => String::new(),
        (None, _) => "the error is not known, because the goodput of its hops was not measured; ".to_owned(),
    };
    let measured = one.measured_kbps.map(|kbps| format!("; measured {kbps:.0}")).unwrap_or_default();
    format!(
        "flow {}, {}: predicted from its hops: {:.0} kbit/s alone ({how_sure}the air time allows {:.0}), {:.0} as a fair share{measured}\n",
        one.flow,
        nodes.join("-"),
        one.predicted_kbps,
        one.alone_kbps,
        one.predicted_shared_kbps
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::dumps;

    fn dump(text: &str) -> Dump {
        dumps::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn measured_hops_have_a_bar_and_estimates_have_none() {
        let table = dump("from,to,hop_mbps\na,b,12\nb,c,4\n");
        let of = |found: &[Path]| (found[0].alone_kbps.round(), found[0].interval_kbps);
        let found = paths(&table, &[vec![0, 1, 2], vec![0, 1]], Sources::default(), &[None, Some(11_000.0)]);
        let (bound, bar) = of(&found);
        assert_eq!(bound, 3000.0, "1 over 1/12 and 1/4");
        let (low, high) = bar.unwrap();
        assert!(low < found[0].predicted_kbps && found[0].predicted_kbps < bound && high > bound, "{found:?}");
        assert_eq!((found[1].predicted_kbps, found[1].interval_kbps), (12_000.0, None), "a hop is as it was measured");
        assert!((found[0].predicted_shared_kbps - found[0].predicted_kbps / 2.0).abs() < 1e-9);
        let name = |node: usize| ["a", "b", "c"][node].to_owned();
        assert!(
            words(&found[0], &name).contains("flow 0, a-b-c: predicted")
                && words(&found[0], &name).contains("nine in ten")
        );
        assert!(words(&found[1], &name).ends_with("measured 11000\n"), "{}", words(&found[1], &name));
        // Of an ETX and one good hop.
        let table = dump("from,to,etx\na,b,1\nb,c,1.5\n");
        assert_eq!(
            of(&paths(&table, &[vec![0, 1, 2]], Sources { hop_kbps: Some(10_000.0), by_rate: false }, &[])),
            (4000.0, None),
            "10 / (1 + 1.5)"
        );
        assert!(paths(&table, &[vec![0, 1, 2]], Sources::default(), &[]).is_empty(), "nothing is known of a hop");
    }
}
