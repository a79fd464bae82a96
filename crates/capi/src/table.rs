//! The sockets of a process, by number.

use crate::Errno;
use crate::options::Settings;
use crate::ready::Readiness;
use crate::state::State;
use libc::c_int;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A socket.
#[derive(Clone)]
pub(crate) struct Socket {
    pub(crate) state: State,
    pub(crate) settings: Arc<Settings>,
    pub(crate) ready: Arc<Readiness>,
}

impl Socket {
    /// One that is `state`, with default settings.
    pub(crate) fn new(state: State) -> Socket {
        Socket { state, settings: Arc::default(), ready: Arc::default() }
    }
}

static SOCKETS: Mutex<BTreeMap<c_int, Socket>> = Mutex::new(BTreeMap::new());

/// Numbers start here, so that one that is taken for a file descriptor is noticed.
const FIRST: c_int = 0x2000_0000;

fn lock() -> MutexGuard<'static, BTreeMap<c_int, Socket>> {
    SOCKETS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The socket with this number.
pub(crate) fn find(socket: c_int) -> Result<Socket, Errno> {
    lock().get(&socket).cloned().ok_or(Errno(libc::EBADF))
}

/// Puts what a socket has become in its place, unless somebody has closed or changed it meanwhile, and tells its
/// descriptors.
pub(crate) fn become_(socket: c_int, from: &State, to: State) -> Result<(), Errno> {
    let changed = match lock().get_mut(&socket) {
        Some(place) if std::mem::discriminant(&place.state) == std::mem::discriminant(from) => {
            place.state = to;
            place.clone()
        }
        _ => return Err(Errno(libc::EBADF)),
    };
    changed.ready.refresh(&changed.state);
    Ok(())
}

/// Changes the settings of a socket.
pub(crate) fn set(socket: c_int, change: impl FnOnce(&State, &mut Settings) -> Result<(), Errno>) -> Result<(), Errno> {
    let mut sockets = lock();
    let found = sockets.get_mut(&socket).ok_or(Errno(libc::EBADF))?;
    let mut settings = (*found.settings).clone();
    change(&found.state, &mut settings)?;
    found.settings = Arc::new(settings);
    Ok(())
}

/// Gives a socket a number.
pub(crate) fn insert(socket: Socket) -> Result<c_int, Errno> {
    let mut sockets = lock();
    let number = (FIRST..c_int::MAX).find(|number| !sockets.contains_key(number)).ok_or(Errno(libc::EMFILE))?;
    sockets.insert(number, socket);
    Ok(number)
}

/// Takes a socket out.
pub(crate) fn remove(socket: c_int) -> Result<Socket, Errno> {
    lock().remove(&socket).ok_or(Errno(libc::EBADF))
}
