//! A hostile peer: it runs the honest code with valid keys, and in addition the actions of its
//! plan.

use super::attack::Attack;
use super::machine::Machine;
use super::plan::{PeerPlan, own, target};
use super::segments::{self, Known};
use super::spy::Spy;
use meshpace_core::{Duration, Rng, Time};
use meshpace_session::connection::forging::Forgery;
use meshpace_session::engine::AnySegment;
use meshpace_session::handshake::{Kind, Opening, Tag, tag_of};
use meshpace_session::path_frame::PathFrame;
use meshpace_session::seal::is_piece;
use meshpace_session::settings::Settings;
use meshpace_transport::flags::Flags;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Maximum number of its own datagrams that the peer stores for replay.
const KEPT: usize = 8;

/// Maximum number of connections that the peer opens for one action.
const MANY: u64 = 4;
/// Maximum number of connections that the peer opens in total. Each of its three hosts may have at
/// most 7.
const MOST_OPENED: u64 = 32;

/// Number of path challenges, or of probes, that the peer sends at once: more than are answered.
const FLOOD: u32 = 4;

/// Number of responses that the peer guesses at once.
const GUESSES: usize = 6;

/// Number of pieces of one byte that the peer sends at once.
const TINY: u32 = 16;

/// Number of blind acknowledgements that the peer sends at once.
const BLIND: u32 = 6;

/// Content of the pieces that the peer sends.
static PAYLOAD: [u8; 1_200] = [0x2a; 1_200];

/// Acknowledgements of what the peer knows was never sent.
#[derive(Debug, Default)]
struct Lies {
    /// True if the peer will use the next opportunity for a false acknowledgement.
    is_due: bool,
    /// True if the peer has missed something that was sent to it, so that it cannot know what was
    /// never sent.
    has_missed: bool,
    /// Connections in which the peer has sent a false acknowledgement, by the tags of the ends that
    /// have opened them.
    told: Vec<Tag>,
}

/// State of a hostile peer.
pub(super) struct Peer {
    pub(super) machine: Machine,
    pub(super) plan: PeerPlan,
    pub(super) own: [SocketAddr; 4],
    /// Address from which the peer sends.
    poses_as: SocketAddr,
    victims: Vec<SocketAddr>,
    /// Actions to come, by time and order: the action, the number of repetitions, and the interval
    /// between them.
    actions: BTreeMap<(Time, usize), (Attack, u32, Duration)>,
    /// Time since which the peer receives nothing any more.
    pub(super) deaf_since: Option<Time>,
    stalls_until: Time,
    slow_until: Time,
    /// Time until which the peer completes no handshake.
    unfinished_until: Time,
    /// Number of steps that blind acknowledgements are ahead.
    ahead: u64,
    lies: Lies,
    /// True if the peer could acknowledge segments that it has not received, because it can predict
    /// all numbers of a connection.
    pub(super) foresees: bool,
    spy: Spy,
    sent: VecDeque<Vec<u8>>,
    leaving: Vec<(SocketAddr, Vec<u8>)>,
    /// Tags of connections that the peer has opened and the world does not know yet.
    pub(super) opened: Vec<Tag>,
    left_to_open: u64,
    pieces: Vec<(Tag, u64)>,
    rng: Rng,
    /// Number of times that each action was taken.
    pub(super) taken: Vec<u32>,
}

impl Peer {
    pub(super) fn new(
        index: usize,
        plan: PeerPlan,
        settings: Settings,
        (port_rng, rng): (Rng, Rng),
        (listens, victims): (bool, Vec<SocketAddr>),
    ) -> Peer {
        let own = own(index);
        let actions = plan.steps.iter().enumerate();
        let actions = actions.map(|(order, step)| ((step.at, order), (step.attack, step.count, step.every))).collect();
        Peer {
            machine: Machine::new(own[0], settings, port_rng, listens, plan.habits.clone()),
            own,
            poses_as: own[0],
            victims,
            actions,
            deaf_since: None,
            stalls_until: Time::ZERO,
            slow_until: Time::ZERO,
            unfinished_until: Time::ZERO,
            ahead: 0,
            lies: Lies::default(),
            foresees: false,
            spy: Spy::default(),
            sent: VecDeque::new(),
            leaving: Vec::new(),
            opened: Vec::new(),
            left_to_open: MOST_OPENED,
            pieces: Vec::new(),
            rng,
            taken: vec![0; Attack::ALL.len()],
            plan,
        }
    }

