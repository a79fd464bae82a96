//! `meshpace tunnel`: carries ordinary TCP connections and UDP datagrams between two sites over TPA
//! or quiet trains.

mod file;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod live;
mod log;
mod metrics;
mod running;
mod watch;

use crate::caution;
use crate::hosts::resolve;
use clap::{ArgGroup, Args, Subcommand};
use file::{Entry, File, Identity, What};
use log::Level;
use meshpace_command::output::{complain, results, tell};
use meshpace_command::quantities::{rate, seconds};
use meshpace_command::{FAILED, REFUSED};
use meshpace_core::Rate;
use meshpace_live::hosts::{self, Host};
use meshpace_live::tpa::keylog::KeyLog;
use meshpace_live::tpa::socket::Families;
use meshpace_live::tpa::{self, PortCounters, Security, TpaPort, keys};
use meshpace_live::tunnel::{
    self, Allowed, Connector, Counters, Event, Exit, Forward, Network, Service, Transparent, UdpForward, medium,
};
use meshpace_settings::nearest;
use meshpace_transport::tpa::window;
use meshpace_transport::{Config, PathInfo, names, train};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use watch::Watching;

/// Default UDP port of both ends.
const PORT: u16 = 7800;
/// Largest number of streams that wait to be accepted.
const BACKLOG: usize = 1024;

/// The arguments of `meshpace tunnel`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the end at which streams come out: connect each stream to its target.
    Listen(One<Listen>),
    /// Run the end at which streams enter: accept TCP connections on ports of this machine, and
    /// carry them to the other end.
    Connect(One<Connect>),
    /// Run all ends that a file describes. SIGHUP makes it read the file again.
    Run(FromFile),
    /// Write a private key to a new file, and print the public key.
    Keygen {
        /// File to create.
        file: PathBuf,
    },
}

/// One end, as the command line has it.
#[derive(Args, Debug)]
struct One<E: Args> {
    #[command(flatten)]
    end: E,
    #[command(flatten)]
    watching: Watching,
    #[command(flatten)]
    reporting: Reporting,
}

#[derive(Args, Debug)]
struct FromFile {
    /// File (TOML) with tables `[[listen]]` and `[[connect]]`. Their keys are the options of these
    /// commands.
    file: PathBuf,
    /// Only check the file, and report what is wrong with it.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    reporting: Reporting,
}

/// What is told while it runs, and how long it does.
#[derive(Args, Debug)]
struct Reporting {
    /// Print a JSON object for each end to standard output every second.
    #[arg(long)]
    json: bool,
    /// End after this time [default: with Ctrl-C]
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
}

/// What both ends need.
#[derive(Args, Clone, Debug)]
struct Common {
    /// File with our private key, written by `tunnel keygen`; used with --peers.
    #[arg(long, value_name = "FILE", requires = "peers")]
    key: Option<PathBuf>,
    /// File with the public keys of the peers, one per line. An end that connects needs exactly
    /// one.
    #[arg(long, value_name = "FILE", requires = "key")]
    peers: Option<PathBuf>,
    /// File with a secret of 64 hexadecimal digits that both ends have, instead of keys.
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    secret: Option<PathBuf>,
    /// Do not encrypt, for experiments. Both ends must set it.
    #[arg(long, conflicts_with_all = ["key", "secret"])]
    plain: bool,
    /// Write the keys of all connections to this file, for `meshpace decrypt`.
    #[arg(long, value_name = "FILE", conflicts_with = "plain")]
    keylog: Option<PathBuf>,
    /// Choose the transport: `quiet-train+contending` or `quiet-train` (quiet trains for 802.11
    /// meshes), `bbr` for other paths, or a TPA of `meshpace transports`. The end that connects
    /// chooses it for both ends, with segments and ACKs [default: quiet-train+contending if packets
    /// to the other end leave through an 802.11 device, else bbr]
    #[arg(long)]
    transport: Option<String>,
    /// Allow this number of unacknowledged segments per stream from this end: 1 to 12, or `auto`
    /// for twice what the path holds, at least 3 [default: auto; with --transport the number in its
    /// name]
    #[arg(long, value_name = "N|auto", value_parser = window)]
    window: Option<window::Rule>,
    /// Payload of a full segment in bytes [default: what fits the path]
    #[arg(long)]
    segment: Option<u32>,
    /// Hops to the other end, for quiet trains and adaptive pacing [default: from the time to live
    /// of received packets]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    hops: Option<u8>,
    /// Data rate of the channel, for quiet trains and adaptive pacing.
    #[arg(long, value_name = "RATE", default_value = "2 Mbit/s", value_parser = rate)]
    channel_rate: Rate,
}

