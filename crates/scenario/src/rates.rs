//! `radio.rate` and the keys that depend on it: the 802.11 standard of the radio.
//!
//! The supported rates of 802.11b, 802.11a and 802.11n are all different, so the rate selects the
//! standard. 802.11n is `mac.profile = "ht"`; its rates are written as `MCS 7`.

use super::propagation::refuse;
use super::reader::{Reader, Sign};
use meshpace_core::Rate;
use meshpace_mesh::config::{MacConfig, Preamble, RadioConfig, RateControl};
use meshpace_mesh::radio::{Band, Ofdm, OfdmRate};
use meshpace_settings::quantity::RATE;
use meshpace_settings::value::{Kind, Value};

/// Rates of 802.11b, bit/s.
const DSSS: [u64; 4] = [1_000_000, 2_000_000, 5_500_000, 11_000_000];
/// Mandatory rates of OFDM, bit/s.
const MANDATORY: [u64; 3] = [6_000_000, 12_000_000, 24_000_000];

/// Reads `rate`, `basic_rate`, `preamble`, `band`, `channel_width`, `guard_interval` and
/// `rate_control`. The profile of the MAC has been read already.
pub fn read(keys: &mut Reader<'_>, radio: &mut RadioConfig, mac: &MacConfig) {
    let preambles = [("long", Preamble::Long), ("short", Preamble::Short)];
    radio.preamble = keys.choice("preamble", &preambles, &[]).unwrap_or_default();
    let band = keys.choice("band", &[("5 GHz", Band::Five), ("2.4 GHz", Band::Two)], &[]).unwrap_or_default();
    keys.choice("channel_width", &[("20 MHz", ())], &["40 MHz"]);
    let short_guard = keys.choice("guard_interval", &[("800 ns", false), ("400 ns", true)], &[]).unwrap_or(false);
    let data = if mac.ht.is_some() { mcs(keys, short_guard) } else { non_ht(keys, radio, mac.rules(false).has_ofdm) };
    radio.rate_control = keys.choice("rate_control", RateControl::ALL, &[]).unwrap_or_default();
    if mac.ht.is_none() {
        refuse(keys, &["guard_interval", "rate_control"], "802.11n", "mac.profile = \"ht\"");
    }
    let Some(data) = data else {
        refuse(keys, &["band", "channel_width"], "802.11a and 802.11n", "a rate of theirs");
        let Some(basic) = rate(keys, "basic_rate") else { return };
        require(keys, "basic_rate", DSSS.contains(&basic.0), "1, 2, 5.5 or 11 Mbit/s, the rates of 802.11b");
        radio.basic_rate = basic;
        return;
    };
    refuse(keys, &["preamble"], "802.11b", "a rate of 1, 2, 5.5 or 11 Mbit/s");
    let basic = rate(keys, "basic_rate").unwrap_or(Rate::from_mbps(6));
    require(keys, "basic_rate", MANDATORY.contains(&basic.0), "6, 12 or 24 Mbit/s, the mandatory rates of OFDM");
    let ofdm = Ofdm { band, data, basic: OfdmRate::non_ht(basic).unwrap_or(OfdmRate::NonHt(0)) };
    (radio.rate, radio.basic_rate, radio.ofdm) = (data.rate(), ofdm.basic.rate(), Some(ofdm));
}

/// Reads a rate of 802.11n, such as `MCS 7`.
fn mcs(keys: &mut Reader<'_>, short_guard: bool) -> Option<OfdmRate> {
    let fallback = OfdmRate::mcs(7, short_guard);
    let Some(value) = keys.get("rate") else { return fallback };
    let number = if let Kind::String(text) = &value.kind { number(text) } else { None };
    let rate = number.and_then(|number| OfdmRate::mcs(number, short_guard));
    let expected = "\"MCS 0\" to \"MCS 15\", the rates of 802.11n with one and two streams";
    require(keys, "rate", rate.is_some(), expected);
    rate.or(fallback)
}

/// Reads a rate in bit/s. `None` if it is a rate of 802.11b, which is then stored in `radio`.
fn non_ht(keys: &mut Reader<'_>, radio: &mut RadioConfig, has_ofdm: bool) -> Option<OfdmRate> {
    if let Some(Value { kind: Kind::String(text), .. }) = keys.get("rate")
        && number(text).is_some()
    {
        keys.report_invalid("rate", "belongs to 802.11n", "expected mac.profile = \"ht\" with it");
        return None;
    }
    let found = rate(keys, "rate")?;
    if DSSS.contains(&found.0) {
        radio.rate = found;
        return None;
    }
    let ofdm = OfdmRate::non_ht(found).filter(|_| has_ofdm);
    let expected = if has_ofdm {
        "1, 2, 5.5 or 11 Mbit/s (802.11b), or 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s (802.11a)"
    } else {
        "1, 2, 5.5 or 11 Mbit/s, the rates of 802.11b (6 to 54 Mbit/s: mac.profile = \"ieee\")"
    };
    require(keys, "rate", ofdm.is_some(), expected);
    ofdm
}

/// Parses the number of an MCS.
fn number(text: &str) -> Option<u8> {
    text.trim().strip_prefix("MCS")?.trim().parse().ok()
}

fn rate(keys: &mut Reader<'_>, key: &'static str) -> Option<Rate> {
    let bps = keys.quantity(key, &RATE, Sign::Positive, 1e12)?;
    Some(Rate::from_bps((bps.round() as u64).max(1)))
}

fn require(keys: &Reader<'_>, key: &str, holds: bool, expected: &str) {
    if !holds {
        let found = keys.value(key).map(Value::describe).unwrap_or_default();
        keys.report_invalid(key, format!("expected {expected}, found {found}"), format!("expected {expected}"));
    }
}
