//! Directory by which other processes find an emulation. Its name is a token.
//!
//! The emulation holds a lock in the directory. The kernel releases the lock when the process ends,
//! in whatever way. A directory whose lock is free therefore belongs to a killed emulation. The
//! namespaces of such an emulation are gone too, unless one of its programs still runs in one.
//! These programs are found by the token in their environment, never by name, and ended.

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Environment variable that identifies the programs of a run.
pub const TOKEN: &str = "MESHPACE_EMULATION";

/// Directory of the runs of this user.
pub fn base() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if rustix::process::geteuid().is_root() => PathBuf::from("/run/meshpace"),
        Some(directory) => PathBuf::from(directory).join("meshpace"),
        None => std::env::temp_dir().join(format!("meshpace-{}", rustix::process::geteuid().as_raw())),
    }
}

/// Directory of a running emulation. It is removed when this value is dropped.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    token: String,
    _lock: File,
}

impl RunDir {
    /// Creates a directory for a run below `base`.
    pub fn create(base: &Path) -> io::Result<RunDir> {
        let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", base.display()));
        let _all = lock_all(base).map_err(explain)?;
        let mut random = [0; 4];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let token = format!("{}-{:08x}", std::process::id(), u32::from_ne_bytes(random));
        let path = base.join(&token);
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(explain)?;
        let lock = open_lock(&path.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(RunDir { path, token, _lock: lock })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Name of the directory.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Creates `base`. As long as the returned lock is held, no other process can create or remove runs
/// in it.
fn lock_all(base: &Path) -> io::Result<File> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    if fs::metadata(base)?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "belongs to another user"));
    }
    let file = open_lock(&base.join(".lock"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn runs(base: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(base)? {
        let path = entry?.path();
        let Ok(lock) = File::open(path.join("lock")) else { continue };
        let is_alive = flock(&lock, FlockOperation::NonBlockingLockShared).is_err();
        found.push((path, is_alive));
    }
    found.sort();
    Ok(found)
}

/// Directories of the running emulations.
pub fn alive(base: &Path) -> io::Result<Vec<PathBuf>> {
    match runs(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        runs => Ok(runs?.into_iter().filter_map(|(path, is_alive)| is_alive.then_some(path)).collect()),
    }
}

/// Tokens of the killed runs whose directories still exist.
pub fn dead(base: &Path) -> io::Result<Vec<String>> {
    match runs(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        runs => Ok(runs?.into_iter().filter(|(_, is_alive)| !is_alive).map(|(path, _)| token_of(&path)).collect()),
    }
}

fn token_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Remains of a killed run that were removed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// Token of the run.
    pub token: String,
    /// Number of its programs that were still running.
    pub programs: usize,
}

/// Removes the remains of killed runs.
pub fn clean(base: &Path) -> io::Result<Vec<Removed>> {
    if !base.is_dir() {
        return Ok(Vec::new());
    }
    let _all = lock_all(base)?;
    let mut removed = Vec::new();
    for (path, is_alive) in runs(base)? {
        if is_alive {
            continue;
        }
        let token = token_of(&path);
        let programs = programs_of(&token);
        for &program in &programs {
            let _ = kill_process(program, Signal::KILL);
        }
        fs::remove_dir_all(&path)?;
        removed.push(Removed { token, programs: programs.len() });
    }
    Ok(removed)
}

/// Processes with a token in their environment.
fn programs_of(token: &str) -> Vec<Pid> {
    let wanted = format!("{TOKEN}={token}").into_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_ours = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == wanted)
    };
    numbers.filter(is_ours).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("meshpace-test-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_run_is_alive_as_long_as_it_is_held_and_gone_afterwards() {
        let base = scratch("alive");
        let one = RunDir::create(&base).unwrap();
        let two = RunDir::create(&base).unwrap();
        assert_ne!(one.token(), two.token());
        assert_eq!(alive(&base).unwrap().len(), 2);
        assert_eq!(dead(&base).unwrap(), Vec::<String>::new());
        assert_eq!(clean(&base).unwrap(), [], "nobody was killed");
        drop(one);
        assert_eq!(alive(&base).unwrap(), [two.path()]);
        drop(two);
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(alive(&base).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_a_killed_run_left_is_found_by_its_token() {
        let base = scratch("killed");
        let dead = base.join("77-deadbeef");
        fs::create_dir_all(&dead).unwrap();
        fs::write(dead.join("lock"), "").unwrap();
        let sleeper = |token: &str| {
            let mut command = Command::new("sleep");
            let sleeper = command.arg("60").stdin(Stdio::null()).env(TOKEN, token).spawn().unwrap();
            // The kernel lets the parent continue a moment before the environment of the new
            // program is in place.
            while fs::read(format!("/proc/{}/environ", sleeper.id())).unwrap().is_empty() {
                std::thread::yield_now();
            }
            sleeper
        };
        let (mut ours, mut other) = (sleeper("77-deadbeef"), sleeper("77-deadbee"));
        assert_eq!(clean(&base).unwrap(), [Removed { token: "77-deadbeef".to_owned(), programs: 1 }]);
        assert!(!ours.wait().unwrap().success());
        assert_eq!(other.try_wait().unwrap(), None, "another token is another's");
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(!dead.exists());
        fs::remove_dir_all(&base).unwrap();
    }
}
