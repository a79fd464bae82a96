//! One end of a transport connection, whichever the transport.

use crate::config::Config;
use crate::output::{Machine, Output};
use crate::path::{Arrival, ENDLESS, PathInfo, Role};
use crate::segment::Segment;
use crate::stats::Stats;
use crate::train::Access;
use crate::udp::{Sink, Source};
use crate::{flush, tcp, tpa, train};
use meshpace_core::{Duration, Time};

/// One end of a connection. Segments of another transport than its own are ignored.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per flow end, and the large ones are the common ones")]
pub enum Endpoint {
    /// Either end of a TCP connection, which carries data both ways.
    Tcp(tcp::Connection),
    /// The sending end of UDP.
    UdpSource(Source),
    /// The receiving end of UDP.
    UdpSink(Sink),
    /// Either end of a TPA connection, which carries data both ways.
    Tpa(tpa::Connection),
    /// Either end of a connection of quiet trains.
    Train(train::Connection),
    /// Either end of a connection of Flush, which carries data one way.
    Flush(flush::Connection),
}

impl Endpoint {
    /// A closed sender or a listening receiver. `config` must pass [`Config::check`].
    pub fn new(config: &Config, role: Role) -> Endpoint {
        match (config, role) {
            (Config::Tcp(config), role) => Endpoint::Tcp(tcp::Connection::new(config, role)),
            (Config::Udp(config), Role::Sender) => Endpoint::UdpSource(Source::new(config)),
            (Config::Udp(_), Role::Receiver) => Endpoint::UdpSink(Sink::default()),
            (Config::Tpa(config), role) => Endpoint::Tpa(tpa::Connection::new(config, role)),
            (Config::Train(config), role) => Endpoint::Train(train::Connection::new(config, role)),
            (Config::Flush(config), role) => Endpoint::Flush(flush::Connection::new(config, role)),
        }
    }

    /// The application connects: a TCP or TPA sender polls a SYN next. No effect on receivers.
    pub fn open(&mut self, now: Time) {
        match self {
            Endpoint::Tcp(end) => end.open(now),
            Endpoint::UdpSource(end) => end.open(now),
            Endpoint::Tpa(end) => end.open(now),
            Endpoint::Train(end) => end.open(),
            Endpoint::Flush(end) => end.open(),
            _ => {}
        }
    }

    /// The application hands over `bytes` more to send, at either end of a TCP or TPA connection. No effect on a UDP sink.
    pub fn write(&mut self, now: Time, bytes: u64) {
        match self {
            Endpoint::Tcp(end) => end.write(now, bytes),
            Endpoint::UdpSource(end) => end.write(now, bytes),
            Endpoint::Tpa(end) => end.write(now, bytes),
            Endpoint::Train(end) => end.write(bytes),
            Endpoint::Flush(end) => end.write(bytes),
            _ => {}
        }
    }

    /// The application always has more to send. A UDP source without a rate would never stop sending: it ignores this.
    pub fn write_endless(&mut self, now: Time) {
        match self {
            Endpoint::Tcp(end) => end.write_endless(now),
            Endpoint::Tpa(end) => end.write_endless(now),
            Endpoint::Train(end) => end.write_endless(),
            Endpoint::Flush(end) => end.write_endless(),
            Endpoint::UdpSource(end) if end.has_rate() => end.write(now, ENDLESS),
            _ => {}
        }
    }

    /// The application will write no more. An end that listened and wrote nothing closes by itself after its peer.
    pub fn close(&mut self, now: Time) {
        match self {
            Endpoint::Tcp(end) => end.close(now),
            Endpoint::UdpSource(end) => end.close(now),
            Endpoint::Tpa(end) => end.close(now),
            Endpoint::Train(end) => end.close(),
            Endpoint::Flush(end) => end.close(),
            _ => {}
        }
    }

