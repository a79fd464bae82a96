//! The routing of a whole mesh behind one interface.

use super::actions::{Action, Actions, DropReason};
use super::config::RoutingConfig;
use super::message::Message;
use super::protocol::Protocol;
use super::static_routes::StaticRoutes;
use super::table::routing_protocols;
use crate::packet::Packet;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Actions that routing asks of a node, in order.
#[derive(Clone, Debug)]
pub struct ActionList<P> {
    /// The actions.
    pub actions: Vec<Action<P, Message>>,
    /// Searches for routes that have begun so far, at all nodes.
    pub searches: u64,
}

impl<P> Default for ActionList<P> {
    fn default() -> Self {
        ActionList { actions: Vec::new(), searches: 0 }
    }
}

impl<P, M: Into<Message>> Actions<P, M> for ActionList<P> {
    #[inline]
    fn forward(&mut self, packet: P, next_hop: NodeId, delay: Duration) {
        self.actions.push(Action::Forward { packet, next_hop, delay });
    }
    fn send(&mut self, message: M, next_hop: NodeId, delay: Duration) {
        self.actions.push(Action::Send { message: message.into(), next_hop, delay });
    }
    fn drop_packet(&mut self, packet: P, reason: DropReason) {
        self.actions.push(Action::Drop { packet, reason });
    }
    fn flush_queue(&mut self, next_hop: NodeId) {
        self.actions.push(Action::Flush { next_hop });
    }
    fn search_began(&mut self, _destination: NodeId) {
        self.searches += 1;
    }
    fn route_lost(&mut self, destination: NodeId) {
        self.actions.push(Action::Notice { destination, found: false });
    }
    fn route_found(&mut self, destination: NodeId) {
        self.actions.push(Action::Notice { destination, found: true });
    }
}

macro_rules! router {
    ($($name:ident $key:literal $node:ty, $config:ty, $message:ty;)*) => {
        /// The routing of a mesh: shared static routes, or a state machine per node. Calls are those of [`Protocol`] with
        /// the node they concern.
        #[derive(Clone, Debug)]
        pub enum Router<P> {
            /// Shortest paths.
            Static(StaticRoutes),
            $(#[doc = concat!("`", $key, "`, by node.")] $name(Vec<$node>),)*
        }

        impl<P: Packet> Router<P> {
            /// The routing at time zero of as many nodes as `links` has lists of neighbours. Static routes lead along the
            /// links to `destinations`. `rng` makes each node's stream for jitter.
            pub fn new(
                config: RoutingConfig,
                links: &[Vec<NodeId>],
                destinations: impl IntoIterator<Item = NodeId>,
                mut rng: impl FnMut(NodeId) -> Rng,
            ) -> Self {
                let ids = (0..links.len()).map(|number| NodeId(number as u16));
                match config {
                    RoutingConfig::Static => Router::Static(StaticRoutes::new(links, destinations)),
                    $(RoutingConfig::$name(config) => {
                        Router::$name(ids.map(|me| Protocol::<P>::new(me, config, rng(me))).collect())
                    })*
                }
            }

            /// See [`Protocol::on_packet`].
            #[inline]
            pub fn on_packet(
                &mut self,
                now: Time,
                node: NodeId,
                packet: P,
                previous_hop: Option<NodeId>,
                out: &mut ActionList<P>,
            ) {
                match self {
                    Router::Static(routes) => routes.on_packet::<P, Message>(node, packet, previous_hop, out),
                    $(Router::$name(nodes) => nodes[node.index()].on_packet(now, packet, previous_hop, out),)*
                }
            }

            /// See [`Protocol::accepts`].
            #[inline]
            pub fn accepts(&mut self, now: Time, node: NodeId, packet: &P) -> bool {
                match self {
                    Router::Static(_) => true,
                    $(Router::$name(nodes) => nodes[node.index()].accepts(now, packet),)*
                }
            }

            /// See [`Protocol::on_message`]. A message of another protocol is ignored.
            #[inline]
            pub fn on_message(
                &mut self,
                now: Time,
                node: NodeId,
                from: NodeId,
                message: Message,
                out: &mut ActionList<P>,
            ) {
                match (self, message) {
                    $((Router::$name(nodes), Message::$name(message)) => {
                        Protocol::<P>::on_message(&mut nodes[node.index()], now, from, message, out)
                    })*
                    _ => {}
                }
            }

            /// See [`Protocol::on_link_failure`]. Static routes only drop the packet.
            pub fn on_link_failure(
                &mut self,
                now: Time,
                node: NodeId,
                next_hop: NodeId,
                packet: Option<P>,
                out: &mut ActionList<P>,
            ) {
                match self {
                    Router::Static(_) => {
                        if let Some(packet) = packet {
                            Actions::<P, Message>::drop_packet(out, packet, DropReason::LinkFailure);
                        }
                    }
                    $(Router::$name(nodes) => nodes[node.index()].on_link_failure(now, next_hop, packet, out),)*
                }
            }

            /// See [`Protocol::on_timer`].
            pub fn on_timer(&mut self, now: Time, node: NodeId, out: &mut ActionList<P>) {
                match self {
                    Router::Static(_) => {}
                    $(Router::$name(nodes) => Protocol::<P>::on_timer(&mut nodes[node.index()], now, out),)*
                }
            }

            /// See [`Protocol::next_wakeup`].
            #[inline]
            pub fn next_wakeup(&self, node: NodeId) -> Time {
                match self {
                    Router::Static(_) => Time::NEVER,
                    $(Router::$name(nodes) => Protocol::<P>::next_wakeup(&nodes[node.index()]),)*
                }
            }

            /// See [`Protocol::hops`].
            #[inline]
            pub fn hops(&self, now: Time, node: NodeId, destination: NodeId) -> Option<u8> {
                match self {
                    Router::Static(routes) => routes.hops(node, destination).map(|hops| hops.min(255) as u8),
                    $(Router::$name(nodes) => Protocol::<P>::hops(&nodes[node.index()], now, destination),)*
                }
            }

            /// See [`Protocol::next_hop`].
            #[inline]
            pub fn next_hop(&self, now: Time, node: NodeId, destination: NodeId) -> Option<NodeId> {
                match self {
                    Router::Static(routes) => routes.next_hop(node, destination),
                    $(Router::$name(nodes) => Protocol::<P>::next_hop(&nodes[node.index()], now, destination),)*
                }
            }

            /// See [`Protocol::seek`].
            pub fn seek(&mut self, now: Time, node: NodeId, destination: NodeId, out: &mut ActionList<P>) {
                match self {
                    Router::Static(_) => {}
                    $(Router::$name(nodes) => Protocol::<P>::seek(&mut nodes[node.index()], now, destination, out),)*
                }
            }
        }
    };
}

routing_protocols!(router);

impl<P> Router<P> {
    /// Links were removed: static routes are computed anew. The other protocols notice by themselves.
    pub fn set_links(&mut self, links: &[Vec<NodeId>], destinations: impl IntoIterator<Item = NodeId>) {
        if let Router::Static(routes) = self {
            *routes = StaticRoutes::new(links, destinations);
        }
    }
}