#[derive(Args, Clone, Debug)]
struct Listen {
    /// Address to listen on: `::` for IPv6 and IPv4, fe80::1%eth0 for one of a link.
    #[arg(long, default_value = "0.0.0.0")]
    address: hosts::Address,
    /// UDP port to listen on; 0 selects any free port, which is printed.
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Allow streams to this target: HOST:PORT as the other end writes it, udp:HOST:PORT for
    /// datagrams, or `any` [default: any with keys or a secret]
    #[arg(long, value_name = "TARGET")]
    allow: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("way").required(true).multiple(true))]
struct Connect {
    /// Host on which `tunnel listen` runs.
    host: String,
    /// UDP port of that host.
    #[arg(long, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Forward a TCP port of this machine to a target, as seen from the other end. Can be repeated.
    #[arg(short = 'L', value_name = "[ADDRESS:]PORT:HOST:PORT", group = "way")]
    forward: Vec<Forward>,
    /// Forward a UDP port of this machine to a target, as seen from the other end. Can be repeated.
    /// CLASS says what happens to waiting datagrams: expires=SECONDS (the default, with 1), latest
    /// (the next one replaces them) or reliable.
    #[arg(short = 'U', value_name = "[ADDRESS:]PORT:HOST:PORT[,CLASS]", group = "way")]
    datagrams: Vec<UdpForward>,
    /// Accept SOCKS 5 on this TCP port. Programs then name their targets themselves.
    #[arg(short = 'D', value_name = "[ADDRESS:]PORT", value_parser = socks_address, group = "way")]
    socks: Vec<String>,
    /// Carry all TCP connections to this network of the other site, such as 10.1.0.0/16 or
    /// fd00:1::/32: those of this machine and those that it forwards for others (needs root and
    /// `nft`).
    #[arg(long, value_name = "NETWORK", group = "way")]
    transparent: Vec<Network>,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.command {
        Command::Listen(One { end, watching, reporting }) => {
            run_one(What::Listen(Box::new(end.clone())), watching, reporting)
        }
        Command::Connect(One { end, watching, reporting }) => {
            run_one(What::Connect(Box::new(end.clone())), watching, reporting)
        }
        Command::Run(arguments) => return run_file(arguments),
        Command::Keygen { file } => keygen(file).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| failed(&error))
}

/// Reports the error and returns the exit status of a command that has failed.
fn failed(error: &io::Error) -> ExitCode {
    complain(&error.to_string());
    let refused = error.kind() == io::ErrorKind::InvalidInput;
    ExitCode::from(if refused { REFUSED } else { FAILED })
}

/// Runs a single end. A command line is treated as a file with one end.
fn run_one(what: What, watching: &Watching, reporting: &Reporting) -> io::Result<ExitCode> {
    let entry = Entry { name: String::new(), what, identity: Identity::default() };
    running::Process::begin(File { watching: watching.clone(), entries: vec![entry] }, None)?.run(reporting)
}

fn run_file(arguments: &FromFile) -> ExitCode {
    let read = file::read(&arguments.file).and_then(|read| match running::check(&read) {
        Ok(()) => Ok(read),
        Err(error) => Err(error.into()),
    });
    let read = match read {
        Ok(read) => read,
        Err(wrong) => {
            tell(&format!("{}\n", wrong.text(console::colors_enabled_stderr())));
            return ExitCode::from(REFUSED);
        }
    };
    if arguments.check {
        return ExitCode::SUCCESS;
    }
    let begun = running::Process::begin(read, Some(&arguments.file));
    begun.and_then(|process| process.run(&arguments.reporting)).unwrap_or_else(|error| failed(&error))
}

/// Parses `[ADDRESS:]PORT`.
fn socks_address(text: &str) -> Result<String, String> {
    let local = if text.contains(':') { text.to_owned() } else { format!("127.0.0.1:{text}") };
    let port = local.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.map(|_| local).ok_or_else(|| "expected [ADDRESS:]PORT".to_owned())
}

