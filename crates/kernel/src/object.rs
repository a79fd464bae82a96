//! Loads, inspects and unloads the eBPF programs.
//!
//! All objects of a congestion control are pinned in `/sys/fs/bpf/meshpace/NAME`. The registration
//! is the last step. A loader that is killed therefore leaves either pins without a registration,
//! which the next `load` or `unload` removes, or a registration with all its pins.

use crate::machine::{self, BPF_FS, is_bpf_fs};
use crate::tuning::{self, Devices, LeastSegments};
use crate::{Connection, Destination, Error, Form, Path as Route, check_name};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Object file that clang compiled from `bpf/meshpace_ap.bpf.c` or `bpf/meshpace_solo.bpf.c`,
/// aligned as ELF requires.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);
static ADAPTIVE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/meshpace_ap.bpf.o")));
static SOLO: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/meshpace_solo.bpf.o")));

/// Names of the maps and of the program in the objects, and of their pins. The operations have the
/// default name of their form.
const PATHS: &str = "paths";
const DEVICES: &str = "devices";
const SETTINGS: &str = "settings";
const CONNECTIONS: &str = "connections";
const REPORT: &str = "meshpace_report";
/// The only key of a map with one entry.
const ONLY: [u8; 4] = [0; 4];

/// Parameters of a congestion control to load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Name of the congestion control.
    pub name: String,
    /// Rule for the interval.
    pub form: Form,
    /// Path to destinations that are not in `paths`.
    pub usual: Route,
    /// Paths by destination.
    pub paths: Vec<(Destination, Route)>,
    /// The factor before cov in hundredths, 0 to 1000. 200 in both papers.
    pub factor: u32,
    /// Largest window until ten segments have been sent, which the kernel never paces, in segments.
    /// 0 leaves the kernel's own initial window.
    pub initial_window: u32,
    /// True if users without privileges may choose the congestion control.
    pub allow_users: bool,
    /// Devices that are set to take one segment at a time. Connections that leave by them are
    /// paced.
    pub devices: Vec<String>,
    /// Further devices whose connections are paced. The programs recognise an 802.11 device
    /// themselves, but not a virtual device on top of one.
    pub radios: Vec<String>,
}

/// State of a loaded congestion control.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// Name of the congestion control.
    pub name: String,
    /// True if new connections can choose it. False if a loader was killed before it had finished.
    pub registered: bool,
    /// True if users without privileges may choose it.
    pub users: bool,
    /// Rule for the interval.
    pub form: Form,
    /// The factor before cov in hundredths.
    pub factor: u32,
    /// Largest initial window in segments; 0: the kernel's.
    pub initial_window: u32,
    /// Paths by destination, the default first.
    pub paths: Vec<(Destination, Route)>,
    /// The connections that use it, in all network namespaces.
    pub connections: Vec<Connection>,
}

fn root() -> PathBuf {
    Path::new(BPF_FS).join("meshpace")
}

/// Registers a congestion control that outlives this process.
///
/// # Errors [`Error::Refused`], with the remedy, if this machine does not allow it;
/// [`Error::Failed`] if an operation failed. In both cases nothing remains loaded.
pub fn load(request: &Request) -> Result<(), Error> {
    check_name(&request.name)?;
    if request.factor > 1000 {
        return Err(Error::Refused(format!(
            "the factor before cov is 0 to 10, not {}",
            f64::from(request.factor) / 100.0
        )));
    }
    for path in std::iter::once(&request.usual).chain(request.paths.iter().map(|(_, path)| path)) {
        path.check()?;
    }
    able()?;
    let _lock = lock(&request.name)?;
    let directory = root().join(&request.name);
    if tuning::is_registered(&request.name) {
        let whose = if directory.exists() {
            format!("`meshpace kernel unload --name {}` removes it", request.name)
        } else {
            "it is not ours: take another --name".to_owned()
        };
        return Err(Error::Refused(format!("a congestion control `{}` is registered already; {whose}", request.name)));
    }
    mount()?;
    // A loader that was killed may have left pins and changed devices.
    clear(&request.name, &directory)?;
    let loaded = assemble(request, &directory);
    if loaded.is_err() {
        // The first error is reported. Whatever cannot be removed now is found by `status`.
        let _ = unregister(&directory);
        let _ = clear(&request.name, &directory);
    }
    loaded
}

