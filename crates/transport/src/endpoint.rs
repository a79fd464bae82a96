//! One end of a transport connection of any transport.

use crate::config::Config;
use crate::output::{Machine, Output};
use crate::path::{Arrival, ENDLESS, PathInfo, Role};
use crate::segment::Segment;
use crate::stats::Stats;
use crate::train::Access;
use crate::udp::{Sink, Source};
use crate::{flush, tcp, tpa, train};
use meshpace_core::{Duration, Time};

/// One end of a connection. It ignores segments of other transports.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one per flow end, and the large ones are the common ones")]
pub enum Endpoint {
    /// Either end of a TCP connection. Data flows in both directions.
    Tcp(tcp::Connection),
    /// The sending end of a UDP flow.
    UdpSource(Source),
    /// The receiving end of a UDP flow.
    UdpSink(Sink),
    /// Either end of a TPA connection. Data flows in both directions.
    Tpa(tpa::Connection),
    /// Either end of a connection of quiet trains.
    Train(train::Connection),
    /// Either end of a Flush connection. Data flows in one direction.
    Flush(flush::Connection),
}

impl Endpoint {
    /// Creates a closed sender or a listening receiver. `config` must pass [`Config::check`].
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

    /// The application opens the connection. The next poll of a sender returns a SYN; a UDP source
    /// may send from now on. This has no effect on receivers.
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

    /// The application writes `bytes` more to send. Both ends of TCP, TPA and quiet trains may
    /// write. This has no effect on the receiving end of UDP or Flush.
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

    /// The application always has more to send. A UDP source without a rate ignores this, because
    /// it would never stop sending.
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

    /// The application will write no more. With the default parameters an end that listened and
    /// wrote nothing closes by itself after its peer has closed.
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

    /// Handles a segment of this connection that arrived.
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

    /// The network reports that the route to the peer is lost. Only TPA uses this report.
    pub fn on_route_failure(&mut self, now: Time) {
        if let Endpoint::Tpa(end) = self {
            end.on_route_failure(now);
        }
    }

    /// The network reports that the route to the peer is available again. Only TPA uses this
    /// report.
    pub fn on_route_recovered(&mut self, now: Time) {
        if let Endpoint::Tpa(end) = self {
            end.on_route_recovered(now);
        }
    }

    /// True if the endpoint sends nothing, not even a probe, until [`Endpoint::on_route_recovered`]
    /// is called. The caller has to look for a route meanwhile.
    pub fn is_silent(&self) -> bool {
        matches!(self, Endpoint::Tpa(end) if end.is_silent())
    }

    /// The path to the peer has become known or has changed. To be called before segments that
    /// travel this path are handled.
    pub fn on_path(&mut self, path: PathInfo) {
        match self {
            Endpoint::Tcp(end) => end.on_path(path),
            Endpoint::Tpa(end) => end.on_path(path),
            Endpoint::Train(end) => end.on_path(path),
            Endpoint::Flush(end) => end.on_path(path),
            _ => {}
        }
    }

    /// Cost and capacity of an access to the channel, for links that aggregate frames. Only quiet
    /// trains use it.
    pub fn on_access(&mut self, access: Access) {
        if let Endpoint::Train(end) = self {
            end.on_access(access);
        }
    }

    /// Payload bytes delivered in order to the application; for a UDP sink the bytes received, for
    /// a UDP source 0.
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

    /// True if the connection has ended: everything is acknowledged and closed, or it was reset. A
    /// UDP source is done when it has sent everything and is closed. A UDP sink never knows.
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

    /// Number of segments that may be outstanding, by congestion window and limit. `None` for a
    /// transport without such a window.
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

    /// Current pacing interval between two segments, in seconds. `None` without pacing.
    pub fn interval_s(&self) -> Option<f64> {
        match self {
            Endpoint::Tcp(end) => end.sender().pacer().interval_now().map(Duration::as_secs_f64),
            Endpoint::Tpa(end) => end.sender().pacer().interval_now().map(Duration::as_secs_f64),
            Endpoint::Train(end) => Some(end.sender().interval()),
            Endpoint::Flush(end) => Some(end.sender().interval().as_secs_f64()),
            Endpoint::UdpSource(_) | Endpoint::UdpSink(_) => None,
        }
    }

    /// The counters of this end.
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
