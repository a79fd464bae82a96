//! What a port is run with.

use super::keylog::KeyLog;
use crate::tpa::session::settings::Settings;
use std::sync::Arc;

/// What a port is run with.
#[derive(Clone, Debug)]
pub struct Service {
    /// What its sessions are told.
    pub settings: Arc<Settings>,
    /// Where the keys of connections are noted.
    pub keylog: Option<Arc<KeyLog>>,
}
