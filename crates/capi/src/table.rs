//! The sockets of a process, by number.

use crate::fault::Errno;
use crate::options::Settings;
use crate::ready::Readiness;
use crate::state::State;
use libc::c_int;
use meshpace_live::process::PerProcess;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A socket.
#[derive(Clone)]
pub(crate) struct Socket {
    pub(crate) state: State,
    pub(crate) settings: Arc<Settings>,
    pub(crate) ready: Arc<Readiness>,
}

impl Socket {
    /// One that is `state`, with these settings.
    pub(crate) fn new(state: State, settings: Settings) -> Socket {
        Socket { state, settings: Arc::new(settings), ready: Arc::default() }
    }
}

/// The sockets of this process. Those of its parent before `fork` are not among them: nothing runs them here, and the lock of their table
/// may have been held by a thread that does not exist here.
static SOCKETS: PerProcess<Mutex<BTreeMap<c_int, Socket>>> = PerProcess::new();

/// Sockets made so far, in this process and, before `fork`, in its parent.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Numbers start here, so that one that is taken for a file descriptor is noticed.
const FIRST: c_int = 0x2000_0000;

/// Count of the numbers from there on.
const NUMBERS: u32 = (c_int::MAX - FIRST) as u32;

fn lock() -> Result<MutexGuard<'static, BTreeMap<c_int, Socket>>, Errno> {
    Ok(SOCKETS.get()?.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The socket with this number.
pub(crate) fn find(socket: c_int) -> Result<Socket, Errno> {
    lock()?.get(&socket).cloned().ok_or(Errno::from(libc::EBADF))
}

/// Puts what a socket has become in its place, unless somebody has closed or changed it meanwhile, and tells its
/// descriptors.
pub(crate) fn become_(socket: c_int, from: &State, to: State) -> Result<(), Errno> {
    let changed = match lock()?.get_mut(&socket) {
        Some(place) if std::mem::discriminant(&place.state) == std::mem::discriminant(from) => {
            place.state = to;
            place.clone()
        }
        _ => return Err(Errno::from(libc::EBADF)),
    };
    changed.ready.refresh(&changed.state);
    Ok(())
}

/// Changes the settings of a socket.
pub(crate) fn set(socket: c_int, change: impl FnOnce(&State, &mut Settings) -> Result<(), Errno>) -> Result<(), Errno> {
    let mut sockets = lock()?;
    let found = sockets.get_mut(&socket).ok_or(Errno::from(libc::EBADF))?;
    let mut settings = (*found.settings).clone();
    change(&found.state, &mut settings)?;
    found.settings = Arc::new(settings);
    Ok(())
}

/// Gives a socket a number that no other has had for long: the number of one that is closed, or of a parent's, names none.
pub(crate) fn insert(socket: Socket) -> Result<c_int, Errno> {
    let mut sockets = lock()?;
    let next = || FIRST + (MADE.fetch_add(1, Ordering::Relaxed) % NUMBERS) as c_int;
    let number =
        (0..NUMBERS).map(|_| next()).find(|number| !sockets.contains_key(number)).ok_or(Errno::from(libc::EMFILE))?;
    sockets.insert(number, socket);
    Ok(number)
}

/// Takes a socket out.
pub(crate) fn remove(socket: c_int) -> Result<Socket, Errno> {
    lock()?.remove(&socket).ok_or(Errno::from(libc::EBADF))
}
