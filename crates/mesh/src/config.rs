//! What a scenario says about the mesh, as checked values.

use crate::routing::aodv::NETWORK_DIAMETER;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, ParameterError, Rate};

pub use crate::link::config::{LinkConfig, MarkerConfig, QueueConfig};
use crate::radio::bit_errors::Modulation;
use crate::radio::log_distance::LogDistance;
use crate::radio::two_ray;

/// A place on the plane, in metres.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Position {
    /// Metres to the east.
    pub x: f64,
    /// Metres to the north.
    pub y: f64,
}

impl Position {
    /// The distance to `other` in metres.
    pub fn distance(self, other: Position) -> f64 {
        libm::hypot(self.x - other.x, self.y - other.y)
    }
}

/// When a unicast data frame is preceded by RTS/CTS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RtsPolicy {
    /// Before every unicast data frame (`radio.rts_cts = true`).
    Always,
    /// Never (`radio.rts_cts = false`).
    Never,
    /// Before frames of at least this many bytes (`radio.rts_threshold`). Under [`MacProfile::Ns2`] the packet's size
    /// plus 58 bytes (MAC header and PLCP) is compared, under [`MacProfile::Ieee`] the MPDU with its FCS, and "at least"
    /// is "more than".
    Threshold(u32),
}

/// Which frame a receiver that hears several keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reception {
    /// ns-2: the first frame locks the receiver and survives a later one only if it is at least 10 dB stronger.
    #[default]
    Ns2,
    /// A detected preamble locks the receiver, and bits are wrong by the ratio of signal to noise and interference.
    Sinr,
}

/// How power falls with distance.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Propagation {
    /// Two-ray ground with the constants of ns-2: links to 250 m, sensed to 550 m.
    #[default]
    TwoRay,
    /// Log-distance with cables, attenuators and shadowing.
    LogDistance(LogDistance),
}

/// What precedes a frame on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preamble {
    /// 192 us before every frame.
    #[default]
    Long,
    /// 96 us before frames of 2 Mbit/s and more; at 1 Mbit/s there is none but the long one (IEEE Std 802.11b-1999, 18.2).
    Short,
}

/// After how many attempts a frame is given up (IEEE Std 802.11-1999, 9.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryLimits {
    /// Attempts for an RTS or a frame sent without one, 1 or more. Default 7.
    pub short: u32,
    /// Attempts for a data frame sent after RTS/CTS, 1 or more. Default 4.
    pub long: u32,
}

impl Default for RetryLimits {
    fn default() -> RetryLimits {
        RetryLimits { short: 7, long: 4 }
    }
}

/// Header size, backoff range, retry and timer rules of the MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MacProfile {
    /// What ns-2.35 was measured to do.
    #[default]
    Ns2,
    /// What IEEE 802.11 says.
    Ieee,
}

/// The radio shared by all nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct RadioConfig {
    /// Rate of unicast data frames.
    pub rate: Rate,
    /// Rate of control frames and broadcasts.
    pub basic_rate: Rate,
    /// When RTS/CTS is used.
    pub rts: RtsPolicy,
    /// Limit of the interface queue in packets, as the MAC profile counts it (`ns2`: one waiting packet less).
    pub queue: usize,
    /// The preamble of frames.
    pub preamble: Preamble,
    /// The reception rule.
    pub reception: Reception,
    /// How power falls with distance.
    pub propagation: Propagation,
    /// Noise over the channel of 22 MHz, receiver included, dBm. Default -93.6: thermal noise and 7 dB. Without effect
    /// under two-ray and [`Reception::Ns2`].
    pub noise_dbm: f64,
    /// [`Reception::Sinr`]: how far a frame must be above noise and interference for its preamble to be detected, dB.
    /// Default 4, that of ns-3.
    pub detect_ratio_db: f64,
    /// T_cs under log-distance: power from which the medium is busy, dBm. Default -70 (IEEE Std 802.11b-1999, 18.4.8.4, for
    /// transmitters up to 50 mW). Two-ray has that of 550 m.
    pub carrier_sense_dbm: f64,
}

impl RadioConfig {
    /// Carrier frequency, Hz: 914 MHz of the WaveLAN under two-ray, channel 6 of the 2.4 GHz band under log-distance.
    pub fn frequency_hz(&self) -> f64 {
        match self.propagation {
            Propagation::TwoRay => two_ray::FREQUENCY_HZ,
            Propagation::LogDistance(_) => 2437e6,
        }
    }

    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        let by_errors = self.reception == Reception::Sinr || self.propagation != Propagation::TwoRay;
        for (name, rate) in [("radio.rate", self.rate), ("radio.basic_rate", self.basic_rate)] {
            let known = !by_errors || Modulation::of(rate).is_some();
            require(known, name, rate.0, "1, 2, 5.5 or 11 Mbit/s, whose bit errors are known")?;
        }
        for (name, dbm) in [("radio.noise", self.noise_dbm), ("radio.carrier_sense_threshold", self.carrier_sense_dbm)]
        {
            require((-200.0..=100.0).contains(&dbm), name, dbm, "-200 dBm to 100 dBm")?;
        }
        let ratio = self.detect_ratio_db;
        require((-50.0..=50.0).contains(&ratio), "radio.preamble_sinr", ratio, "-50 dB to 50 dB")?;
        match &self.propagation {
            Propagation::TwoRay => Ok(()),
            Propagation::LogDistance(model) => model.check(),
        }
    }
}

