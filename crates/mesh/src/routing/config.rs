//! Choice of the routing protocol of a mesh, and its configuration.

use super::aodv::{AodvConfig, AodvDetection, LocalRepair};
use super::protocol::{IP_TIME_TO_LIVE, RoutingParameters};
use super::table::routing_protocols;
use meshpace_core::parameter::Parameters;

macro_rules! choices {
    ($($name:ident $key:literal $node:ty, $config:ty, $message:ty;)*) => {
        /// Routing protocol of a mesh with its parameters.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub enum RoutingConfig {
            /// Shortest paths by hops, computed once; ties go to the lowest node number. No
            /// messages, no failures.
            #[default]
            Static,
            $(#[doc = concat!("`routing.protocol = \"", $key, "\"`.")] $name($config),)*
        }

        impl RoutingConfig {
            /// All protocols with their names in scenarios and their defaults.
            pub fn all() -> impl Iterator<Item = (&'static str, RoutingConfig)> {
                [("static", RoutingConfig::Static), $(($key, RoutingConfig::$name(Default::default())),)*].into_iter()
            }

            /// Parameters that a scenario can set; `None` for static routes, which have none.
            pub fn parameters(&mut self) -> Option<&mut dyn Parameters> {
                match self {
                    RoutingConfig::Static => None,
                    $(RoutingConfig::$name(config) => Some(config),)*
                }
            }

            /// Time to live of a packet when it leaves its source: the largest number of hops that
            /// it travels.
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
    /// AODV that never deletes a route, as in ns-2.
    pub const fn aodv(local_repair: LocalRepair, detection: AodvDetection) -> Self {
        RoutingConfig::Aodv(AodvConfig { local_repair, detection, delete_period: None })
    }
}
