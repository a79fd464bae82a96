//! Links that are cut and restored while programs run, at planned times or at once.

use crate::address;
use meshpace_core::{Duration, NodeId, Time};

/// Change of a link, which is cut or restored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkChange {
    /// One end of the link.
    pub one: NodeId,
    /// The other end.
    pub other: NodeId,
    /// True if the link is restored.
    pub up: bool,
}

/// Change of a link at a planned time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// Time of the change, in the mesh's time.
    pub at: Time,
    /// The change.
    pub change: LinkChange,
}

impl LinkChange {
    /// Reads `n3 n4 down`, in a mesh of `nodes` nodes.
    pub fn parse(text: &str, nodes: usize) -> Result<LinkChange, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [one, other, state] = words[..] else {
            return Err(format!("`{text}`: expected two nodes and `up` or `down`, such as 'n3 n4 down'"));
        };
        let (one, other) = (address::parse_node(one, nodes)?, address::parse_node(other, nodes)?);
        if one == other {
            return Err(format!("`{text}`: a link has two ends"));
        }
        let up = match state {
            "up" => true,
            "down" => false,
            _ => return Err(format!("`{text}`: expected `up` or `down`, found `{state}`")),
        };
        Ok(LinkChange { one, other, up })
    }
}

impl Planned {
    /// Reads `10 s: n3 n4 down`. `time` parses the time and returns seconds.
    pub fn parse(text: &str, nodes: usize, time: impl Fn(&str) -> Result<f64, String>) -> Result<Planned, String> {
        let Some((at, change)) = text.split_once(':') else {
            return Err(format!("`{text}`: expected a time and a link, such as '10 s: n3 n4 down'"));
        };
        let seconds = time(at.trim()).map_err(|expected| format!("`{text}`: {expected}"))?;
        let at = Time::ZERO + Duration::from_secs_f64(seconds);
        Ok(Planned { at, change: LinkChange::parse(change, nodes)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_links_are_read() {
        let change = LinkChange { one: NodeId(3), other: NodeId(4), up: false };
        assert_eq!(LinkChange::parse("n3 n4 down", 8), Ok(change));
        assert_eq!(LinkChange::parse(" n3  n4 up ", 8), Ok(LinkChange { up: true, ..change }));
        for wrong in ["n3 n4", "n3 n4 off", "n3 n3 up", "n3 n8 up", "3 4 up", ""] {
            assert!(LinkChange::parse(wrong, 8).is_err(), "{wrong}");
        }
        let seconds = |text: &str| text.trim_end_matches(" s").parse::<f64>().map_err(|e| e.to_string());
        let planned = Planned::parse("10 s: n3 n4 down", 8, seconds);
        assert_eq!(planned, Ok(Planned { at: Time(10_000_000_000), change }));
        assert!(Planned::parse("n3 n4 down", 8, seconds).is_err());
        assert!(Planned::parse("x: n3 n4 down", 8, seconds).is_err());
    }
}