/// Checks that this machine can load the programs at all.
fn able() -> Result<(), Error> {
    let mut checks = machine::examine();
    // A missing file system is mounted by `mount`.
    checks.retain(|check| check.subject != "eBPF file system");
    match checks.iter().find_map(|check| Some((check, check.found.as_ref().err()?))) {
        Some((check, found)) => Err(Error::Refused(format!("{}: {found}; {}", check.subject, check.remedy))),
        None => Ok(()),
    }
}

/// Takes the lock that serializes loaders of the same name.
fn lock(name: &str) -> Result<File, Error> {
    let path = Path::new(tuning::RUN).join(format!("{name}.lock"));
    let open = || {
        fs::create_dir_all(tuning::RUN)?;
        let file = File::create(&path)?;
        file.lock()?;
        Ok::<File, io::Error>(file)
    };
    open().map_err(|error| Error::failed(path.display(), error))
}

fn mount() -> Result<(), Error> {
    if !is_bpf_fs(Path::new(BPF_FS)) {
        rustix::mount::mount("bpf", BPF_FS, "bpf", rustix::mount::MountFlags::empty(), None)
            .map_err(|error| Error::failed(format!("mount -t bpf bpf {BPF_FS}"), error))?;
    }
    fs::create_dir_all(root()).map_err(|error| Error::failed(root().display(), error))
}

fn assemble(request: &Request, directory: &Path) -> Result<(), Error> {
    let object = open(request.form, &request.name)?;
    fs::create_dir(directory).map_err(|error| Error::failed(directory.display(), error))?;
    fill(&object, request)?;
    for device in &request.devices {
        Devices::of(&request.name).change(device)?;
    }
    // Quiet trains have a program that returns this number to the kernel.
    if request.form != Form::QuietTrainSolo {
        LeastSegments::here()?.change()?;
    }
    register(object, request.form, directory)?;
    if request.allow_users {
        tuning::allow_users(&request.name)?;
    }
    Ok(())
}

/// Latest output of libbpf and of the verifier.
static SAID: Mutex<String> = Mutex::new(String::new());

fn listen(_: PrintLevel, line: String) {
    if let Ok(mut said) = SAID.lock() {
        said.push_str(&line);
    }
}

/// Error with the output of libbpf about it.
fn explained(what: &str, error: &libbpf_rs::Error) -> Error {
    let said = SAID.lock().map(|mut said| std::mem::take(&mut *said)).unwrap_or_default();
    Error::Failed(format!("{what}: {error}\n{}", said.trim_end()))
}

/// Loads the programs into the kernel, with a congestion control named `name`, which is not
/// registered yet.
fn open(form: Form, name: &str) -> Result<Object, Error> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
    let object = if form == Form::QuietTrainSolo { SOLO } else { ADAPTIVE };
    let mut open =
        ObjectBuilder::default().open_memory(&object.0).map_err(|error| explained("the eBPF object", &error))?;
    rename(&mut open, form.usual_name(), name);
    open.load().map_err(|error| explained("the kernel refuses the eBPF programs", &error))
}

/// Overwrites the name that the object contains with the requested one.
fn rename(open: &mut OpenObject, own: &str, name: &str) {
    let mut map = open.maps_mut().find(|map| map.name() == own).expect("the object has its operations");
    let value = map.initial_value_mut().expect("operations have a value");
    let mut field = [0; 16];
    field[..own.len()].copy_from_slice(own.as_bytes());
    let at = value.windows(16).position(|window| window == field).expect("the operations have a name");
    let field = &mut value[at..at + 16];
    field.fill(0);
    field[..name.len()].copy_from_slice(name.as_bytes());
}

