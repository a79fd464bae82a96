//! Routing of a whole mesh behind one interface.

use super::actions::{Action, Actions, DropReason};
use super::config::RoutingConfig;
use super::message::Message;
use super::protocol::Protocol;
use super::static_routes::StaticRoutes;
use super::table::routing_protocols;
use crate::packet::Packet;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng, Time};

/// Actions that routing requests from a node, in order.
#[derive(Clone, Debug)]
pub struct ActionList<P> {
    /// Recorded actions.
    pub actions: Vec<Action<P, Message>>,
    /// Number of route discoveries that have begun so far, at all nodes.
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
        /// Routing of a mesh: shared static routes, or a state machine per node. The methods are
        /// those of [`Protocol`], with the node as an additional argument.
        #[derive(Clone, Debug)]
        pub enum Router<P> {
            /// Static shortest paths.
            Static(StaticRoutes),
            $(#[doc = concat!("`", $key, "`, by node.")] $name(Vec<$node>),)*
        }

        impl<P: Packet> Router<P> {
            /// Creates the routing at time zero. The number of nodes is that of the lists of
            /// neighbours in `links`. Static routes are computed over the links to `destinations`.
            /// `rng` creates the jitter stream of each node.
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

            /// Calls [`Protocol::on_packet`] of `node`.
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

            /// Calls [`Protocol::accepts`] of `node`.
            #[inline]
            pub fn accepts(&mut self, now: Time, node: NodeId, packet: &P) -> bool {
                match self {
                    Router::Static(_) => true,
                    $(Router::$name(nodes) => nodes[node.index()].accepts(now, packet),)*
                }
            }

            /// Calls [`Protocol::on_message`] of `node`. A message of another protocol is ignored.
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

            /// Calls [`Protocol::on_link_failure`] of `node`. Static routes only drop the packet.
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

            /// Calls [`Protocol::on_timer`] of `node`.
            pub fn on_timer(&mut self, now: Time, node: NodeId, out: &mut ActionList<P>) {
                match self {
                    Router::Static(_) => {}
                    $(Router::$name(nodes) => Protocol::<P>::on_timer(&mut nodes[node.index()], now, out),)*
                }
            }

            /// Calls [`Protocol::next_wakeup`] of `node`.
            #[inline]
            pub fn next_wakeup(&self, node: NodeId) -> Time {
                match self {
                    Router::Static(_) => Time::NEVER,
                    $(Router::$name(nodes) => Protocol::<P>::next_wakeup(&nodes[node.index()]),)*
                }
            }

            /// Calls [`Protocol::hops`] of `node`.
            #[inline]
            pub fn hops(&self, now: Time, node: NodeId, destination: NodeId) -> Option<u8> {
                match self {
                    Router::Static(routes) => routes.hops(node, destination).map(|hops| hops.min(255) as u8),
                    $(Router::$name(nodes) => Protocol::<P>::hops(&nodes[node.index()], now, destination),)*
                }
            }

            /// Calls [`Protocol::next_hop`] of `node`.
            #[inline]
            pub fn next_hop(&self, now: Time, node: NodeId, destination: NodeId) -> Option<NodeId> {
                match self {
                    Router::Static(routes) => routes.next_hop(node, destination),
                    $(Router::$name(nodes) => Protocol::<P>::next_hop(&nodes[node.index()], now, destination),)*
                }
            }

            /// Calls [`Protocol::seek`] of `node`.
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
    /// Replaces the links after some were removed: static routes are computed again. The other
    /// protocols detect the change by themselves.
    pub fn set_links(&mut self, links: &[Vec<NodeId>], destinations: impl IntoIterator<Item = NodeId>) {
        if let Router::Static(routes) = self {
            *routes = StaticRoutes::new(links, destinations);
        }
    }
}
