//! Faults of a run, and the moments of the protocol at which they can occur.

/// Defines an enumeration with the names of its members.
macro_rules! named {
    ($(#[$head:meta])* $name:ident { $($(#[$doc:meta])* $member:ident = $text:literal,)* }) => {
        $(#[$head])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[$doc])* $member,)* }

        impl $name {
            /// All members in order.
            pub const ALL: &[$name] = &[$($name::$member,)*];

            /// Name as it is printed.
            pub fn name(self) -> &'static str {
                match self { $($name::$member => $text,)* }
            }
        }
    };
}

pub(super) use named;

named! {
    /// A fault.
    Fault {
        /// The datagram is lost.
        Drop = "drop",
        /// The wire drops everything for a while, in one direction or in both.
        Outage = "outage",
        /// The datagram arrives several times.
        Repeat = "repeat",
        /// The datagram is delayed, so that later datagrams overtake it.
        Delay = "delay",
        /// A copy with one changed bit arrives, before or after the datagram.
        Corrupt = "corrupt",
        /// A truncated copy arrives.
        Cut = "cut",
        /// A copy of the datagram, and sometimes one of an earlier datagram, arrives again later.
        Replay = "replay",
        /// A copy from another source address arrives, before or after the datagram.
        Elsewhere = "elsewhere",
        /// The sender gets forged messages that the peer does not know the connection.
        Stray = "stray",
        /// The opening end gets a forged refusal of its request.
        Refuse = "refuse",
        /// A datagram with random bytes arrives.
        Guess = "guess",
        /// The network reports that the port is not in use.
        NoPort = "no-port",
        /// The network reports that there is no route.
        NoRoute = "no-route",
        /// The network reports that the datagram is too large.
        TooBig = "too-big",
        /// The process of the sender ends without closing its connections, and another one starts.
        Crash = "crash",
        /// The process of the receiver ends without closing its connections, and another one
        /// starts.
        CrashPeer = "crash-peer",
        /// The application of the sender aborts its connections.
        Abort = "abort",
        /// The application of the receiver aborts its connections.
        AbortPeer = "abort-peer",
        /// The process of the sender does not run for a while, because it is stopped or its machine
        /// is suspended. The process sees a jump of the clock.
        Stop = "stop",
        /// The process of the receiver does not run for a while.
        StopPeer = "stop-peer",
        /// The kernel of the sender accepts no datagrams for a while.
        FullBuffer = "full-buffer",
        /// The application of the receiver does not read for a while.
        SlowReader = "slow-reader",
        /// The application of the sender does not write for a while.
        SlowWriter = "slow-writer",
        /// The opening end gets another address.
        Move = "move",
        /// The listening end accepts no connections for a while.
        Unlisten = "unlisten",
        /// Unknown hosts begin handshakes that they do not complete.
        Crowd = "crowd",
        /// From now on the path carries only shorter packets, without a report.
        Narrow = "narrow",
    }
}

named! {
    /// Moment of the protocol: the kind of a datagram that is sent.
    Moment {
        /// A request without a cookie.
        Request = "request",
        /// The listener's challenge with a cookie.
        Challenge = "challenge",
        /// A request with the cookie.
        Shown = "shown",
        /// An acceptance.
        Acceptance = "acceptance",
        /// A refusal.
        Refusal = "refusal",
        /// A message that the tag of a datagram is unknown.
        Stray = "stray",
        /// The first datagram of a direction.
        First = "first",
        /// A datagram for which none of the other moments applies.
        Data = "data",
        /// The datagram after one that was lost.
        Gap = "gap",
        /// The last datagram under a key.
        LastOfKey = "last-of-key",
        /// The first datagram under the next key.
        FirstOfKey = "first-of-key",
        /// A datagram while a window is closed at one of the ends.
        ZeroWindow = "zero-window",
        /// The first datagram after 5 s of silence.
        Idle = "idle",
        /// A probe of the peer.
        Question = "question",
        /// A path challenge or a path response.
        Path = "path",
        /// The end of a direction.
        End = "end",
        /// A reset.
        Reset = "reset",
        /// A datagram of a connection that has ended.
        Late = "late",
        /// A stream of a tunnel is opened.
        StreamBegins = "stream-begins",
        /// A direction of a tunnel's stream ends.
        StreamEnds = "stream-ends",
        /// A stream of a tunnel is reset.
        StreamReset = "stream-reset",
    }
}

impl Moment {
    /// True if the moment belongs to the opening of a connection.
    pub fn is_opening(self) -> bool {
        self <= Moment::Stray
    }

    /// True if the moment belongs to a tunnel's session.
    pub fn is_of_tunnel(self) -> bool {
        self >= Moment::StreamBegins
    }
}

/// Kinds of faults that a run may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// Only temporary effects of the network and of slow machines: all data have to arrive.
    Weather,
    /// An observer reads everything and forges, over a network that loses few datagrams: all data
    /// have to arrive.
    Observer,
    /// All faults: connections may fail, and both ends have to learn that.
    Rough,
    /// The peers have the keys and abuse them (`hostile`): honest clients of the same port have to
    /// be served.
    Hostile,
}