fn fill(object: &Object, request: &Request) -> Result<(), Error> {
    let map = |name: &str| object.maps().find(|map| map.name() == name).expect("the object has its maps");
    let mut settings = [0; 12];
    let words = [request.form.number(), request.factor, request.initial_window];
    for (place, word) in settings.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    map(SETTINGS)
        .update(&ONLY, &settings, MapFlags::ANY)
        .map_err(|error| explained("the settings cannot be written", &error))?;
    let devices = map(DEVICES);
    for device in request.devices.iter().chain(&request.radios) {
        devices
            .update(&tuning::device_here(device)?, &1_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| explained(&format!("device {device} cannot be written"), &error))?;
    }
    let paths = map(PATHS);
    write(&paths, &Destination::ANY, &request.usual)?;
    request.paths.iter().try_for_each(|(destination, path)| write(&paths, destination, path))
}

fn write(map: &impl MapCore, destination: &Destination, path: &Route) -> Result<(), Error> {
    map.update(&destination.encode(), &path.encode(), MapFlags::ANY).map_err(|error| {
        if map.keys().count() as u32 >= map.max_entries() {
            let most = map.max_entries();
            Error::Refused(format!("no room for the path to {destination}: at most {most} paths; use shorter prefixes"))
        } else {
            explained(&format!("the path to {destination} cannot be written"), &error)
        }
    })
}

/// Pins everything, then registers.
fn register(mut object: Object, form: Form, directory: &Path) -> Result<(), Error> {
    let report = object.progs_mut().find(|program| program.name() == REPORT).expect("the object has its iterator");
    let storage = object.maps().find(|map| map.name() == CONNECTIONS).expect("the object has its maps");
    let mut iterator =
        report.attach_iter(storage.as_fd()).map_err(|error| explained("the iterator over connections", &error))?;
    iterator.pin(directory.join(CONNECTIONS)).map_err(|error| explained("a pin", &error))?;
    let own = form.usual_name();
    for mut map in object.maps_mut().filter(|map| [own, PATHS, SETTINGS].iter().any(|name| map.name() == *name)) {
        let pin = directory.join(map.name());
        map.pin(pin).map_err(|error| explained("a pin", &error))?;
    }
    let mut operations = object.maps_mut().find(|map| map.name() == own).expect("the object has its operations");
    let mut link =
        operations.attach_struct_ops().map_err(|error| explained("the kernel does not register it", &error))?;
    // Without this call the kernel would unregister it as soon as the link is dropped.
    link.disconnect();
    Ok(())
}

/// Unregisters a congestion control and restores the settings that were changed for it. Connections
/// that use it continue to use it.
///
/// # Errors [`Error::Refused`] if no congestion control of that name is loaded.
pub fn unload(name: &str) -> Result<(), Error> {
    check_name(name)?;
    let directory = root().join(name);
    if !directory.exists() {
        let what = if tuning::is_registered(name) { "is not ours" } else { "is not loaded" };
        return Err(Error::Refused(format!("`{name}` {what}; `meshpace kernel status` lists what is")));
    }
    let _lock = lock(name)?;
    unregister(&directory)?;
    clear(name, &directory)
}

fn unregister(directory: &Path) -> Result<(), Error> {
    let pins = Form::ALL.map(|form| directory.join(form.usual_name()));
    let Some(pin) = pins.into_iter().find(|pin| pin.exists()) else { return Ok(()) };
    let map = MapHandle::from_pinned_path(&pin).map_err(|error| Error::failed(pin.display(), error))?;
    match map.delete(&ONLY) {
        Ok(()) => Ok(()),
        // It was never registered.
        Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::failed("the kernel does not unregister it", error)),
    }
}

/// Removes pins and restores devices. Restores the least number of segments too, if none of our
/// congestion controls is loaded any more.
fn clear(name: &str, directory: &Path) -> Result<(), Error> {
    let remove = || -> io::Result<()> {
        if directory.exists() {
            for entry in fs::read_dir(directory)? {
                fs::remove_file(entry?.path())?;
            }
            fs::remove_dir(directory)?;
        }
        Ok(())
    };
    let removed = remove().map_err(|error| Error::failed(directory.display(), error));
    let restored = Devices::of(name).restore().and(removed);
    let least = LeastSegments::here()?;
    if loaded()?.is_empty() { least.restore().and(restored) } else { restored }
}

