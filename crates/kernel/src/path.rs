//! Description of the path to a destination for the eBPF programs.

use crate::Error;
use meshpace_core::{Duration, Rate};
use meshpace_transport::pacing::{LinkDelay, RtsCts};

/// Rule for the interval: one of two papers on adaptive pacing, or quiet trains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Follows the four-hop propagation delay (AP05, section 4).
    Ap05,
    /// Follows the out-of-interference delay (AP10, section IV.E).
    Ap10,
    /// Quiet trains of the sender alone (docs/quiet-trains.md, "The sender alone").
    QuietTrainSolo,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 3] = [Form::Ap05, Form::Ap10, Form::QuietTrainSolo];

    /// Number of the form in `enum form` of the eBPF programs. Quiet trains have programs of their
    /// own.
    pub const fn number(self) -> u32 {
        match self {
            Form::Ap05 => 0,
            Form::Ap10 => 1,
            Form::QuietTrainSolo => 2,
        }
    }

    /// Tag of the paper in lower case, or name of the transport.
    pub const fn tag(self) -> &'static str {
        match self {
            Form::Ap05 => "ap05",
            Form::Ap10 => "ap10",
            Form::QuietTrainSolo => "quiet-train-solo",
        }
    }

    /// Form with the given number, if there is one.
    pub fn of_number(number: u32) -> Option<Form> {
        Form::ALL.into_iter().find(|form| form.number() == number)
    }

    /// Name of the congestion control in its object file, and its default name.
    pub const fn usual_name(self) -> &'static str {
        match self {
            Form::Ap05 | Form::Ap10 => crate::NAME,
            Form::QuietTrainSolo => crate::SOLO,
        }
    }
}

/// Path to a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// h, number of hops to the destination, 1 or more.
    pub hops: u8,
    /// b, data rate of the channel, 1 kbit/s or more.
    pub rate: Rate,
    /// H_cs, number of hops after which a sender is no longer sensed. `None` if every node of the
    /// path senses it. AP10 only.
    pub sensing: Option<u8>,
    /// t_LLD, time that the link layer adds to one hop of a data packet, at most 10 s. AP10 only.
    pub link_data: Duration,
    /// t_LLA, time that the link layer adds to one hop of an ACK, at most 10 s. AP10 only.
    pub link_ack: Duration,
    /// True if connections to this destination are paced whatever device their packets leave by. If
    /// false, only those that leave by an 802.11 device or by a device that the loader has named.
    pub always: bool,
}

/// Payload of a full segment over Ethernet with time stamps, in bytes, from which the delays of the
/// link layer are computed.
const PAYLOAD: u32 = 1448;
/// S_ACK in bytes.
const ACK: u32 = 40;
/// H_cs if frames are decoded up to 250 m and sensed up to 550 m, over hops of 200 m.
const USUAL_SENSING: u8 = 3;

impl Path {
    /// A path of `hops` hops at `rate`, with H_cs 3 and paced over every device. The delays of the
    /// link layer are in the middle of AP10's bounds (equations 9 and 10), without RTS/CTS.
    pub fn new(hops: u8, rate: Rate) -> Path {
        let (data, ack) = LinkDelay::Midpoint(RtsCts::Off).delays(PAYLOAD, ACK, rate);
        Path {
            hops,
            rate,
            sensing: Some(USUAL_SENSING),
            link_data: Duration::from_secs_f64(data),
            link_ack: Duration::from_secs_f64(ack),
            always: true,
        }
    }

    /// Checks that every value is in its range.
    ///
    /// # Errors [`Error::Refused`] with the value and its range.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |what: &str| Err(Error::Refused(what.to_owned()));
        if self.hops == 0 {
            return refuse("a path has 1 to 255 hops, not 0");
        }
        if self.sensing == Some(0) {
            return refuse("a sender is sensed for 1 to 255 hops, not 0");
        }
        if self.rate.0 < 1000 {
            return refuse(&format!("a channel's rate is 1 kbit/s or more, not {}", self.rate));
        }
        let longest = Duration::from_secs(10);
        if self.link_data > longest || self.link_ack > longest {
            return refuse("a delay of the link layer is at most 10 s");
        }
        Ok(())
    }

    /// Encodes the path as `struct path` of the eBPF programs.
    pub fn encode(&self) -> [u8; 40] {
        let mut bytes = [0; 40];
        bytes[0..8].copy_from_slice(&self.rate.0.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.link_data.0.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.link_ack.0.to_ne_bytes());
        bytes[24..28].copy_from_slice(&u32::from(self.hops).to_ne_bytes());
        bytes[28..32].copy_from_slice(&u32::from(self.sensing.unwrap_or(0)).to_ne_bytes());
        bytes[32..36].copy_from_slice(&u32::from(self.always).to_ne_bytes());
        bytes
    }

    /// Reverse of [`Path::encode`]. `None` if the bytes are not a path.
    pub fn decode(bytes: &[u8]) -> Option<Path> {
        let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let sensing = u8::try_from(word(28)?).ok()?;
        Some(Path {
            hops: u8::try_from(word(24)?).ok()?,
            rate: Rate::from_bps(long(0)?),
            sensing: (sensing > 0).then_some(sensing),
            link_data: Duration(long(8)?),
            link_ack: Duration(long(16)?),
            always: word(32)? != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let usual = Path::new(4, Rate::from_mbps(11));
        assert_eq!(Path::decode(&usual.encode()), Some(usual));
        let unlimited = Path { sensing: None, ..usual };
        assert_eq!(Path::decode(&unlimited.encode()), Some(unlimited));
        let guarded = Path { always: false, ..usual };
        assert_eq!(Path::decode(&guarded.encode()), Some(guarded));
        assert_eq!(Path::decode(&[0; 35]), None);
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let usual = Path::new(4, Rate::from_mbps(11));
        assert_eq!(usual.check(), Ok(()));
        let wrong = [
            Path { hops: 0, ..usual },
            Path { sensing: Some(0), ..usual },
            Path { rate: Rate::from_bps(999), ..usual },
            Path { link_data: Duration::from_secs(11), ..usual },
        ];
        for path in wrong {
            assert!(path.check().is_err(), "{path:?}");
        }
    }

    #[test]
    fn delays_of_the_link_layer_are_those_of_the_paper() {
        // AP10, section IV, has 3.9 and 2.4 ms at 11 Mbit/s with 1460 bytes. The middle of its
        // bounds is 3.915 and 2.366 ms.
        let path = Path::new(4, Rate::from_mbps(11));
        assert!((path.link_data.as_secs_f64() - 3.9e-3).abs() < 0.02e-3, "{}", path.link_data);
        assert!((path.link_ack.as_secs_f64() - 2.366e-3).abs() < 0.001e-3, "{}", path.link_ack);
    }
}
