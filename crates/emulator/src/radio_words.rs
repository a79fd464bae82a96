//! Settings of the radio of an emulated mesh, as keys of a scenario. They correspond to the output
//! of `iw phy` and `iw dev` for a real radio.

use meshpace_mesh::config::{MacProfile, MeshConfig, RtsPolicy};
use meshpace_mesh::radio::{Ofdm, OfdmRate};

/// Text with one line for each key.
pub fn of(mesh: &MeshConfig) -> String {
    let (radio, mac) = (&mesh.radio, &mesh.mac);
    let profile = match (mac.profile, mac.ht) {
        (_, Some(_)) => "ht",
        (MacProfile::Ns2, None) => "ns2",
        (MacProfile::Ieee, None) => "ieee",
    };
    let rate = match radio.ofdm {
        Some(Ofdm { data: OfdmRate::Ht { mcs, .. }, .. }) => format!("MCS {mcs}"),
        _ => format!("{} Mbit/s", radio.rate.0 as f64 / 1e6),
    };
    let rts = match mac.rts {
        RtsPolicy::Always => "radio.rts_cts=true".to_owned(),
        RtsPolicy::Never => "radio.rts_cts=false".to_owned(),
        RtsPolicy::Threshold(bytes) => format!("radio.rts_threshold=\"{bytes} B\""),
    };
    let basic = radio.basic_rate.0 as f64 / 1e6;
    format!(
        "mac.profile=\"{profile}\"\nradio.rate=\"{rate}\"\nradio.basic_rate=\"{basic} Mbit/s\"\n{rts}\nmac.short_retry_limit={}",
        mac.retries.short
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Rate;

    #[test]
    fn keys_are_those_of_a_scenario() {
        let mut mesh = MeshConfig::default();
        mesh.radio.rate = Rate::from_bps(5_500_000);
        mesh.mac.rts = RtsPolicy::Threshold(500);
        let expected = "mac.profile=\"ns2\"\nradio.rate=\"5.5 Mbit/s\"\nradio.basic_rate=\"1 Mbit/s\"\nradio.rts_threshold=\"500 B\"\nmac.short_retry_limit=7";
        assert_eq!(of(&mesh), expected);
    }
}
