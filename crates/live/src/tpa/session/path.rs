//! Where a connection learns how many hops away its peer is and how fast the channel: TPA with adaptive pacing needs both.

use meshpace_core::Rate;
use meshpace_transport::PathInfo;
use std::fmt::Debug;
use std::net::IpAddr;

/// A source of path information. It is asked when a connection opens, about once a second, and when packets begin to arrive
/// with another time to live.
pub trait PathSource: Debug + Send + Sync {
    /// The path to `peer`, as far as it is known; `travelled` are the hops its last packet seems to have come, if the kernel told.
    fn path(&self, peer: IpAddr, travelled: Option<u8>) -> Option<PathInfo>;
}

/// Always the same.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub PathInfo);

impl PathSource for Fixed {
    fn path(&self, _: IpAddr, _: Option<u8>) -> Option<PathInfo> {
        Some(self.0)
    }
}

/// The time to live of received packets: hosts start at 64, 128 or 255, and every router takes one. Wrong where the way back
/// is longer or shorter than the way there.
#[derive(Clone, Copy, Debug)]
pub struct TimeToLive {
    /// The channel's data rate, which packets do not tell.
    pub rate: Rate,
}

impl PathSource for TimeToLive {
    fn path(&self, _: IpAddr, travelled: Option<u8>) -> Option<PathInfo> {
        travelled.map(|hops| PathInfo { hops, rate: self.rate, received_power_dbm: None })
    }
}

/// The hops a packet has come that arrives with this time to live: 1 from a neighbour. None for 0, which is unknown.
pub fn hops_travelled(ttl: u8) -> Option<u8> {
    let start: u8 = match ttl {
        0 => return None,
        1..=64 => 64,
        65..=128 => 128,
        129.. => 255,
    };
    Some(start - ttl + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_router_takes_one() {
        assert_eq!([64, 63, 61, 128, 126, 255, 250].map(hops_travelled), [1, 2, 4, 1, 3, 1, 6].map(Some));
        assert_eq!(hops_travelled(0), None);
    }
}