/// Protection of a run's datagrams, as far as it decides what can be forged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protected {
    /// True if datagrams are encrypted.
    pub sealed: bool,
    /// True if the peer authenticates with known keys.
    pub known: bool,
}

impl Fault {
    /// True if the fault makes sense at `moment`.
    pub fn fits(self, moment: Moment) -> bool {
        match self {
            Fault::Refuse => moment.is_opening(),
            // A handshake message that is not encrypted can be truncated, and a request without its
            // padding makes a narrow path look wide.
            Fault::Cut | Fault::Stray | Fault::NoPort | Fault::NoRoute => !moment.is_opening(),
            Fault::Move => !moment.is_opening() && moment != Moment::Late,
            Fault::Unlisten => moment.is_opening(),
            _ => true,
        }
    }

    /// True if a run with this mood and protection may have the fault at `moment`.
    pub fn may(self, moment: Moment, mood: Mood, protected: Protected) -> bool {
        let Protected { sealed, known } = protected;
        let opening = moment.is_opening();
        let may = match self {
            Fault::Drop | Fault::Repeat | Fault::Delay | Fault::SlowReader | Fault::SlowWriter | Fault::Guess => true,
            // Without encryption an attacker that can read can forge anything, so no outcome is
            // guaranteed. Without known keys that is also true while the connection is opened. The
            // exception is the request with the cookie, because the cookie is valid only for the
            // unchanged request.
            Fault::Corrupt => sealed && (known || !opening || moment == Moment::Shown),
            Fault::Cut | Fault::Replay | Fault::Elsewhere => sealed,
            Fault::Refuse => known || mood == Mood::Rough,
            Fault::Unlisten => mood == Mood::Rough || (mood == Mood::Weather && known),
            Fault::Stray | Fault::NoPort | Fault::NoRoute => sealed && mood != Mood::Weather,
            Fault::TooBig => sealed && mood != Mood::Weather && (!opening || mood == Mood::Rough),
            Fault::Outage | Fault::Stop | Fault::StopPeer | Fault::FullBuffer => mood != Mood::Observer,
            Fault::Move => mood == Mood::Rough || (mood == Mood::Weather && sealed),
            Fault::Crowd => !known,
            Fault::Crash | Fault::CrashPeer | Fault::Abort | Fault::AbortPeer | Fault::Narrow => mood == Mood::Rough,
        };
        may && self.fits(moment)
    }
}

/// All combinations of moment and fault that make sense.
pub fn cells() -> impl Iterator<Item = (Moment, Fault)> {
    let at = |moment: Moment| Fault::ALL.iter().map(move |fault| (moment, *fault));
    Moment::ALL.iter().flat_map(move |moment| at(*moment)).filter(|(moment, fault)| fault.fits(*moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_can_come_about() {
        let protections = [(false, false), (true, false), (true, true)];
        let protections = protections.map(|(sealed, known)| Protected { sealed, known });
        for (moment, fault) in cells() {
            assert!(protections.iter().any(|one| fault.may(moment, Mood::Rough, *one)), "{moment:?} {fault:?}");
        }
        assert!(cells().count() > 400, "{}", cells().count());
    }

    #[test]
    fn weather_ends_nothing() {
        let all = Protected { sealed: true, known: true };
        for fault in [Fault::Crash, Fault::Abort, Fault::NoPort, Fault::Narrow] {
            assert!(!fault.may(Moment::Data, Mood::Weather, all));
        }
    }
}