impl Default for RadioConfig {
    fn default() -> Self {
        RadioConfig {
            rate: Rate::from_mbps(2),
            basic_rate: Rate::from_mbps(1),
            rts: RtsPolicy::Always,
            queue: 50,
            preamble: Preamble::Long,
            reception: Reception::Ns2,
            propagation: Propagation::TwoRay,
            noise_dbm: -93.6,
            detect_ratio_db: 4.0,
            carrier_sense_dbm: -70.0,
        }
    }
}

/// What AODV does when a link towards a near destination breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LocalRepair {
    /// As compiled into ns-2.35: the RREQ keeps the old sequence number, so neighbours answer with stale routes.
    #[default]
    Ns2,
    /// RFC 3561, section 6.12: the RREQ asks for a newer sequence number.
    Rfc3561,
    /// The node sends a RERR and leaves the repair to the source.
    Off,
}

/// How AODV finds out that a link is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AodvDetection {
    /// The MAC gave up a data packet at its retry limit.
    #[default]
    LinkLayer,
    /// Two HELLOs of the neighbour were missed (RFC 3561, section 6.9).
    Hello,
    /// Either.
    Both,
}

/// How AODV is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AodvConfig {
    /// What a node near the destination does about a broken link.
    pub local_repair: LocalRepair,
    /// How a node learns that a link is lost. HELLOs also teach neighbours.
    pub detection: AodvDetection,
    /// How long a lost route is remembered at least, for its sequence number (DELETE_PERIOD of RFC 3561, section 10, at least
    /// [`ACTIVE_ROUTE_TIMEOUT`](crate::routing::aodv::ACTIVE_ROUTE_TIMEOUT), 50 s by its rule), and mostly at most twice as
    /// long. None: for ever, as in ns-2.35.
    pub delete_period: Option<Duration>,
}

impl AodvConfig {
    /// Link-layer detection, and no route is ever forgotten.
    pub const fn repairing(local_repair: LocalRepair) -> Self {
        AodvConfig { local_repair, detection: AodvDetection::LinkLayer, delete_period: None }
    }
}

/// What OLSR minimises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OlsrMetric {
    /// The number of hops (RFC 3626).
    #[default]
    Hops,
    /// The expected number of transmissions: the sum over links of 1 / (d_f d_r), d_f and d_r being the delivery ratios of
    /// HELLOs in the two directions.
    Etx,
}

/// The time to live of a packet that nobody gives another.
const IP_TIME_TO_LIVE: u8 = 64;

/// The routing protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RoutingConfig {
    /// Shortest paths by hops, computed once; ties go to the lowest node number. No packets, no failures.
    #[default]
    Static,
    /// AODV.
    Aodv(AodvConfig),
    /// OLSR, hysteresis off; links are lost when three HELLOs were missed.
    Olsr {
        /// What makes a path short.
        metric: OlsrMetric,
        /// Whether the MAC's failures also end a link (RFC 3626, section 13).
        link_layer: bool,
    },
}

impl RoutingConfig {
    /// AODV that forgets no route, as in ns-2.
    pub const fn aodv(local_repair: LocalRepair, detection: AodvDetection) -> Self {
        RoutingConfig::Aodv(AodvConfig { local_repair, detection, delete_period: None })
    }

    /// The most hops a packet travels: its time to live when it leaves its source. AODV sets its network diameter, as ns-2
    /// does; otherwise it is what IP stacks start with (IANA, "IP Option Numbers", default time to live).
    pub const fn time_to_live(&self) -> u8 {
        match self {
            RoutingConfig::Aodv(_) => NETWORK_DIAMETER,
            RoutingConfig::Static | RoutingConfig::Olsr { .. } => IP_TIME_TO_LIVE,
        }
    }
}

/// Everything below the transport.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MeshConfig {
    /// The radio.
    pub radio: RadioConfig,
    /// The MAC's rules.
    pub mac: MacProfile,
    /// How often the MAC tries.
    pub retries: RetryLimits,
    /// The routing protocol.
    pub routing: RoutingConfig,
    /// What happens to packets between routing and MAC.
    pub link: LinkConfig,
}
