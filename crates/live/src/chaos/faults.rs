//! What goes wrong in a run, and at which moments of the protocol.

/// Names of the members of an enumeration, in their order.
macro_rules! named {
    ($(#[$head:meta])* $name:ident { $($(#[$doc:meta])* $member:ident = $text:literal,)* }) => {
        $(#[$head])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[$doc])* $member,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$member,)*];

            /// As it is printed.
            pub fn name(self) -> &'static str {
                match self { $($name::$member => $text,)* }
            }
        }
    };
}

pub(super) use named;

named! {
    /// What goes wrong.
    Fault {
        /// A datagram is lost.
        Drop = "drop",
        /// The wire carries nothing for a while.
        Outage = "outage",
        /// A datagram comes several times.
        Repeat = "repeat",
        /// It is overtaken.
        Delay = "delay",
        /// A copy with another bit comes, before it or behind it.
        Corrupt = "corrupt",
        /// A copy of its beginning comes.
        Cut = "cut",
        /// A datagram of before comes again.
        Replay = "replay",
        /// A copy comes from another address, and is faster.
        Elsewhere = "elsewhere",
        /// Somebody says that the peer does not know the connection.
        Stray = "stray",
        /// Somebody says that the listener refuses it.
        Refuse = "refuse",
        /// Random bytes come.
        Guess = "guess",
        /// The network says that nobody has the port.
        NoPort = "no-port",
        /// The network says that there is no way.
        NoRoute = "no-route",
        /// The network says that the datagram is too big.
        TooBig = "too-big",
        /// The process of who has sent it ends without a word, and begins anew.
        Crash = "crash",
        /// That of its peer.
        CrashPeer = "crash-peer",
        /// The application of who has sent it lets go.
        Abort = "abort",
        /// That of its peer.
        AbortPeer = "abort-peer",
        /// The process of who has sent it does not run for a while: stopped, or its machine asleep. To it the clock makes a step.
        Stop = "stop",
        /// That of its peer.
        StopPeer = "stop-peer",
        /// The kernel of who has sent it takes no more for a while.
        FullBuffer = "full-buffer",
        /// The application of its peer does not read for a while.
        SlowReader = "slow-reader",
        /// That of who has sent it does not write.
        SlowWriter = "slow-writer",
        /// Who has opened the connection gets another address.
        Move = "move",
        /// Nobody listens for a while.
        Unlisten = "unlisten",
        /// Strangers begin handshakes that they do not finish.
        Crowd = "crowd",
        /// From now on the path carries only shorter packets.
        Narrow = "narrow",
    }
}

named! {
    /// A moment of the protocol: what a datagram is that leaves.
    Moment {
        /// The first request.
        Request = "request",
        /// The listener's cookie.
        Challenge = "challenge",
        /// The request that shows it.
        Shown = "shown",
        /// The acceptance.
        Acceptance = "acceptance",
        /// A refusal.
        Refusal = "refusal",
        /// A stray.
        Stray = "stray",
        /// The first of a direction.
        First = "first",
        /// One in the middle.
        Data = "data",
        /// The next after one that was lost.
        Gap = "gap",
        /// The last under a key.
        LastOfKey = "last-of-key",
        /// The first under the next.
        FirstOfKey = "first-of-key",
        /// One while a window is closed.
        ZeroWindow = "zero-window",
        /// The first after 5 s of silence.
        Idle = "idle",
        /// A question for a sign of life.
        Question = "question",
        /// A question or an answer about an address.
        Path = "path",
        /// The end of a direction.
        End = "end",
        /// A reset.
        Reset = "reset",
        /// One of a connection that is over.
        Late = "late",
        /// A stream of a tunnel begins.
        StreamBegins = "stream-begins",
        /// One ends.
        StreamEnds = "stream-ends",
        /// One is broken off.
        StreamReset = "stream-reset",
    }
}

impl Moment {
    /// Whether it is part of opening a connection.
    pub fn is_opening(self) -> bool {
        self <= Moment::Stray
    }

    /// Whether it is a moment of a tunnel's session.
    pub fn is_of_tunnel(self) -> bool {
        self >= Moment::StreamBegins
    }
}

/// What a run is allowed to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// Nothing but what a network and slow machines do for a while: all has to arrive.
    Weather,
    /// Somebody reads everything and forges, over a network that loses little: all has to arrive.
    Observer,
    /// Anything: connections may fail, and both ends have to hear of it.
    Rough,
    /// The peers have the keys and abuse them (`hostile`): honest clients of the same port have to be served.
    Hostile,
}

/// What protects a run's datagrams, as far as it decides what can be forged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Protected {
    /// Datagrams are encrypted.
    pub sealed: bool,
    /// The peer is known by its keys.
    pub known: bool,
}

impl Fault {
    /// Whether it makes sense at `moment`.
    pub fn fits(self, moment: Moment) -> bool {
        match self {
            Fault::Refuse => moment.is_opening(),
            // What is not sealed can be cut; a request without its padding makes a narrow path look wide.
            Fault::Cut | Fault::Stray | Fault::NoPort | Fault::NoRoute => !moment.is_opening(),
            Fault::Move => !moment.is_opening() && moment != Moment::Late,
            Fault::Unlisten => moment.is_opening(),
            _ => true,
        }
    }

    /// Whether a run may have it at `moment`.
    pub fn may(self, moment: Moment, mood: Mood, protected: Protected) -> bool {
        let Protected { sealed, known } = protected;
        let opening = moment.is_opening();
        let may = match self {
            Fault::Drop | Fault::Repeat | Fault::Delay | Fault::SlowReader | Fault::SlowWriter | Fault::Guess => true,
            // Without encryption who reads can forge anything: nothing is promised.
            // Elsewhere than in the request that shows a cookie, which is for nothing else, that is so of opening without known keys.
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

/// Every fault at every moment where it makes sense.
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