/// Names of the loaded congestion controls, sorted.
///
/// # Errors If the pins cannot be listed.
pub fn loaded() -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(root()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Error::Refused(format!("{}: {error}; run as root", root().display())));
        }
        Err(error) => return Err(Error::failed(root().display(), error)),
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> =
        names.collect::<io::Result<_>>().map_err(|error| Error::failed(root().display(), error))?;
    names.sort();
    Ok(names)
}

/// State of the congestion control `name`.
///
/// # Errors [`Error::Refused`] if no congestion control of that name is loaded, [`Error::Failed`]
/// if its pins cannot be read.
pub fn status(name: &str) -> Result<Status, Error> {
    check_name(name)?;
    let directory = root().join(name);
    if !directory.exists() {
        return Err(Error::Refused(format!("`{name}` is not loaded; load it with `meshpace kernel load`")));
    }
    let settings = pinned(&directory, SETTINGS)?;
    let value = settings.lookup(&ONLY, MapFlags::ANY).map_err(|error| Error::failed("the settings", error))?;
    let value = value.unwrap_or_default();
    let word = |at: usize| value.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_ne_bytes);
    let pin = directory.join(CONNECTIONS);
    let connections = fs::read(&pin).map_err(|error| Error::failed(pin.display(), error))?;
    Ok(Status {
        name: name.to_owned(),
        registered: tuning::is_registered(name),
        users: tuning::is_allowed(name),
        form: Form::of_number(word(0)).unwrap_or(Form::Ap05),
        factor: word(4),
        initial_window: word(8),
        paths: paths(&pinned(&directory, PATHS)?)?,
        connections: Connection::decode(&connections),
    })
}

fn pinned(directory: &Path, name: &str) -> Result<MapHandle, Error> {
    let pin = directory.join(name);
    MapHandle::from_pinned_path(&pin).map_err(|error| Error::failed(pin.display(), error))
}

fn paths(map: &MapHandle) -> Result<Vec<(Destination, Route)>, Error> {
    let mut paths = Vec::new();
    for key in map.keys() {
        let value = map.lookup(&key, MapFlags::ANY).map_err(|error| Error::failed("a path", error))?;
        // An entry that was removed in the meantime has no value.
        let path = value.as_deref().and_then(Route::decode);
        paths.extend(Destination::decode(&key).zip(path));
    }
    paths.sort_by_key(|(destination, _)| *destination);
    Ok(paths)
}

/// Paths of a loaded congestion control, which can be changed while it runs.
#[derive(Debug)]
pub struct Paths(MapHandle);

impl Paths {
    /// Opens the paths of the congestion control `name`.
    ///
    /// # Errors If it is not loaded.
    pub fn of(name: &str) -> Result<Paths, Error> {
        check_name(name)?;
        pinned(&root().join(name), PATHS).map(Paths)
    }

    /// Sets the path to `destination`. Connections to it use the new path from their next RTT
    /// sample on.
    ///
    /// # Errors [`Error::Refused`] if the path is out of range or the map is full.
    pub fn set(&self, destination: &Destination, path: &Route) -> Result<(), Error> {
        path.check()?;
        write(&self.0, destination, path)
    }

    /// Removes the path to `destination`, if there is one. The default path is never removed.
    ///
    /// # Errors If the kernel refuses.
    pub fn remove(&self, destination: &Destination) -> Result<(), Error> {
        if *destination == Destination::ANY {
            return Ok(());
        }
        match self.0.delete(&destination.encode()) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::failed(format!("the path to {destination}"), error)),
        }
    }

    /// All paths, the default first.
    ///
    /// # Errors If the map cannot be read.
    pub fn all(&self) -> Result<Vec<(Destination, Route)>, Error> {
        paths(&self.0)
    }
}