    /// Opens a connection to the end under attack, unless the peer has opened enough.
    pub(super) fn open(&mut self, now: Time) {
        if self.left_to_open == 0 {
            return;
        }
        self.left_to_open -= 1;
        let (inner, habits) = (self.plan.inner, self.plan.habits.clone());
        let (_, tag) = self.machine.open(now, target(), inner, habits);
        self.opened.push(tag);
        self.drain();
    }

    /// Handles a datagram that has arrived at one of the peer's own addresses. Returns false if the
    /// peer does not receive it.
    pub(super) fn receive(&mut self, now: Time, bytes: &mut [u8]) -> bool {
        if self.deaf_since.is_some() || now < self.stalls_until {
            self.lies.has_missed = true;
            return false;
        }
        let is_acceptance = tag_of(bytes) == Some(0)
            && Opening::decode(bytes).is_some_and(|(opening, _)| opening.kind == Kind::Acceptance);
        if is_acceptance && now < self.unfinished_until {
            return false;
        }
        // A segment that arrives in pieces is not read here.
        self.lies.has_missed |= tag_of(bytes) != Some(0) && is_piece(bytes);
        let seen = self.spy.see(bytes, self.plan.inner, self.machine.port.keys());
        self.foresees |= seen.as_ref().is_some_and(|(_, heard, _)| heard.is_predictable(self.plan.inner));
        if let Some((tag, heard, segment)) = seen
            && self.lies.is_due
            && !self.lies.has_missed
            && self.tell_lie(tag, &heard, &segment)
        {
            // The honest code does not get the segment, because its acknowledgement could turn the
            // false one into an acknowledgement of older data.
            return true;
        }
        self.machine.receive(now, target(), bytes);
        self.drain();
        true
    }

    /// Sends a false acknowledgement in the connection with this tag at this end, if `segment`
    /// allows one after what was `heard`. Returns whether it was sent.
    fn tell_lie(&mut self, tag: Tag, heard: &Known, segment: &AnySegment) -> bool {
        let parties = &self.machine.port.parties;
        let party = parties.iter().find(|(_, party)| party.session.tag() == tag && !party.session.is_over());
        let Some((id, party)) = party else { return false };
        let (id, opener, peer_tag) = (*id, party.application.opener, party.session.peer_tag());
        let said = peer_tag.map_or_else(Known::default, |peer_tag| *self.spy.known(peer_tag));
        let Some(lie) = segments::lie(&said, heard, segment) else { return false };
        self.lies.is_due = false;
        self.say(id, lie);
        self.lies.told.push(opener);
        true
    }

    /// Takes the connections in which the peer has sent a false acknowledgement, by the tags of the
    /// ends that have opened them.
    pub(super) fn take_lies(&mut self) -> Vec<Tag> {
        std::mem::take(&mut self.lies.told)
    }

