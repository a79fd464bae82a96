//! Cost and capacity of a channel access, for transports that group segments.

use meshpace_core::Duration;
use meshpace_mesh::MeshConfig;
use meshpace_mesh::mac::{Category, Timing};
use meshpace_transport::train::Access;

/// Size in bytes of the delimiter between the MPDUs of an aggregate.
const DELIMITER_BYTES: u32 = 4;

/// Channel access of the nodes of a mesh, which is the same at all of them; `None` without
/// aggregates.
pub fn access(mesh: &MeshConfig) -> Option<Access> {
    let ht = mesh.mac.ht.filter(|ht| ht.mpdus > 1)?;
    let t = Timing::new(&mesh.mac, &mesh.radio);
    let preamble = t.data_air(0, false);
    let best_effort = t.access[Category::BestEffort as usize];
    let backoff = Duration(t.slot.0 * u64::from(best_effort.cw_min) / 2);
    let mut fixed = best_effort.aifs + backoff + preamble + t.sifs + t.block_ack_air;
    if t.uses_rts(ht.bytes) {
        fixed = fixed + t.rts_air + t.cts_air + t.sifs * 2;
    }
    Some(Access {
        fixed,
        frame_bytes: t.rules.data_overhead + DELIMITER_BYTES,
        packets: ht.mpdus,
        bytes: ht.bytes,
        longest: ht.longest.saturating_sub(preamble),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_mesh::config::RtsPolicy;
    use meshpace_mesh::radio::{Band, Ofdm, OfdmRate};
    use meshpace_mesh::{HtConfig, MacConfig, MacProfile, RadioConfig};

    #[test]
    fn the_table_of_mcs_7() {
        let mut mesh = MeshConfig::default();
        assert_eq!(access(&mesh), None, "802.11b has no aggregates");
        let (data, basic) = (OfdmRate::mcs(7, false).unwrap(), OfdmRate::NonHt(0));
        let ofdm = Some(Ofdm { band: Band::Five, data, basic });
        mesh.radio = RadioConfig { rate: data.rate(), basic_rate: basic.rate(), ofdm, ..RadioConfig::default() };
        let ht = Some(HtConfig::default());
        mesh.mac = MacConfig { profile: MacProfile::Ieee, rts: RtsPolicy::Never, ht, ..MacConfig::default() };
        let basic_access = access(&mesh).unwrap();
        // The terms are AIFS 43, 7.5 slots of 9, preamble 36 and one symbol of 4, SIFS 16, block
        // ACK 32 us.
        assert_eq!(basic_access.fixed, Duration(198_500));
        assert_eq!(basic_access.frame_bytes, 42);
        mesh.mac.rts = RtsPolicy::Always;
        // RTS 52, CTS 44 and two SIFS of 16 us are added.
        assert_eq!(access(&mesh).unwrap().fixed, Duration(198_500 + 128_000));
    }
}
