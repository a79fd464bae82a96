//! Ports of this machine and where they lead, as they are written.

use super::session::Class;
use meshpace_core::Duration;
use std::str::FromStr;

/// How long a datagram may wait if nothing else is said.
const LIFE: Duration = Duration::from_secs(1);

/// A port here and where its connections go, seen from the far end: `[address:]port:host:port`, as ssh's -L has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forward {
    /// The own address and port.
    pub local: String,
    /// The target, `host:port`.
    pub target: String,
}

impl FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> Result<Forward, String> {
        let wrong = || format!("{text}: expected [ADDRESS:]PORT:HOST:PORT");
        // From the right, since IPv6 addresses have colons of their own, in brackets.
        let (rest, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let split = if rest.ends_with(']') { rest.rfind(":[") } else { rest.rfind(':') };
        let (local, host) = rest.split_at(split.ok_or_else(wrong)?);
        let host = &host[1..];
        let local = if local.contains(':') { local.to_owned() } else { format!("127.0.0.1:{local}") };
        let own = local.rsplit_once(':').map(|(_, port)| port);
        if own.is_none_or(|port| port.parse::<u16>().is_err()) || port.parse::<u16>().is_err() || host.is_empty() {
            return Err(wrong());
        }
        Ok(Forward { local, target: format!("{host}:{port}") })
    }
}

/// A UDP port here, where its datagrams go, seen from the far end, and what becomes of those that wait: `[address:]port:host:port[,class]`, the
/// class being `reliable`, `latest` or `expires=SECONDS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UdpForward {
    /// The own address and port.
    pub local: String,
    /// The target, `host:port`.
    pub target: String,
    /// What becomes of datagrams that wait, in both directions.
    pub class: Class,
}

impl FromStr for UdpForward {
    type Err = String;

    fn from_str(text: &str) -> Result<UdpForward, String> {
        let (ports, class) = text.split_once(',').map_or((text, None), |(ports, class)| (ports, Some(class)));
        let wrong = |_| format!("{text}: expected [ADDRESS:]PORT:HOST:PORT[,CLASS]");
        let Forward { local, target } = ports.parse().map_err(wrong)?;
        let class = match class {
            None => Some(Class::Expiring(LIFE)),
            Some("reliable") => Some(Class::Reliable),
            Some("latest") => Some(Class::Latest),
            Some(other) => other.strip_prefix("expires=").and_then(life).map(Class::Expiring),
        };
        let no_class = || format!("{text}: datagrams are reliable, latest or expires=SECONDS, 0.001 to 3600");
        Ok(UdpForward { local, target, class: class.ok_or_else(no_class)? })
    }
}

/// Reads a number of seconds.
fn life(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    (0.001..=3600.0).contains(&seconds).then(|| Duration::from_millis((seconds * 1e3).round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_written_as_for_ssh() {
        let forward = |text: &str| text.parse::<Forward>().map(|forward| (forward.local, forward.target));
        let is = |text: &str, local: &str, target: &str| {
            assert_eq!(forward(text), Ok((local.to_owned(), target.to_owned())));
        };
        is("8080:host:80", "127.0.0.1:8080", "host:80");
        is("0.0.0.0:8080:host:80", "0.0.0.0:8080", "host:80");
        is("8080:[::1]:80", "127.0.0.1:8080", "[::1]:80");
        is("[::]:8080:[fe80::1]:80", "[::]:8080", "[fe80::1]:80");
        is("[fe80::2%br0.1]:8080:[fe80::1%eth0]:80", "[fe80::2%br0.1]:8080", "[fe80::1%eth0]:80");
        for bad in ["", "8080", "8080:host", "x:host:80", "8080:host:x", "8080::80", "99999:host:80"] {
            assert!(forward(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn forwards_have_a_class() {
        let read = |text: &str| text.parse::<UdpForward>();
        let ms = |ms| Class::Expiring(Duration::from_millis(ms));
        for (text, class) in [
            ("53:host:53", ms(1000)),
            ("53:host:53,reliable", Class::Reliable),
            ("53:host:53,latest", Class::Latest),
            ("53:host:53,expires=0.25", ms(250)),
        ] {
            let (local, target) = ("127.0.0.1:53".to_owned(), "host:53".to_owned());
            assert_eq!(read(text), Ok(UdpForward { local, target, class }), "{text}");
        }
        assert_eq!(read("[::]:5:[fe80::1]:6,latest").unwrap().target, "[fe80::1]:6");
        for bad in ["53:host", "53:host:53,", "53:host:53,fast", "53:host:53,expires=0", "53:host:53,expires=x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