/// True for a target that streams or datagrams may request, and for `any`. No request could match
/// another text.
fn is_target(text: &str) -> bool {
    let end = text.strip_prefix("udp:").unwrap_or(text).rsplit_once(':');
    text == "any" || end.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Parses `auto` or a number of segments.
fn window(text: &str) -> Result<window::Rule, String> {
    let fixed = || text.parse().ok().map(window::Rule::Fixed).filter(|rule| rule.check().is_ok());
    let rule = if text == "auto" { Some(window::Rule::Auto) } else { fixed() };
    rule.ok_or_else(|| "expected auto, or 1 to 12 segments".to_owned())
}

/// True for the transports that a tunnel can use: TPA, and quiet trains that need no congestion
/// marks of relays, because the tunnel's UDP datagrams cannot carry marks.
fn is_for_tunnels(config: &Config) -> bool {
    match config {
        Config::Tpa(_) => true,
        Config::Train(trains) => trains.control.marks == 0.0,
        Config::Tcp(_) | Config::Udp(_) | Config::Flush(_) => false,
    }
}

/// Message for a `--transport` that no tunnel can use.
fn not_for_tunnels(name: &str, is_there: bool) -> String {
    let usable = names::table().iter().filter(|entry| is_for_tunnels(&(entry.build)())).map(|entry| entry.name);
    let usable: Vec<&str> = usable.chain([BBR]).collect();
    let what = match nearest(name, usable.iter().copied()) {
        _ if is_there => "not for tunnels.".to_owned(),
        Some(near) => format!("there is no such transport; did you mean {near}?"),
        None => "there is no such transport.".to_owned(),
    };
    format!("--transport {name}: {what} A tunnel takes one of {}", usable.join(", "))
}

/// Default transport of streams to a far end that is reached through an 802.11 device.
const OVER_RADIO: &str = "quiet-train+contending";

/// Default transport elsewhere: a session whose bulk data is carried by BBR.
const BBR: &str = "bbr";

/// Transport of a session for small messages: a TPA.
const EXPRESS: &str = "tpa-3";

/// Transports that carry the streams of an end.
struct Carriage {
    /// TPA, which sessions use for small messages.
    tpa: meshpace_transport::tpa::Config,
    /// Quiet trains, if they were chosen.
    trains: Option<train::Config>,
    /// True if BBR is used instead of quiet trains.
    bbr: bool,
}

impl Carriage {
    /// Transports by the name of the main one.
    ///
    /// # Errors
    ///
    /// A tunnel cannot use a transport of this name.
    fn named(name: &str) -> io::Result<Carriage> {
        let usual = || match names::lookup(EXPRESS) {
            Some(Config::Tpa(tpa)) => tpa,
            _ => meshpace_transport::tpa::Config::default(),
        };
        if name == BBR {
            // If the far end does not support BBR, these trains carry the session.
            return Ok(Carriage { bbr: true, ..Carriage::named(OVER_RADIO)? });
        }
        match names::lookup(name) {
            Some(Config::Tpa(tpa)) => Ok(Carriage { tpa, trains: None, bbr: false }),
            Some(Config::Train(trains)) if is_for_tunnels(&Config::Train(trains.clone())) => {
                Ok(Carriage { tpa: usual(), trains: Some(trains), bbr: false })
            }
            other => Err(refused(not_for_tunnels(name, other.is_some()))),
        }
    }
}

fn refused(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text.into())
}

fn keygen(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    let (private, public) = keys::generate()?;
    let to = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut to = to.map_err(explain).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::new(
            error.kind(),
            format!("{error}; an existing key is never replaced: give the name of a new file"),
        ),
        _ => error,
    })?;
    writeln!(to, "{}", keys::write(&private)).and_then(|()| to.sync_all()).map_err(explain)?;
    results(&format!("{}\n", keys::write(&public)))
}

impl Common {
    fn security(&self) -> io::Result<Security> {
        let known =
            |key: &Path, peers: &Path| Ok(Security::Keys { own: keys::read(key)?, peers: keys::read_all(peers)? });
        let security = match (&self.key, &self.peers, &self.secret) {
            (Some(key), Some(peers), _) => known(key, peers),
            (_, _, Some(secret)) => keys::read(secret).map(Security::Shared),
            _ if self.plain => Ok(Security::Plain),
            _ => Ok(Security::Opportunistic),
        };
        // A file that cannot be read is an error of the command line.
        security.map_err(|error| refused(error.to_string()))
    }

