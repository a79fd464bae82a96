//! `meshpace tunnel`: ordinary TCP connections and UDP datagrams between two sites over TPA or quiet trains.

use crate::caution;
use crate::network::{rate, resolve, seconds};
use crate::output::{complain, results};
use crate::{FAILED, INTERRUPTED, REFUSED, runner};
use clap::{ArgGroup, Args, Subcommand};
use meshpace_core::Rate;
use meshpace_live::tpa::keylog::KeyLog;
use meshpace_live::tpa::{self, Security, TpaPort, keys};
use meshpace_live::tunnel::{
    self, Allowed, CarriedBy, Connector, Counters, Exit, Forward, Network, Totals, UdpForward, medium,
};
use meshpace_scenario::nearest;
use meshpace_transport::tpa::window;
use meshpace_transport::{Config, PathInfo, names, train};
use serde_json::json;
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The UDP port that both ends use if nothing else is said.
const PORT: u16 = 7800;
/// Streams that nobody has taken yet.
const BACKLOG: usize = 1024;
/// How often it says what it does.
const TICK: std::time::Duration = std::time::Duration::from_secs(1);

/// The arguments of `meshpace tunnel`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Let streams come out here: connect them to their targets.
    Listen(Listen),
    /// Take TCP connections on ports of this machine and send them through.
    Connect(Connect),
    /// Write a private key to a file that does not exist yet, and print the public key.
    Keygen {
        /// The file.
        file: PathBuf,
    },
}

/// What both ends need.
#[derive(Args, Debug)]
struct Common {
    /// Our private key, as `tunnel keygen` writes it; with --peers.
    #[arg(long, value_name = "FILE", requires = "peers")]
    key: Option<PathBuf>,
    /// A file with the public keys of the peers, one per line; who connects needs exactly one.
    #[arg(long, value_name = "FILE", requires = "key")]
    peers: Option<PathBuf>,
    /// A file with a secret of 64 hexadecimal digits that both ends know, instead of keys.
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    secret: Option<PathBuf>,
    /// Do not encrypt: for experiments. Both ends must say so.
    #[arg(long, conflicts_with_all = ["key", "secret"])]
    plain: bool,
    /// Write the keys of all connections to this file, for `meshpace decrypt`.
    #[arg(long, value_name = "FILE", conflicts_with = "plain")]
    keylog: Option<PathBuf>,
    /// A TPA of `meshpace transports`, or quiet trains for 802.11 meshes: `quiet-train`, `quiet-train+competitive`. The end that connects decides
    /// which, and about segments and ACKs [default: quiet-train if packets to the other end leave by an 802.11 device, else tpa-3]
    #[arg(long)]
    transport: Option<String>,
    /// Segments that this end lets be outstanding in a stream: 1 to 12, or `auto`, twice what the way holds, 3 at least [default: auto; with
    /// --transport the number in its name]
    #[arg(long, value_name = "N|auto", value_parser = window)]
    window: Option<window::Rule>,
    /// Payload of a full segment in bytes [default: what fits the way]
    #[arg(long)]
    segment: Option<u32>,
    /// Hops to the other end, for quiet trains and adaptive pacing [default: by the time to live of what arrives]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    hops: Option<u8>,
    /// The channel's data rate, for quiet trains and adaptive pacing.
    #[arg(long, value_name = "RATE", default_value = "2 Mbit/s", value_parser = rate)]
    channel_rate: Rate,
    /// Print an object every second to standard output.
    #[arg(long)]
    json: bool,
    /// End after so long [default: with Ctrl-C]
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
}

#[derive(Args, Debug)]
struct Listen {
    /// The address to listen on: `[::]` for IPv6.
    #[arg(long, default_value = "0.0.0.0")]
    address: IpAddr,
    /// The UDP port; 0 for any that is free, which is then told.
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// A target that streams may go to, HOST:PORT as it is asked for, udp:HOST:PORT for datagrams, or `any` [default: any with keys or a secret]
    #[arg(long, value_name = "TARGET")]
    allow: Vec<String>,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("way").required(true).multiple(true))]
