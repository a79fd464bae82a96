//! Model of a mesh from a dump or from the measurements of the kit. It chooses the carrier-sense
//! range that fits the measurements.

use super::Arguments;
use super::input::Known;
use crate::REFUSED;
use crate::output::Failure;
use meshpace_lab::advise::calibrate;
use meshpace_lab::advise::plan::{self, Plan};
use meshpace_lab::advise::rates::Rate;
use meshpace_lab::field::dumps::Dump;
use meshpace_lab::field::kit::Run;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Largest relative error of the modelled goodput that is accepted without trying another model.
const NEAR: f64 = 0.2;

/// Builds the model of a dump. If the whole radio is known, nodes sense each other over two hops,
/// as radios do that decode over one hop. The first measured path of several hops checks this
/// model. If its goodput differs from the model's by more than [`NEAR`], a sensing range of one hop
/// is tried. The model that is nearer to the measurement is used.
pub fn of_dump(
    arguments: &Arguments,
    known: &Known,
    dump: &Dump,
    ways: &[Vec<usize>],
    rate: Rate,
) -> Result<Plan, Failure> {
    let refused = |why: String| (REFUSED, why);
    let one_hop = || calibrate::one_hop(&known.state);
    let keys = &known.state.radio;
    let is_known = known.state.rate().is_some() && calibrate::goodput_with(&known.state, keys, 1.0).is_some();
    if arguments.rate.is_some() || !is_known {
        return plan::plan(dump, ways, rate, &one_hop).map_err(refused);
    }
    // Results are cached, because several links may have the same measured goodput.
    let shares = RefCell::new(BTreeMap::new());
    let share = |mbps: f64| {
        let mut shares = shares.borrow_mut();
        *shares.entry(mbps.to_bits()).or_insert_with(|| calibrate::share_for(&known.state, keys, mbps))
    };
    let with = |senses_two_hops: bool| {
        let radio = plan::Radio::Found { keys, share: &share, senses_two_hops };
        plan::with_radio(dump, ways, radio, &one_hop).map_err(refused)
    };
    let measured = ways.iter().enumerate().find_map(|(flow, way)| {
        let of_flow = |run: &&Run| (Some(&run.from), Some(&run.to)) == (way.first(), way.last());
        let run = known.runs.iter().find(of_flow).filter(|run| way.len() > 2 && run.goodput_bps > 0.0)?;
        Some((flow, run.goodput_bps))
    });
    let wide = with(true)?;
    let Some((flow, bps)) = measured else { return Ok(wide) };
    let narrow = with(false)?;
    let error = |plan: &Plan| {
        let carried = calibrate::path_goodput(&known.state, plan, flow).unwrap_or_default();
        (1e6 * carried / bps).max(1e-9).ln().abs()
    };
    let wide_error = error(&wide);
    Ok(if wide_error > (1.0 + NEAR).ln() && error(&narrow) < wide_error { narrow } else { wide })
}
