//! The same workload in ns-3: `validation/ns3/mesh.cc`, compiled once against the installed
//! library.
//!
//! The library is in the directory that `MESHPACE_NS3` names, which has `include/ns3` and `lib` or
//! `lib64`. Without that variable it is the library that `pip install ns3` installed for python3.
//! It has to be ns-3.44, because the interfaces change from release to release. In 3.37, the
//! release of Debian, stations never give up an RTS when every frame has one.

use super::mesh_file;
use meshpace_scenario::Point;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Source of the program that runs the workload.
const PROGRAM: &str = include_str!("../../../../../validation/ns3/mesh.cc");
/// Release of ns-3 for which the program is written.
const RELEASE: &str = "3.44";
/// Environment variable that names the directory of the library. If it is empty, no library is
/// used.
const VARIABLE: &str = "MESHPACE_NS3";
/// Advice for installing ns-3.
pub const REMEDY: &str = "pip install ns3==3.44.post0, or MESHPACE_NS3=DIR for one with include/ns3 and lib in DIR";
/// Modules of ns-3 that the program is linked with.
const MODULES: [&str; 9] =
    ["core", "network", "mobility", "propagation", "wifi", "internet", "aodv", "applications", "traffic-control"];
/// Approximate factor by which a library with assertions and logging, such as the wheel, is slower
/// than a release build. `validation/ns3/README.md` has the measurement.
const ASSERTIONS_COST: f64 = 1.4;

/// Installed ns-3 to compile against.
#[derive(Debug)]
pub struct Library {
    headers: PathBuf,
    libraries: PathBuf,
    /// Text after the module's name in the name of its file: empty, or the profile of the build
    /// ("-optimized").
    profile: String,
    /// True if the library was compiled with assertions.
    pub assertions: bool,
}

impl Library {
    /// Approximate ratio of the library's run time to that of a release build; 1 for a release
    /// build.
    pub fn slowdown(&self) -> f64 {
        if self.assertions { ASSERTIONS_COST } else { 1.0 }
    }
}

/// Returns the installed library, or `None` if there is none. It is an error if the library that is
/// found is not usable.
pub fn find() -> Result<Option<Library>, String> {
    match std::env::var_os(VARIABLE) {
        Some(named) if named.is_empty() => Ok(None),
        Some(named) => examine(Path::new(&named)).map(Some).map_err(|why| format!("{VARIABLE}: {why}")),
        None => python().map_or(Ok(None), |directory| examine(&directory).map(Some)),
    }
}

/// Directory of the Python package ns3. The package is not imported, because that would take
/// seconds.
fn python() -> Option<PathBuf> {
    let ask = "import importlib.util as u; s = u.find_spec('ns3'); print(next(iter(s.submodule_search_locations)))";
    let answer = Command::new("python3").args(["-c", ask]).stderr(Stdio::null()).output().ok()?;
    let directory = String::from_utf8(answer.stdout).ok()?;
    answer.status.success().then(|| PathBuf::from(directory.trim()))
}

fn examine(directory: &Path) -> Result<Library, String> {
    let shown = directory.display();
    let headers = directory.join("include");
    if !headers.join("ns3/core-module.h").is_file() {
        return Err(format!("{shown} has no include/ns3/core-module.h"));
    }
    // File names are, for example, libns3.44-core.so and libns3.44-core-optimized.so.
    let core = ["lib64", "lib"].iter().find_map(|lib| {
        let entries = std::fs::read_dir(directory.join(lib)).ok()?;
        entries.flatten().map(|entry| entry.path()).find_map(|path| {
            let name = path.file_name()?.to_str()?.strip_prefix("libns")?.strip_suffix(".so")?;
            let (release, module) = name.split_once('-')?;
            let profile = module.strip_prefix("core").filter(|rest| rest.is_empty() || rest.starts_with('-'))?;
            Some((release.to_owned(), profile.to_owned(), path))
        })
    });
    let Some((release, profile, core)) = core else {
        return Err(format!("{shown} has no lib or lib64 with ns-3's module core"));
    };
    if release != RELEASE {
        return Err(format!("{shown} is ns-{release}, but the comparison needs ns-{RELEASE}"));
    }
    let code = std::fs::read(&core).map_err(|error| format!("{}: {error}", core.display()))?;
    let assertion = b"NS_ASSERT failed, cond";
    let assertions = code.windows(assertion.len()).any(|bytes| bytes == assertion);
    let libraries = core.parent().map(Path::to_owned).unwrap_or_default();
    Ok(Library { headers, libraries, profile, assertions })
}