struct Connect {
    /// Where `tunnel listen` runs.
    host: String,
    /// The UDP port there.
    #[arg(long, default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// A TCP port here and where its connections go, seen from there; as often as wanted.
    #[arg(short = 'L', value_name = "[ADDRESS:]PORT:HOST:PORT", group = "way")]
    forward: Vec<Forward>,
    /// A UDP port here and where its datagrams go, seen from there; as often as wanted. CLASS says what becomes of datagrams that wait:
    /// expires=SECONDS (the default, with 1), latest (the next one replaces them) or reliable.
    #[arg(short = 'U', value_name = "[ADDRESS:]PORT:HOST:PORT[,CLASS]", group = "way")]
    datagrams: Vec<UdpForward>,
    /// A TCP port here for programs that speak SOCKS 5 and say themselves where they want to go.
    #[arg(short = 'D', value_name = "[ADDRESS:]PORT", value_parser = socks_address, group = "way")]
    socks: Vec<String>,
    /// A network at the far site, 10.1.0.0/16 or fd00:1::/32 for example: all TCP connections to it go through, of this machine and of those it
    /// forwards for (root, `nft`).
    #[arg(long, value_name = "NETWORK", group = "way")]
    transparent: Vec<Network>,
    #[command(flatten)]
    common: Common,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.command {
        Command::Listen(arguments) => listen(arguments),
        Command::Connect(arguments) => connect(arguments),
        Command::Keygen { file } => keygen(file).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        complain(&error.to_string());
        let refused = error.kind() == io::ErrorKind::InvalidInput;
        ExitCode::from(if refused { REFUSED } else { FAILED })
    })
}

/// Reads `[ADDRESS:]PORT`.
fn socks_address(text: &str) -> Result<String, String> {
    let local = if text.contains(':') { text.to_owned() } else { format!("127.0.0.1:{text}") };
    let port = local.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.map(|_| local).ok_or_else(|| "expected [ADDRESS:]PORT".to_owned())
}

/// Reads `auto` or a number of segments.
fn window(text: &str) -> Result<window::Rule, String> {
    let fixed = || text.parse().ok().map(window::Rule::Fixed).filter(|rule| rule.check().is_ok());
    let rule = if text == "auto" { Some(window::Rule::Auto) } else { fixed() };
    rule.ok_or_else(|| "expected auto, or 1 to 12 segments".to_owned())
}

/// The transports that a tunnel takes: TPA, and quiet trains that ask nothing of relays, for UDP has no marks.
fn is_for_tunnels(config: &Config) -> bool {
    match config {
        Config::Tpa(_) => true,
        Config::Train(trains) => trains.control.marks == 0.0,
        Config::Tcp(_) | Config::Udp(_) => false,
    }
}

/// What is said of a `--transport` that no tunnel can use.
fn not_for_tunnels(name: &str, is_there: bool) -> String {
    let usable = names::table().iter().filter(|entry| is_for_tunnels(&(entry.build)())).map(|entry| entry.name);
    let usable: Vec<&str> = usable.collect();
    let what = match nearest(name, usable.iter().copied()) {
        _ if is_there => "not for tunnels.".to_owned(),
        Some(near) => format!("no such transport, did you mean {near}?"),
        None => "no such transport.".to_owned(),
    };
    format!("--transport {name}: {what} A tunnel takes one of {}", usable.join(", "))
}

/// What carries streams if nothing else is said, to a far end that is reached by an 802.11 device, and elsewhere.
const OVER_RADIO: &str = "quiet-train";
const ELSEWHERE: &str = "tpa-3";

/// What carries the streams of an end.
struct Carriage {
    /// TPA, which sessions have for what is small.
    tpa: meshpace_transport::tpa::Config,
    /// Quiet trains, if they are asked for.
    trains: Option<train::Config>,
}

