//! A packet for these tests, and a queue discipline with fixed surroundings.

use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, FlowId, NodeId, Rate, Rng, Time};
use meshpace_mesh::Queued;
use meshpace_mesh::link::{Attempt, Discipline, LinkConfig, MarkerConfig, QueueConfig};
use meshpace_mesh::mac::{AttemptContent, Category, Timing};
use meshpace_mesh::routing::aodv::{Message, Unreachable};
use meshpace_mesh::{Body, MacConfig, Packet, RadioConfig};

/// The node under test.
pub const ME: NodeId = NodeId(0);

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parcel {
    pub id: u32,
    pub source: NodeId,
    pub destination: NodeId,
    pub flow: u16,
    pub size: u32,
    pub ect: bool,
    pub ce: bool,
    pub ack: bool,
    pub category: Category,
}

impl Default for Parcel {
    fn default() -> Self {
        Parcel {
            id: 0,
            source: ME,
            destination: NodeId(9),
            flow: 0,
            size: 1040,
            ect: false,
            ce: false,
            ack: false,
            category: Category::BestEffort,
        }
    }
}

impl Packet for Parcel {
    fn source(&self) -> NodeId {
        self.source
    }
    fn destination(&self) -> NodeId {
        self.destination
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn size(&self) -> u32 {
        self.size
    }
    fn id(&self) -> u32 {
        self.id
    }
    fn hops(&self) -> u8 {
        1
    }
    fn count_hop(&mut self) {}
    fn decrement_ttl(&mut self) -> bool {
        true
    }
    fn ecn_capable(&self) -> bool {
        self.ect
    }
    fn mark_ce(&mut self) {
        self.ce = true;
    }
    fn is_pure_ack(&self) -> bool {
        self.ack
    }
    fn category(&self) -> Category {
        self.category
    }
}

/// `parcel` queued for `next_hop`.
pub fn towards(next_hop: u16, parcel: Parcel) -> Queued<Parcel> {
    Queued { next_hop: NodeId(next_hop), body: Body::Data(parcel) }
}

/// A broadcast of the routing protocol.
pub fn routing() -> Queued<Parcel> {
    Queued { next_hop: NodeId::BROADCAST, body: Body::Routing(Message::Error(Unreachable::new()).into()) }
}

/// Number of a user's packet.
pub fn id(packet: &Queued<Parcel>) -> u32 {
    data(packet).id
}

/// The user's packet in a queued packet.
pub fn data(packet: &Queued<Parcel>) -> Parcel {
    match packet.body {
        Body::Data(parcel) => parcel,
        _ => panic!("not a user's packet: {packet:?}"),
    }
}

/// The end of an attempt to send `body` to `next_hop`.
pub fn attempt(next_hop: NodeId, body: &Body<Parcel>, air_time: Duration, acknowledged: bool) -> Attempt<'_, Parcel> {
    let (category, rate) = (Category::BestEffort, Rate::from_mbps(2));
    let carried = AttemptContent { category, rate, bytes: 1000, acknowledged: 1000 * u32::from(acknowledged), held: 0 };
    Attempt { next_hop, body, air_time, acknowledged, carried }
}

/// `ms` milliseconds after the start.
pub fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// The link layer of [`ME`].
pub fn discipline(queue: QueueConfig, marker: MarkerConfig) -> Discipline<Parcel> {
    let link = LinkConfig { queue, marker, ..LinkConfig::default() };
    link.check().expect("in range");
    let timing = Timing::new(&MacConfig::default(), &RadioConfig::default());
    Discipline::new(ME, &link, &timing, Rng::stream(1, Purpose::Marking, 0))
}
