//! The routing protocol of a mesh and its configuration.

use super::aodv::{AodvConfig, AodvDetection, LocalRepair};
use super::protocol::{IP_TIME_TO_LIVE, RoutingParameters};
use super::table::routing_protocols;
use meshpace_core::parameter::Parameters;

macro_rules! choices {
    ($($name:ident $key:literal $node:ty, $config:ty, $message:ty;)*) => {
        /// The routing protocol.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum RoutingConfig {
            /// Shortest paths by hops, computed once; ties go to the lowest node number. No messages, no failures.
            #[default]
            Static,
            $(#[doc = concat!("`routing.protocol = \"", $key, "\"`.")] $name($config),)*
        }

        impl RoutingConfig {
            /// Each protocol with its name in scenarios and its defaults.
            pub fn all() -> impl Iterator<Item = (&'static str, RoutingConfig)> {
                [("static", RoutingConfig::Static), $(($key, RoutingConfig::$name(Default::default())),)*].into_iter()
            }

            /// Parameters that a scenario sets; `None` for static routes, which have none.
            pub fn parameters(&mut self) -> Option<&mut dyn Parameters> {
                match self {
                    RoutingConfig::Static => None,
                    $(RoutingConfig::$name(config) => Some(config),)*
                }
            }

            /// The time to live of a packet when it leaves its source: the most hops it travels.
            pub const fn time_to_live(&self) -> u8 {
                match self {
                    RoutingConfig::Static => IP_TIME_TO_LIVE,
                    $(RoutingConfig::$name(_) => <$config as RoutingParameters>::TIME_TO_LIVE,)*
                }
            }
        }
    };
}

routing_protocols!(choices);

impl RoutingConfig {
    /// AODV that forgets no route, as in ns-2.
    pub const fn aodv(local_repair: LocalRepair, detection: AodvDetection) -> Self {
        RoutingConfig::Aodv(AodvConfig { local_repair, detection, delete_period: None })
    }
}
