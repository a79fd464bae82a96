//! Sources of path information: the number of hops to the peer and the data rate of the channel.
//! TPA with adaptive pacing needs both.

use meshpace_core::Rate;
use meshpace_transport::PathInfo;
use std::fmt::Debug;
use std::net::IpAddr;

/// A source of path information. A connection asks it when it opens, about once a second, and when
/// packets begin to arrive with another time to live.
pub trait PathSource: Debug + Send + Sync {
    /// Returns what is known of the path to `peer`. `travelled` is the number of hops that the
    /// peer's last packet seems to have travelled; it is `None` if the kernel did not report the
    /// time to live.
    fn path(&self, peer: IpAddr, travelled: Option<u8>) -> Option<PathInfo>;
}

/// Source that always returns the same path.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub PathInfo);

impl PathSource for Fixed {
    fn path(&self, _: IpAddr, _: Option<u8>) -> Option<PathInfo> {
        Some(self.0)
    }
}

/// Source that derives the hops from the time to live of received packets. Hosts start at 64, 128
/// or 255, and every router subtracts one. The result is wrong if the path from the peer is longer
/// or shorter than the path to it.
#[derive(Clone, Copy, Debug)]
pub struct TimeToLive {
    /// Data rate of the channel, which cannot be read from packets.
    pub rate: Rate,
}

impl PathSource for TimeToLive {
    fn path(&self, _: IpAddr, travelled: Option<u8>) -> Option<PathInfo> {
        travelled.map(|hops| PathInfo { hops, rate: self.rate, received_power_dbm: None })
    }
}

/// Returns the number of hops that a packet with this time to live has travelled: 1 from a
/// neighbour. `None` for a time to live of 0, which means that it is unknown.
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