/// Compiles the program, unless it was compiled before. Returns its path.
pub fn compile(library: &Library) -> Result<PathBuf, String> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let mut command = Command::new(&compiler);
    command.args(["-std=c++20", "-O2", "-x", "c++", "-isystem"]).arg(&library.headers).arg("-");
    command.arg("-L").arg(&library.libraries).arg(format!("-Wl,-rpath,{}", library.libraries.display()));
    command.args(MODULES.map(|module| format!("-lns{RELEASE}-{module}{}", library.profile)));

    // Everything that affects the compiled program is part of its name.
    let mut key = DefaultHasher::new();
    (PROGRAM, format!("{command:?}")).hash(&mut key);
    let stamp = std::fs::metadata(library.libraries.join(format!("libns{RELEASE}-wifi{}.so", library.profile)));
    stamp.and_then(|stamp| stamp.modified()).ok().hash(&mut key);
    let cache = cache();
    let program = cache.join(format!("ns3-mesh-{:016x}", key.finish()));
    if program.is_file() {
        return Ok(program);
    }
    let _ = writeln!(io::stderr(), "compiling the program for ns-{RELEASE}, once: half a minute ...");
    let why = |error: io::Error| format!("{}: {error}", cache.display());
    std::fs::create_dir_all(&cache).map_err(why)?;
    // Each process compiles into a directory of its own and renames the result, so that two
    // simultaneous compilations do not interfere.
    let unfinished = tempfile::Builder::new().prefix("ns3-mesh-").tempdir_in(&cache).map_err(why)?;
    let output = unfinished.path().join("mesh");
    command.arg("-o").arg(&output).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = command.spawn().map_err(|error| format!("cannot run {compiler}: {error}"))?;
    let written = running.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(PROGRAM.as_bytes()));
    let ended = running.wait_with_output().map_err(|error| format!("{compiler}: {error}"))?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        let first: Vec<&str> = said.lines().filter(|line| line.contains("error")).take(3).collect();
        return Err(format!("{compiler} could not compile the program: {}", first.join("; ")));
    }
    written.map_err(why)?;
    std::fs::rename(&output, &program).map_err(why)?;
    Ok(program)
}

/// Directory of compiled programs: in the user's cache, or otherwise in the directory for temporary
/// files.
fn cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    caches.unwrap_or_else(std::env::temp_dir).join("meshpace")
}

/// Returns the command for `duration_s` simulated seconds with flows of a window of `window`
/// segments, and the directory of the files that it needs while it runs.
pub fn command(program: &Path, point: &Point, window: u32, duration_s: f64) -> io::Result<(Command, TempDir)> {
    let directory = tempfile::tempdir()?;
    let mesh = directory.path().join("mesh.txt");
    mesh_file::write(point, &mesh)?;
    let mut command = Command::new(program);
    command.arg(format!("mesh={}", mesh.display())).arg(format!("window={window}")).arg("reception=ns2");
    command.arg(format!("warmup={}", point.config.warmup.as_secs_f64().min(duration_s / 2.0)));
    command.arg(format!("duration={duration_s}"));
    Ok((command, directory))
}

#[cfg(test)]
mod tests {
    use super::{REMEDY, command, compile, find};
    use crate::linux::bench::{WORKLOADS, read};
    use meshpace_testing::{Class, skipped};

    /// The topology of one hop checks most settings at once. With every frame acknowledged and an
    /// RTS before it, ns-3.44 was measured to carry 1270 kbit/s. More is impossible. A flow that
    /// starts within the first tenth loses no more than that tenth and the search for its route.
    #[test]
    fn one_hop_in_ns3_carries_what_was_measured() {
        let library = match find() {
            Ok(Some(library)) => library,
            // 300 MB and a compilation for one test.
            Ok(None) => return skipped(Class::Slow, format_args!("ns-3 is not installed ({REMEDY})")),
            Err(why) => return skipped(Class::Tools, why),
        };
        let program = compile(&library).unwrap();
        let chain = WORKLOADS.iter().find(|workload| workload.name == "chain-1").unwrap();
        let (mut command, _files) = command(&program, &read(chain, &[]).unwrap(), 3, 2.0).unwrap();
        let output = command.output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        assert!(line.contains("nodes=2 flows=1 window=3 "), "{line}");
        let kbps = line.split_whitespace().find_map(|word| word.strip_prefix("goodput_kbps=")).unwrap();
        let kbps: f64 = kbps.parse().unwrap();
        assert!((0.8 * 1270.0..=1.01 * 1270.0).contains(&kbps), "{line}");
    }
}