    /// Does everything that is due, and takes the due actions of the plan. Returns these actions.
    pub(super) fn wake(&mut self, now: Time) -> Vec<Attack> {
        let reads = now >= self.slow_until;
        if reads != self.machine.reads {
            self.machine.reads = reads;
            self.machine.ids().into_iter().for_each(|id| self.machine.work(id, now));
        }
        self.machine.wake(now);
        self.drain();
        let mut taken = Vec::new();
        while let Some(entry) = self.actions.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, order), (attack, left, every)) = entry.remove_entry();
            self.act(now, attack);
            taken.push(attack);
            if left > 1 {
                // The added nanosecond makes all times differ, so that an action with an interval
                // of zero also ends.
                let at = at + every + Duration(1);
                self.actions.insert((at, order), (attack, left - 1, every));
            }
        }
        taken
    }

    /// Time of the next call of [`Peer::wake`].
    pub(super) fn next_wakeup(&self) -> Time {
        let acts = self.actions.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        let reads = if self.machine.reads { Time::NEVER } else { self.slow_until };
        self.machine.next_wakeup().min(acts).min(reads)
    }

    /// Takes the datagrams that wait to be sent, each with its source address.
    pub(super) fn leaving(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.leaving)
    }

    /// Takes the datagrams of the honest code, which are sent from the current source address.
    fn drain(&mut self) {
        for (_, bytes) in self.machine.port.leaving() {
            self.spy.see(&bytes, self.plan.inner, self.machine.port.keys());
            self.sent.truncate(KEPT - 1);
            self.sent.push_front(bytes.clone());
            self.leaving.push((self.poses_as, bytes));
        }
    }

    /// A random open connection of the peer, with the tags of both ends.
    fn connection(&mut self) -> Option<(u64, Tag, Tag)> {
        let parties = self.machine.port.parties.iter();
        let open = parties.filter(|(_, party)| !party.session.is_over());
        let open = open.filter_map(|(id, party)| Some((*id, party.session.tag(), party.session.peer_tag()?)));
        let open: Vec<_> = open.collect();
        (!open.is_empty()).then(|| open[self.rng.below(open.len() as u64) as usize])
    }

    /// Sends `content` in a connection, from any source address. Returns the number of the
    /// datagram, or 0 without a connection.
    fn forge(&mut self, id: u64, from: SocketAddr, content: Forgery<'_>) -> u64 {
        self.drain();
        let port = &mut self.machine.port;
        let number = port.parties.get_mut(&id).and_then(|party| party.session.forge(content, &mut port.out));
        self.leaving.extend(port.leaving().into_iter().map(|(_, bytes)| (from, bytes)));
        number.unwrap_or(0)
    }

    fn say(&mut self, id: u64, segment: AnySegment) {
        let length = segment.range().1;
        let number = self.forge(id, self.poses_as, Forgery::Segment(segment, &PAYLOAD[..length]));
        let party = self.machine.port.parties.get(&id);
        if let (AnySegment::Bbr(said), Some(tag)) = (&segment, party.and_then(|party| party.session.peer_tag()))
            && said.carries()
        {
            self.pieces.push((tag, number));
        }
    }

    /// Takes the pieces of BBR streams that the peer has invented, by tag and number of their
    /// datagrams.
    pub(super) fn take_pieces(&mut self) -> Vec<(Tag, u64)> {
        std::mem::take(&mut self.pieces)
    }

    fn victim(&mut self) -> SocketAddr {
        self.victims[self.rng.below(self.victims.len() as u64) as usize]
    }

    /// Moves all connections to another of the peer's own addresses.
    fn move_all(&mut self) {
        self.drain();
        self.poses_as = self.own[self.rng.below(4) as usize];
        for id in self.machine.ids() {
            self.say(id, segments::question(self.plan.inner));
        }
    }

    fn act(&mut self, now: Time, attack: Attack) {
        self.taken[attack as usize] += 1;
        match attack {
            Attack::Move => self.move_all(),
            Attack::Stall => self.stalls_until = now + Duration::from_millis(self.rng.below(5_000)),
            Attack::SlowReader => self.slow_until = now + Duration::from_millis(1 + self.rng.below(5_000)),
            Attack::ManyConnections => (0..1 + self.rng.below(MANY)).for_each(|_| self.open(now)),
            Attack::Unfinished => {
                self.unfinished_until = now + Duration::from_secs(2);
                (0..1 + self.rng.below(MANY)).for_each(|_| self.open(now));
            }
            _ => {
                if let Some(at) = self.connection() {
                    self.attack(now, attack, at);
                }
            }
        }
        self.drain();
    }

    /// Takes an action within a connection, which is given by its number and tags.
    fn attack(&mut self, now: Time, attack: Attack, (id, tag, peer_tag): (u64, Tag, Tag)) {
        let inner = self.plan.inner;
        match attack {
            Attack::GuessResponse => {
                let victim = self.victim();
                let number = self.forge(id, victim, Forgery::Segment(segments::question(inner), &[]));
                let random = self.rng.next_u64();
                let guesses = [number, !number, number + 1, number.wrapping_sub(1), 0, random];
                self.respond(id, victim, guesses);
            }
            Attack::ReplayResponse => {
                let victim = self.victim();
                self.forge(id, victim, Forgery::Segment(segments::question(inner), &[]));
                let seen: Vec<u64> = self.spy.challenges.iter().take(GUESSES).copied().collect();
                self.respond(id, victim, seen);
            }
            Attack::ChallengeFlood => {
                let from = if self.rng.below(2) == 0 { self.victim() } else { self.poses_as };
                for _ in 0..FLOOD {
                    let number = self.rng.next_u64();
                    self.forge(id, from, Forgery::Path(PathFrame::Challenge(number)));
                }
            }
            Attack::ReplayElsewhere => {
                let victim = self.victim();
                let copies: Vec<_> = self.sent.iter().map(|bytes| (victim, bytes.clone())).collect();
                self.leaving.extend(copies);
            }
            Attack::SynFlood => (0..FLOOD).for_each(|_| self.say(id, segments::question(inner))),
            Attack::Reset => self.say(id, segments::empty(inner, Flags::RST)),
            Attack::LetGo => {
                if let Some(party) = self.machine.port.parties.get_mut(&id) {
                    party.exchange.let_go();
                }
                self.machine.work(id, now);
            }
            Attack::Forget => {
                if let Some(party) = self.machine.port.parties.remove(&id) {
                    let session = party.session;
                    let place = session.has_place();
                    self.machine.port.endpoint.forget(session.tag(), session.peer(), session.peer_tag(), place);
                }
            }
            Attack::AcknowledgeBlindly => {
                self.deaf_since.get_or_insert(now);
                (0..BLIND).for_each(|_| self.acknowledge(attack, id, (tag, peer_tag)));
            }
            Attack::AcknowledgeSkipped => {
                self.lies.is_due = true;
                // The acknowledgement is sent at once in half of the cases, because the connection
                // may end after the first one.
                if self.rng.below(2) == 0 {
                    self.acknowledge(attack, id, (tag, peer_tag));
                }
            }
            Attack::AcknowledgeUnsent => self.acknowledge(attack, id, (tag, peer_tag)),
            Attack::ZeroWindow | Attack::LargestWindow | Attack::ShrinkingWindow => {
                self.ahead += 1;
                let window = match attack {
                    Attack::ZeroWindow => 0,
                    Attack::LargestWindow => u16::MAX,
                    _ => 200_u64.saturating_sub(7 * self.ahead) as u16,
                };
                let (said, heard) = (*self.spy.known(peer_tag), *self.spy.known(tag));
                self.say(id, segments::announcement(inner, (&said, &heard), window));
            }
            Attack::Scatter => self.scatter(id, (tag, peer_tag)),
            Attack::TinyPieces => (0..TINY).for_each(|_| self.send_piece(attack, id, (tag, peer_tag))),
            _ => self.send_piece(attack, id, (tag, peer_tag)),
        }
    }

    fn respond(&mut self, id: u64, from: SocketAddr, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.forge(id, from, Forgery::Path(PathFrame::Response(number)));
        }
    }

    /// Acknowledges segments that the peer has not received.
    fn acknowledge(&mut self, attack: Attack, id: u64, (tag, peer_tag): (Tag, Tag)) {
        let ahead = match attack {
            Attack::AcknowledgeSkipped => 0,
            Attack::AcknowledgeUnsent => 1 << self.rng.below(40),
            _ => {
                self.ahead += 1;
                self.ahead
            }
        };
        let (said, heard) = (*self.spy.known(peer_tag), *self.spy.known(tag));
        let segment = segments::acknowledgement(self.plan.inner, (&said, &heard), ahead, &mut self.rng);
        self.say(id, segment);
    }

    /// Sends bytes of the peer's stream spread over the whole window.
    fn scatter(&mut self, id: u64, (tag, peer_tag): (Tag, Tag)) {
        let heard = *self.spy.known(tag);
        let said = self.spy.known(peer_tag);
        let span = segments::room(self.plan.inner, said, &heard) / u64::from(TINY);
        for number in 0..u64::from(TINY) {
            let shift = (number * span + self.rng.below(span.max(1))) as i64;
            let said = self.spy.known(peer_tag);
            let segment = segments::piece(self.plan.inner, (said, heard), shift, (1, Flags::NONE), &mut self.rng);
            self.say(id, segment);
        }
    }

    /// Sends a piece of the peer's stream at an offset where no honest peer would send it.
    fn send_piece(&mut self, attack: Attack, id: u64, (tag, peer_tag): (Tag, Tag)) {
        let rng = &mut self.rng;
        let at = |most: u64, rng: &mut Rng| rng.below(most) as i64;
        let (shift, length) = match attack {
            Attack::TinyPieces => (1 + 2 * at(20_000, rng), 1),
            Attack::Overlap => (at(4_000, rng) - 2_000, 1 + rng.below(1_199)),
            Attack::BeyondWindow => (60_000 + at(1 << 23, rng), 1 + rng.below(1_199)),
            Attack::HugeOffset => ((1 << 48) - 2_000 + at(2_000, rng), 1 + rng.below(1_199)),
            _ => (at(3_000, rng) - 1_500, rng.below(3)),
        };
        let flags = if attack == Attack::OddFin { Flags::FIN } else { Flags::NONE };
        let heard = *self.spy.known(tag);
        let said = self.spy.known(peer_tag);
        let segment = segments::piece(self.plan.inner, (said, heard), shift, (length as u16, flags), &mut self.rng);
        self.say(id, segment);
    }
}