    /// A segment of this connection arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        match (self, segment) {
            (Endpoint::Tcp(end), Segment::Tcp(segment)) => {
                end.on_segment(now, segment, &[], arrival);
            }
            (Endpoint::UdpSink(end), Segment::Udp(datagram)) => end.on_datagram(datagram),
            (Endpoint::Tpa(end), Segment::Tpa(segment)) => {
                end.on_segment(now, segment, arrival);
            }
            (Endpoint::Train(end), Segment::Train(segment)) => {
                end.on_segment(now, segment, arrival);
            }
            (Endpoint::Flush(end), Segment::Flush(segment)) => end.on_segment(now, segment),
            _ => {}
        }
    }

    /// The network reports that the route to the peer broke. Only TPA heeds it.
    pub fn on_route_failure(&mut self, now: Time) {
        if let Endpoint::Tpa(end) = self {
            end.on_route_failure(now);
        }
    }

    /// The network reports that the route to the peer is back. Only TPA heeds it.
    pub fn on_route_recovered(&mut self, now: Time) {
        if let Endpoint::Tpa(end) = self {
            end.on_route_recovered(now);
        }
    }

    /// True if the endpoint sends nothing, not even a probe, until [`Endpoint::on_route_recovered`]: whoever runs it has
    /// to look for a route meanwhile.
    pub fn is_silent(&self) -> bool {
        matches!(self, Endpoint::Tpa(end) if end.is_silent())
    }

    /// The path to the peer is known or has changed; to be told before the segments that travel it are handled.
    pub fn on_path(&mut self, path: PathInfo) {
        match self {
            Endpoint::Tcp(end) => end.on_path(path),
            Endpoint::Tpa(end) => end.on_path(path),
            Endpoint::Train(end) => end.on_path(path),
            Endpoint::Flush(end) => end.on_path(path),
            _ => {}
        }
    }

    /// Cost and capacity of an access to the channel of the links, where they aggregate. Only quiet trains heed it.
    pub fn on_access(&mut self, access: Access) {
        if let Endpoint::Train(end) = self {
            end.on_access(access);
        }
    }

    /// Payload bytes delivered in order to the application (UDP: received); 0 at a sender of TCP or UDP.
    #[inline]
    pub fn delivered(&self) -> u64 {
        match self {
            Endpoint::Tcp(end) => end.delivered(),
            Endpoint::UdpSink(end) => end.received(),
            Endpoint::Tpa(end) => end.delivered(),
            Endpoint::Train(end) => end.delivered(),
            Endpoint::Flush(end) => end.delivered(),
            Endpoint::UdpSource(_) => 0,
        }
    }

    /// True if the connection has ended: everything acknowledged and closed, or reset. A UDP sink never knows.
    pub fn is_done(&self) -> bool {
        match self {
            Endpoint::Tcp(end) => end.end().is_some(),
            Endpoint::UdpSource(end) => end.is_done(),
            Endpoint::UdpSink(_) => false,
            Endpoint::Tpa(end) => end.is_done(),
            Endpoint::Train(end) => end.is_done(),
            Endpoint::Flush(end) => end.is_done(),
        }
    }

    /// Segments that may be outstanding, by congestion window and limit; none of a transport that has no such window.
    pub fn window(&self) -> Option<f64> {
        match self {
            Endpoint::Tcp(end) => {
                let window = end.sender().window();
                Some(window.cwnd().min(f64::from(window.limit())))
            }
            Endpoint::Tpa(end) => Some(f64::from(end.sender().allowed())),
            Endpoint::UdpSource(_) | Endpoint::UdpSink(_) | Endpoint::Train(_) | Endpoint::Flush(_) => None,
        }
    }

    /// The time between two segments that the pacing keeps now, seconds; none without pacing.
    pub fn interval_s(&self) -> Option<f64> {
        match self {
            Endpoint::Tcp(end) => end.sender().pacer().interval_now().map(Duration::as_secs_f64),
            Endpoint::Tpa(end) => end.sender().pacer().interval_now().map(Duration::as_secs_f64),
            Endpoint::Train(end) => Some(end.sender().interval()),
            Endpoint::Flush(end) => Some(end.sender().interval().as_secs_f64()),
            Endpoint::UdpSource(_) | Endpoint::UdpSink(_) => None,
        }
    }

    /// The counters.
    #[inline]
    pub fn stats(&self) -> &Stats {
        match self {
            Endpoint::Tcp(end) => end.stats(),
            Endpoint::UdpSource(end) => end.stats(),
            Endpoint::UdpSink(end) => end.stats(),
            Endpoint::Tpa(end) => end.stats(),
            Endpoint::Train(end) => end.stats(),
            Endpoint::Flush(end) => end.stats(),
        }
    }
}

impl Machine for Endpoint {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        match self {
            Endpoint::Tcp(end) => end.poll(now).map(Segment::Tcp),
            Endpoint::UdpSource(end) => end.poll(now).map(Segment::Udp),
            Endpoint::UdpSink(_) => Output::Idle,
            Endpoint::Tpa(end) => end.poll(now).map(Segment::Tpa),
            Endpoint::Train(end) => end.poll(now).map(Segment::Train),
            Endpoint::Flush(end) => end.poll(now).map(Segment::Flush),
        }
    }
}
