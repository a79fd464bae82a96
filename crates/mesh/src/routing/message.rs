//! Message of any routing protocol.

use super::protocol::{MessageKind, RoutingMessage};
use super::table::routing_protocols;

macro_rules! messages {
    ($($name:ident $key:literal $node:ty, $config:ty, $message:ty;)*) => {
        /// Message of a routing protocol on one hop.
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub enum Message {
            $(#[doc = concat!("Of `", $key, "`.")] $name($message),)*
        }

        impl Message {
            /// Size in bytes with the IP header.
            pub fn size(&self) -> u32 {
                match self {
                    $(Message::$name(message) => message.size(),)*
                }
            }

            /// Purpose of the message.
            pub fn kind(&self) -> MessageKind {
                match self {
                    $(Message::$name(message) => message.kind(),)*
                }
            }
        }

        $(impl From<$message> for Message {
            #[inline]
            fn from(message: $message) -> Message {
                Message::$name(message)
            }
        })*
    };
}

routing_protocols!(messages);