impl Carriage {
    /// By the name of a transport.
    ///
    /// # Errors
    ///
    /// It is none that a tunnel takes.
    fn named(name: &str) -> io::Result<Carriage> {
        let usual = || match names::lookup(ELSEWHERE) {
            Some(Config::Tpa(tpa)) => tpa,
            _ => meshpace_transport::tpa::Config::default(),
        };
        match names::lookup(name) {
            Some(Config::Tpa(tpa)) => Ok(Carriage { tpa, trains: None }),
            Some(Config::Train(trains)) if is_for_tunnels(&Config::Train(trains.clone())) => {
                Ok(Carriage { tpa: usual(), trains: Some(trains) })
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
    let (private, public) = Security::new_key()?;
    let mut to = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(explain)?;
    writeln!(to, "{}", keys::write(&private)).and_then(|()| to.sync_all()).map_err(explain)?;
    results(&format!("{}\n", keys::write(&public)))
}

impl Common {
    fn security(&self) -> io::Result<Security> {
        self.key.iter().chain(&self.secret).for_each(|file| caution::of_secret(file));
        let known =
            |key: &Path, peers: &Path| Ok(Security::Keys { own: keys::read(key)?, peers: keys::read_all(peers)? });
        let security = match (&self.key, &self.peers, &self.secret) {
            (Some(key), Some(peers), _) => known(key, peers),
            (_, _, Some(secret)) => keys::read(secret).map(Security::Shared),
            _ if self.plain => Ok(Security::Plain),
            _ => Ok(Security::Opportunistic),
        };
        // A file that cannot be read is a mistake of the command line.
        security.map_err(|error| refused(error.to_string()))
    }

    /// The options for a transport by its name.
    fn options(&self, name: &str) -> io::Result<tpa::Options> {
        let Carriage { tpa: mut express, trains } = Carriage::named(name)?;
        // Who names a TPA names its window.
        let usual =
            if self.transport.is_some() && trains.is_none() { window::Rule::Agreed } else { window::Rule::Auto };
        express.window = self.window.unwrap_or(usual);
        let mut options = tpa::Options { security: self.security()?, trains, ..tunnel::options(express) };
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
        options.keylog = self.keylog.as_deref().map(KeyLog::append).transpose()?.map(Arc::new);
        options.check()?;
        Ok(options)
    }
}

fn listen(arguments: &Listen) -> io::Result<ExitCode> {
    let common = &arguments.common;
    let mut options = common.options(common.transport.as_deref().unwrap_or(ELSEWHERE))?;
    // Who connects decides; the trains that are sent from here have these parameters.
    if options.trains.is_none() {
        options.trains = Carriage::named(OVER_RADIO)?.trains;
    }
    options.takes_tpa = true;
    options.check()?;
    let anybody = matches!(options.security, Security::Plain | Security::Opportunistic);
    let allowed = match &arguments.allow[..] {
        [] if anybody => {
            let text =
                "--allow: without keys or a secret anybody may use this end: say where to (--allow any: anywhere)";
            return Err(refused(text));
        }
        [] => Allowed::Anywhere,
        targets if targets.iter().any(|target| target == "any") => Allowed::Anywhere,
        targets => Allowed::These(targets.to_vec()),
    };
    let keylog = options.keylog.clone();
    let port = TpaPort::with_options((arguments.address, arguments.port), options)?;
    complain(&format!("listening on UDP {}", port.local_addr()?));
    let exit = Exit::new(allowed);
    let serving = exit.serve(port.listen(BACKLOG)?, complain)?;
    report(common, None, &exit.counters(), || match serving.is_finished() {
        true => Err(io::Error::other("nobody takes streams any more")),
        false => keylog.as_ref().map_or(Ok(()), |log| log.check()),
    })
}

fn connect(arguments: &Connect) -> io::Result<ExitCode> {
    let far = resolve(&arguments.host, arguments.port)?;
    let (transport, why) = choose(arguments.common.transport.as_deref(), far.ip());
    let options = arguments.common.options(&transport)?;
    if let Security::Keys { peers, .. } = &options.security
        && peers.len() != 1
    {
        return Err(refused(format!("--peers: {} keys, and who connects needs exactly one", peers.len())));
    }
    let any: IpAddr = if far.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let keylog = options.keylog.clone();
    let in_session = options.trains.is_some();
    let port = TpaPort::with_options((any, 0), options)?;
    let connector = if in_session { Connector::in_session(port, far) } else { Connector::new(port, far) };
    complain(&format!("transport {transport}{why}"));
    for forward in &arguments.forward {
        let local = connector.serve(forward, complain)?;
        caution::of_entrance(local);
        complain(&format!("{local} goes to {} through {far}", forward.target));
    }
    for forward in &arguments.datagrams {
        let local = connector.serve_datagrams(forward, complain)?;
        caution::of_entrance(local);
        complain(&format!("{local} takes datagrams for {} through {far}", forward.target));
    }
    for local in &arguments.socks {
        let local = connector.serve_socks(local, complain)?;
        caution::of_entrance(local);
        complain(&format!("{local} goes where clients of SOCKS 5 want, through {far}"));
    }
    // Removed when this function ends.
    let _transparent = match &arguments.transparent[..] {
        [] => None,
        networks => {
            let transparent = connector.serve_networks(networks, complain)?;
            let list = networks.iter().map(Network::to_string).collect::<Vec<_>>().join(", ");
            complain(&format!("connections to {list} go through {far}"));
            Some(transparent)
        }
    };
    report(&arguments.common, Some(&transport), &connector.counters(), || {
        keylog.as_ref().map_or(Ok(()), |log| log.check())
    })
}

/// The transport to the far end, and why it is this one.
fn choose(asked: Option<&str>, far: IpAddr) -> (String, String) {
    match asked {
        Some(name) => (name.to_owned(), String::new()),
        None => match medium::wireless(far) {
            Some(device) => {
                (OVER_RADIO.to_owned(), format!(", since packets to {far} leave by {device}, which is 802.11"))
            }
            None => (ELSEWHERE.to_owned(), format!(", since no packets to {far} leave by 802.11")),
        },
    }
}

/// Says every second what is done, until it is to end. `transport` carries the streams, if this end decides.
fn report(
    common: &Common,
    transport: Option<&str>,
    counters: &Counters,
    healthy: impl Fn() -> io::Result<()>,
) -> io::Result<ExitCode> {
    let live = io::stderr().is_terminal() && !common.json;
    let ended = report_until_end(common, transport, counters, live, healthy);
    if live {
        // What the shell says next begins a line of its own.
        let _ = writeln!(io::stderr());
    }
    ended
}

fn report_until_end(
    common: &Common,
    transport: Option<&str>,
    counters: &Counters,
    live: bool,
    healthy: impl Fn() -> io::Result<()>,
) -> io::Result<ExitCode> {
    let stop = runner::stop_on_interrupt();
    let mut left = common.seconds;
    let mut before = counters.totals();
    loop {
        let span = left.map_or(TICK, |left| TICK.min(std::time::Duration::from_secs_f64(left)));
        #[expect(clippy::disallowed_methods, reason = "a line for people every second")]
        std::thread::sleep(span);
        healthy()?;
        let now = counters.totals();
        if common.json {
            results(&line(&now, transport))?;
        } else if live {
            show(&now, &before);
        }
        before = now;
        if stop.load(Ordering::Relaxed) {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        left = left.map(|left| left - span.as_secs_f64());
        if left.is_some_and(|left| left <= 0.0) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// The mean interval between segments that pacing asked for; none without pacing.
fn interval(totals: &Totals) -> Option<f64> {
    (totals.stats.interval_samples > 0).then(|| totals.stats.interval_sum_s / totals.stats.interval_samples as f64)
}

fn line(totals: &Totals, transport: Option<&str>) -> String {
    let Totals { open, opened, refused, aborted, sent, received, hops, stats, carried_by, datagrams } = totals;
    // Who listens sees of which kind it is, and not its name.
    let seen = carried_by.map(|by| match by {
        CarriedBy::Tpa => "tpa",
        CarriedBy::Session => "quiet-train",
    });
    let object = json!({
        "streams": open, "opened": opened, "refused": refused, "aborted": aborted, "sent_bytes": sent,
        "received_bytes": received, "hops": hops, "segments_sent": stats.segments_sent,
        "retransmissions": stats.retransmissions, "timeouts": stats.timeouts, "interval_s": interval(totals),
        "transport": transport.or(seen), "flows": datagrams.flows, "datagrams_sent": datagrams.sent,
        "datagrams_received": datagrams.received, "datagrams_dropped": datagrams.dropped,
    });
    format!("{object}\n")
}

fn show(now: &Totals, before: &Totals) {
    let rate = |now: u64, before: u64| (now - before) as f64 * 8e-3 / TICK.as_secs_f64();
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    // Nobody is left to be told if standard error is closed.
    let _ = write!(
        io::stderr(),
        "\rstreams {:4}   flows {:3}   out {:10.1} kbit/s   in {:10.1} kbit/s   hops {:>2}   interval {:>9}   again {:6}   aborted {:4} ",
        now.open,
        now.datagrams.flows,
        rate(now.sent, before.sent),
        rate(now.received, before.received),
        text(now.hops.map(|hops| hops.to_string())),
        text(interval(now).map(|seconds| format!("{:.2} ms", seconds * 1e3))),
        now.stats.retransmissions,
        now.aborted,
    );
    let _ = io::stderr().flush();
}