    /// Options for the transport called `name`.
    fn options(&self, name: &str) -> io::Result<tpa::Options> {
        let Carriage { tpa: mut express, trains, bbr } = Carriage::named(name)?;
        // The name of a TPA includes its window, so `--transport` with a TPA also chooses the
        // window.
        let usual =
            if self.transport.is_some() && trains.is_none() { window::Rule::Agreed } else { window::Rule::Auto };
        express.window = self.window.unwrap_or(usual);
        let mut options = tpa::Options { security: self.security()?, trains, bbr, ..tunnel::options(express) };
        if let Some(segment) = self.segment {
            options.transport.segment = segment;
        }
        options.path = Some(match self.hops {
            Some(hops) => {
                let path = PathInfo { hops, rate: self.channel_rate, received_power_dbm: None };
                Arc::new(tpa::path::Fixed(path))
            }
            None => Arc::new(tpa::path::TimeToLive { rate: self.channel_rate }),
        });
        options.check()?;
        Ok(options)
    }

    /// Warns about secrets that other users can read.
    fn warn(&self) {
        self.key.iter().chain(&self.secret).for_each(|file| caution::of_secret(file));
    }

    fn keylog(&self) -> io::Result<Option<Arc<KeyLog>>> {
        Ok(self.keylog.as_deref().map(KeyLog::append).transpose()?.map(Arc::new))
    }
}

impl Listen {
    /// Options of this end, and the targets that streams may request.
    fn prepare(&self) -> io::Result<(tpa::Options, Allowed)> {
        let common = &self.common;
        let mut options = common.options(common.transport.as_deref().unwrap_or(EXPRESS))?;
        // The end that connects chooses the transport. If it chooses quiet trains, those sent from
        // here have these parameters.
        if options.trains.is_none() {
            options.trains = Carriage::named(OVER_RADIO)?.trains;
        }
        options.takes_tpa = true;
        options.check()?;
        let anybody = matches!(options.security, Security::Plain | Security::Opportunistic);
        if self.allow.is_empty() && anybody {
            let text = "--allow is missing: without keys or a secret, anybody can use this end; give the allowed targets (--allow any: all)";
            return Err(refused(text));
        }
        match self.allow.iter().find(|target| !is_target(target)) {
            Some(wrong) => Err(refused(format!("--allow {wrong}: expected HOST:PORT, udp:HOST:PORT or any"))),
            None => Ok((options, self.allowed())),
        }
    }

    fn allowed(&self) -> Allowed {
        match &self.allow[..] {
            [] => Allowed::Anywhere,
            targets if targets.iter().any(|target| target == "any") => Allowed::Anywhere,
            targets => Allowed::These(targets.to_vec()),
        }
    }

    fn start(&self, name: &str) -> io::Result<End> {
        let (mut options, allowed) = self.prepare()?;
        self.common.warn();
        options.keylog = self.common.keylog()?;
        let keylog = options.keylog.clone();
        let port = TpaPort::with_options(self.address.at(self.port)?, options)?;
        let exit = Exit::new(allowed);
        exit.counters().watch(told(name));
        let service = exit.serve(port.listen(BACKLOG)?, log::warn)?;
        log::say(Level::Info, name, &format!("listening on UDP {}", port.local_addr()?));
        if port.local_addr()?.ip().is_unspecified() {
            log::say(Level::Info, name, &format!("serves {}", served(port.families())));
        }
        Ok(End { transport: None, keylog, role: Role::Listens { exit, service } })
    }
}

impl Connect {
    /// Options of this end over the transport called `transport`.
    fn prepare(&self, transport: &str) -> io::Result<tpa::Options> {
        let options = self.common.options(transport)?;
        if let Security::Keys { peers, .. } = &options.security
            && peers.len() != 1
        {
            return Err(refused(format!(
                "--peers: the file has {} keys, but an end that connects needs exactly one",
                peers.len()
            )));
        }
        Ok(options)
    }

