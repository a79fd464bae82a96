//! Settings of the runtime for one port.

use super::keylog::KeyLog;
use meshpace_session::settings::Settings;
use std::sync::Arc;

/// Settings of the runtime for one port.
#[derive(Clone, Debug)]
pub struct Service {
    /// Settings of the port's sessions.
    pub settings: Arc<Settings>,
    /// File in which the keys of connections are recorded; `None` for no such file.
    pub keylog: Option<Arc<KeyLog>>,
}
