//! Settings with which a port is run.

use super::keylog::KeyLog;
use crate::tpa::session::settings::Settings;
use std::sync::Arc;

/// Settings with which a port is run.
#[derive(Clone, Debug)]
pub struct Service {
    /// Settings of its sessions.
    pub settings: Arc<Settings>,
    /// Where the keys of connections are noted.
    pub keylog: Option<Arc<KeyLog>>,
}