    fn start(&self, name: &str) -> io::Result<End> {
        let far = resolve(&self.host, self.port)?;
        let addresses = far.addresses()?;
        let (transport, why) = choose(self.common.transport.as_deref(), addresses[0].ip());
        let mut options = self.prepare(&transport)?;
        self.common.warn();
        options.keylog = self.common.keylog()?;
        let (keylog, in_session) = (options.keylog.clone(), options.trains.is_some());
        // A host name may have addresses of the other family later.
        let of_a_number: &[SocketAddr] = if self.host.parse::<hosts::Address>().is_ok() { &addresses } else { &[] };
        let port = TpaPort::reaching(of_a_number, options)?;
        let there = far.clone();
        let connector = if in_session { Connector::in_session(port, there) } else { Connector::new(port, there) };
        connector.counters().watch(told(name));
        log::say(Level::Info, name, &format!("transport {transport}{why}"));
        let transparent = match &self.transparent[..] {
            [] => None,
            networks => {
                let transparent = connector.serve_networks(networks, log::warn)?;
                let list = networks.iter().map(Network::to_string).collect::<Vec<_>>().join(", ");
                log::say(Level::Info, name, &format!("connections to {list} are carried to {far}"));
                Some(transparent)
            }
        };
        let role = Role::Connects { connector, far, doors: Vec::new(), _transparent: transparent };
        Ok(End { transport: Some(transport), keylog, role })
    }
}

/// Text about the IP versions that an end on all addresses of this machine serves. If it is only
/// one, the text says why.
fn served(families: Families) -> String {
    match families {
        Families::V4 => format!("{families}: use --address :: to serve IPv6 too"),
        Families::V6 => format!("{families}: another socket of this machine uses the port for IPv4"),
        Families::Both => families.to_string(),
    }
}

/// Function that logs the events of the streams and sessions of an end.
fn told(name: &str) -> impl Fn(Event) + Send + Sync + use<> {
    let name = name.to_owned();
    move |event| match event {
        Event::SessionBegan(peer) => log::say(Level::Info, &name, &format!("session with {peer}")),
        // The code that ran the session logs the reason.
        Event::SessionOver(peer) => log::say(Level::Debug, &name, &format!("session with {peer} has ended")),
        Event::StreamOpened(number) => log::say(Level::Debug, &name, &format!("stream {number} is open")),
        Event::StreamOver(number, how) => log::say(Level::Debug, &name, &format!("stream {number} has ended: {how}")),
    }
}

/// A running end. [`End::end`] ends it.
struct End {
    /// Transport of its streams, if this end chooses it.
    transport: Option<String>,
    keylog: Option<Arc<KeyLog>>,
    role: Role,
}

/// Role of an end.
enum Role {
    Listens {
        exit: Exit,
        service: Service,
    },
    Connects {
        connector: Connector,
        far: Host,
        /// Local ports where connections and datagrams are accepted, with their addresses.
        doors: Vec<(Door, SocketAddr)>,
        /// The networks are no longer redirected when this value is dropped.
        _transparent: Option<Transparent>,
    },
}

/// Local port where connections or datagrams are accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Door {
    To(Forward),
    Datagrams(UdpForward),
    Socks(String),
}

impl Door {
    /// The local ports that the options of an end request.
    fn wanted(connect: &Connect) -> Vec<Door> {
        let forwards = connect.forward.iter().cloned().map(Door::To);
        let datagrams = connect.datagrams.iter().cloned().map(Door::Datagrams);
        forwards.chain(datagrams).chain(connect.socks.iter().cloned().map(Door::Socks)).collect()
    }

    /// Opens the port. Returns its address.
    fn open(&self, connector: &Connector) -> io::Result<SocketAddr> {
        match self {
            Door::To(forward) => connector.serve(forward, log::warn),
            Door::Datagrams(forward) => connector.serve_datagrams(forward, log::warn),
            Door::Socks(local) => connector.serve_socks(local, log::warn),
        }
    }

    /// Text of the log when the port is opened, to follow its address.
    fn opened(&self, far: &Host) -> String {
        match self {
            Door::To(forward) => format!("goes to {} through {far}", forward.target),
            Door::Datagrams(forward) => format!("carries datagrams to {} through {far}", forward.target),
            Door::Socks(_) => format!("carries connections of SOCKS 5 clients through {far}"),
        }
    }

    /// Closes the port. Returns the text of the log, to follow its address.
    fn close(&self, connector: &Connector, local: SocketAddr) -> &'static str {
        match self {
            Door::To(_) | Door::Socks(_) => {
                connector.close(local);
                "accepts no more connections"
            }
            Door::Datagrams(_) => {
                connector.close_datagrams(local);
                "accepts no more datagrams"
            }
        }
    }
}

impl End {
    /// Checks that an entry is valid, without starting its end.
    ///
    /// # Errors
    ///
    /// The reason why it is not valid.
    fn prepare(entry: &Entry) -> io::Result<()> {
        match &entry.what {
            What::Listen(listen) => listen.prepare().map(drop),
            What::Connect(connect) => connect.prepare(connect.common.transport.as_deref().unwrap_or(BBR)).map(drop),
        }
    }

    /// Starts an end. The caller has to call [`End::adjust`] afterwards.
    ///
    /// # Errors
    ///
    /// The entry is not valid, or the system does not grant a resource.
    fn start(entry: &Entry) -> io::Result<End> {
        match &entry.what {
            What::Listen(listen) => listen.start(&entry.name),
            What::Connect(connect) => connect.start(&entry.name),
        }
    }

    /// Applies those settings of the entry that may change while the end runs: the targets that
    /// streams and datagrams may request, and the local ports.
    ///
    /// # Errors
    ///
    /// A local port cannot be opened. The other changes are made all the same.
    fn adjust(&mut self, entry: &Entry) -> io::Result<()> {
        let (connector, far, doors, connect) = match (&mut self.role, &entry.what) {
            (Role::Listens { exit, .. }, What::Listen(listen)) => {
                exit.allow(listen.allowed());
                return Ok(());
            }
            (Role::Connects { connector, far, doors, .. }, What::Connect(connect)) => (connector, far, doors, connect),
            _ => return Err(refused("an end that is of another kind")),
        };
        let wanted = Door::wanted(connect);
        doors.retain(|(door, local)| {
            let is_wanted = wanted.contains(door);
            if !is_wanted {
                let done = door.close(connector, *local);
                log::say(Level::Info, &entry.name, &format!("{local} {done}"));
            }
            is_wanted
        });
        let mut done = Ok(());
        for door in wanted {
            if doors.iter().any(|(known, _)| *known == door) {
                continue;
            }
            match door.open(connector) {
                Ok(local) => {
                    caution::of_entrance(local);
                    log::say(Level::Info, &entry.name, &format!("{local} {}", door.opened(far)));
                    doors.push((door, local));
                }
                Err(error) => done = Err(error),
            }
        }
        done
    }

    /// Checks that the end can continue.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    fn check(&self) -> io::Result<()> {
        if let Role::Listens { service, .. } = &self.role
            && service.is_finished()
        {
            return Err(io::Error::other("nobody takes streams any more"));
        }
        self.keylog.as_ref().map_or(Ok(()), |log| log.check())
    }

    /// Counters of the end.
    fn counters(&self) -> Counters {
        match &self.role {
            Role::Listens { exit, .. } => exit.counters(),
            Role::Connects { connector, .. } => connector.counters(),
        }
    }

    /// Counters of its UDP port.
    fn port_counters(&self) -> PortCounters {
        match &self.role {
            Role::Listens { service, .. } => service.port_counters(),
            Role::Connects { connector, .. } => connector.port_counters(),
        }
    }

    /// Transport of its streams, if this end chooses it.
    fn transport(&self) -> Option<&str> {
        self.transport.as_deref()
    }

    /// True if the end has open streams or flows of datagrams, so that far ends have to be told
    /// when it ends.
    fn carries(&self) -> bool {
        let totals = self.counters().totals();
        totals.open > 0 || totals.datagrams.flows > 0
    }

    /// Ends it. All streams are reset, here and at the far ends.
    fn end(self) {
        match self.role {
            Role::Listens { service, .. } => service.end(),
            Role::Connects { connector, .. } => connector.end(),
        }
    }
}

/// Transport to the far end, and a text that says why it was chosen.
fn choose(asked: Option<&str>, far: IpAddr) -> (String, String) {
    match asked {
        Some(name) => (name.to_owned(), String::new()),
        None => match medium::wireless(far) {
            Some(device) => {
                (OVER_RADIO.to_owned(), format!(", because packets to {far} leave through {device}, which is 802.11"))
            }
            None => {
                let hint = format!("for a mesh behind a wired router, use the transport {OVER_RADIO}");
                (BBR.to_owned(), format!(", because packets to {far} do not leave through 802.11; {hint}"))
            }
        },
    }
}
