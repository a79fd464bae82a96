//! `meshpace kernel`: TCP with adaptive pacing, or with quiet trains of the sender alone, as a
//! congestion control of the Linux kernel for all programs of this machine.

use crate::output::{complain, finish, note, results};
use crate::{FAILED, REFUSED};
use clap::{Args, Subcommand, ValueEnum};
use meshpace_command::quantities::{quantity, rate};
use meshpace_core::{Duration, Rate};
use meshpace_kernel::object::{self, Request, Status};
use meshpace_kernel::watch::{Change, Follower, Hops, Sources, Watcher};
use meshpace_kernel::{Connection, Destination, Error, Form, NAME, Path, tuning};
use meshpace_lab::record::table::listing;
use meshpace_live::tunnel::medium::is_wireless;
use meshpace_scenario::quantity::TIME;
use serde_json::{Value, json};
use std::fs;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::thread;

/// The arguments of `meshpace kernel`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Register the congestion control. It stays registered after this command, until `unload` or a
    /// restart.
    Load(Load),
    /// Show what is loaded, and the connections that use it.
    Status(Look),
    /// Unregister the congestion control, and undo the changes that were made for it. Connections
    /// that use it keep it.
    Unload(Unload),
}

#[derive(Args, Debug)]
struct Load {
    /// Choose adaptive pacing, or quiet trains of the sender alone.
    #[arg(long, value_enum, default_value_t = Control::TcpAp)]
    control: Control,
    /// Register it under this name, by which programs choose it [default: meshpace_ap, or
    /// meshpace_solo for quiet trains].
    #[arg(long)]
    name: Option<String>,
    /// Choose the paper that defines the interval of adaptive pacing.
    #[arg(long, value_enum, default_value_t = Choice::Ap05)]
    form: Choice,
    #[command(flatten)]
    usual: Usual,
    /// Describe the path to a destination, at least its hops: `10.0.0.0/8=4`, or
    /// `10.0.0.7=4,rate=11 Mbit/s,sensing=2`.
    #[arg(long = "path", value_name = "DESTINATION=HOPS")]
    paths: Vec<String>,
    /// Multiply the RTT's coefficient of variation by this factor, 0 to 10.
    #[arg(long, default_value_t = 2.0, allow_negative_numbers = true, value_parser = factor)]
    dispersion_factor: f64,
    /// Limit the window to this number of segments until ten have been sent, because the kernel
    /// never paces those. 0 keeps the kernel's initial window, 10.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=1000))]
    initial_window: u32,
    /// Let users without privileges choose it.
    #[arg(long)]
    allow_users: bool,
    /// Pace connections over this device as over 802.11, and let the device send one segment at a
    /// time (gso_max_segs 1) until `unload`. Other devices may send in bursts.
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Pace connections over every device. Otherwise, connections use NewReno if their device is
    /// not 802.11, does not lie upon such a device, and is not named by --device. A destination
    /// with a --path of its own is always paced.
    #[arg(long)]
    everywhere: bool,
    /// Keep running, and update the hops from the routes of mesh routing daemons and from the paths
    /// of 802.11s meshes, until interrupted. Values of --path are not changed.
    #[arg(long)]
    watch: bool,
    /// Take hops only from routes over this device [default: every device].
    #[arg(long = "watch-device", value_name = "DEVICE", requires = "watch")]
    watch_devices: Vec<String>,
    /// Divide the metric of a route by this number to get its hops: 1 if the metric is in hops, 96
    /// or 256 for the wired and wireless links of babeld.
    #[arg(long, value_name = "METRIC", requires = "watch", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_535))]
    metric_per_hop: u32,
    /// Print what is loaded as a JSON object.
    #[arg(long)]
    json: bool,
}

/// The path to destinations that no `--path` names.
#[derive(Args, Debug)]
struct Usual {
    /// Assume this number of hops to destinations that have no --path.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..))]
    hops: u8,
    /// Data rate of the channel.
    #[arg(long, value_name = "RATE", default_value = "2 Mbit/s", value_parser = rate)]
    channel_rate: Rate,
    /// H_cs: hops after which a sender is no longer sensed; 0 if the whole path senses it. AP10
    /// only.
    #[arg(long, default_value_t = 3)]
    sensing_hops: u8,
    /// t_LLD: time that the link layer adds to each hop of a data packet [default: the middle of
    /// AP10's bounds]. AP10 only.
    #[arg(long, value_name = "TIME", value_parser = time)]
    link_delay_data: Option<Duration>,
    /// t_LLA: time that the link layer adds to each hop of an ACK [default: the middle of AP10's
    /// bounds]. AP10 only.
    #[arg(long, value_name = "TIME", value_parser = time)]
    link_delay_ack: Option<Duration>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Control {
    /// TCP with adaptive pacing.
    TcpAp,
    /// Pairs of segments, and silence after each train until all of it is acknowledged.
    QuietTrainSolo,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    /// The four-hop delay.
    Ap05,
    /// The out-of-interference delay.
    Ap10,
}

#[derive(Args, Debug)]
struct Look {
    /// Show only this congestion control.
    name: Option<String>,
    /// Print one JSON object per congestion control and line.
    #[arg(long)]
    json: bool,
    /// Print again every second, until interrupted.
    #[arg(long)]
    live: bool,
}

#[derive(Args, Debug)]
struct Unload {
    /// Name of the congestion control.
    #[arg(long, default_value = NAME)]
    name: String,
}

/// Returns the network devices of this machine that are 802.11 devices or that lie upon such a
/// device.
fn wireless_devices() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/class/net") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut radios: Vec<String> = names.filter(|device| is_wireless(device)).collect();
    radios.sort();
    radios
}

fn factor(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor| (0.0..=10.0).contains(factor))
        .ok_or_else(|| "expected a number from 0 to 10".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    quantity(&TIME, text).map(Duration::from_secs_f64)
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.action {
        Action::Load(arguments) => load(arguments),
        Action::Status(arguments) => look(arguments),
        Action::Unload(arguments) => object::unload(&arguments.name).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        complain(&error.to_string());
        ExitCode::from(if matches!(error, Error::Refused(_)) { REFUSED } else { FAILED })
    })
}

fn load(arguments: &Load) -> Result<ExitCode, Error> {
    let usual = Path { always: arguments.everywhere, ..usual(&arguments.usual) };
    let paths: Result<Vec<_>, Error> = arguments.paths.iter().map(|text| path(text, &usual)).collect();
    let form = match (arguments.control, arguments.form) {
        (Control::QuietTrainSolo, _) => Form::QuietTrainSolo,
        (Control::TcpAp, Choice::Ap05) => Form::Ap05,
        (Control::TcpAp, Choice::Ap10) => Form::Ap10,
    };
    let request = Request {
        name: arguments.name.clone().unwrap_or_else(|| form.usual_name().to_owned()),
        form,
        usual,
        paths: paths?,
        factor: (arguments.dispersion_factor * 100.0).round() as u32,
        initial_window: arguments.initial_window,
        allow_users: arguments.allow_users,
        devices: arguments.devices.clone(),
        radios: wireless_devices(),
    };
    let sources = Sources { devices: arguments.watch_devices.clone(), metric_per_hop: arguments.metric_per_hop };
    let watcher = arguments.watch.then(|| Watcher::new(sources)).transpose()?;
    object::load(&request)?;
    warn(&request, arguments.watch);
    if arguments.json
        && let Err(error) = results(&format!("{}\n", object_of(&object::status(&request.name)?)))
    {
        return Ok(crate::output::failed(&error));
    }
    match watcher {
        Some(watcher) => watch(&request, watcher),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Warns if the effect may differ from what the user intended.
fn warn(request: &Request, watches: bool) {
    let over_all = request.usual.always || watches || !request.paths.is_empty();
    if !over_all && request.devices.is_empty() && request.radios.is_empty() {
        complain(
            "this machine has no 802.11 device, so nothing is paced until there is one; see --device, --path and --everywhere",
        );
    }
    let mut bursting = tuning::bursting();
    // Devices over which nothing is paced may send bursts.
    bursting.retain(|device| over_all || request.radios.contains(device));
    if !bursting.is_empty() {
        let named: Vec<String> = bursting.iter().map(|device| format!("--device {device}")).collect();
        complain(&format!(
            "{} may send several segments at once if round trips are short or the rate is above 11 Mbit/s; load with {} to prevent this",
            bursting.join(", "),
            named.join(" ")
        ));
    }
}

/// Longest wait before the routes are read again.
const GLANCE: std::time::Duration = std::time::Duration::from_millis(250);

/// Keeps the hops up to date until the command is interrupted or the congestion control is
/// unloaded.
fn watch(request: &Request, mut watcher: Watcher) -> Result<ExitCode, Error> {
    let stop = meshpace_command::interrupt::stop_on_interrupt();
    let told = request.paths.iter().map(|(destination, _)| *destination).collect();
    let mut follower = Follower::new(object::Paths::of(&request.name)?, request.usual, told);
    let what =
        if watcher.reads_mesh_paths() { "routes and mesh paths" } else { "routes (this machine has no 802.11 device)" };
    note(&format!("watching {what}; Ctrl-C ends it, and {} stays loaded", request.name));
    let mut complained = None;
    while !stop.load(Ordering::Relaxed) {
        if !tuning::is_registered(&request.name) {
            note(&format!("{} is no longer loaded", request.name));
            return Ok(ExitCode::SUCCESS);
        }
        let (changes, trouble) = match watcher.read() {
            Ok(found) => follower.follow(found),
            Err(error) => (Vec::new(), Some(Error::failed("netlink", error))),
        };
        for change in changes {
            note(&match change {
                Change::Set(destination, 1) => format!("{destination}: 1 hop"),
                Change::Set(destination, hops) => format!("{destination}: {hops} hops"),
                Change::Removed(destination) => format!("{destination}: back to the default"),
            });
        }
        // The same trouble is reported once, not every quarter of a second.
        if trouble.is_some() && trouble != complained {
            complain(&trouble.as_ref().map(Error::to_string).unwrap_or_default());
        }
        complained = trouble;
        watcher.wait(GLANCE).map_err(|error| Error::failed("netlink", error))?;
    }
    // Hops that are no longer kept up to date are worse than the default, so they are removed.
    let (_, trouble) = follower.follow(Hops::new());
    trouble.map_or(Ok(ExitCode::SUCCESS), Err)
}

fn usual(arguments: &Usual) -> Path {
    let path = Path::new(arguments.hops, arguments.channel_rate);
    Path {
        sensing: (arguments.sensing_hops > 0).then_some(arguments.sensing_hops),
        link_data: arguments.link_delay_data.unwrap_or(path.link_data),
        link_ack: arguments.link_delay_ack.unwrap_or(path.link_ack),
        ..path
    }
}

/// Parses `DESTINATION=HOPS[,rate=RATE][,sensing=HOPS]`. Parts that are left out have the values of
/// `usual`.
fn path(text: &str, usual: &Path) -> Result<(Destination, Path), Error> {
    let refuse = |what: &str| Error::Refused(format!("--path {text}: {what}"));
    let (destination, rest) =
        text.split_once('=').ok_or_else(|| refuse("expected DESTINATION=HOPS, such as 10.0.0.0/8=4"))?;
    let destination = destination.trim().parse().map_err(|error: String| refuse(&error))?;
    let hops = |text: &str| {
        let hops = text.trim().parse::<u8>().ok().filter(|hops| *hops > 0);
        hops.ok_or_else(|| refuse(&format!("expected 1 to 255 hops, not `{}`", text.trim())))
    };
    let mut parts = rest.split(',');
    let mut path = Path { hops: hops(parts.next().unwrap_or(""))?, always: true, ..*usual };
    for part in parts {
        match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
            // The delays of the link layer depend on the rate, so they are computed again.
            Some(("rate", value)) => {
                let other = Path::new(path.hops, rate(value).map_err(|error| refuse(&error))?);
                path = Path { sensing: path.sensing, ..other };
            }
            Some(("sensing", value)) => path.sensing = Some(hops(value)?),
            _ => return Err(refuse(&format!("expected rate=RATE or sensing=HOPS, found `{part}`"))),
        }
    }
    path.check().map_err(|error| refuse(&error.to_string()))?;
    Ok((destination, path))
}

fn look(arguments: &Look) -> Result<ExitCode, Error> {
    loop {
        let names = match &arguments.name {
            Some(name) => vec![name.clone()],
            None => object::loaded()?,
        };
        let all: Result<Vec<Status>, Error> = names.iter().map(|name| object::status(name)).collect();
        let all = all?;
        if all.is_empty() {
            complain("nothing is loaded; load it with `meshpace kernel load`");
        }
        let text: String = all
            .iter()
            .map(|status| if arguments.json { format!("{}\n", object_of(status)) } else { table(status) })
            .collect();
        if !arguments.live {
            return Ok(finish(&text));
        }
        if let Err(error) = results(&text) {
            return Ok(crate::output::failed(&error));
        }
        #[expect(clippy::disallowed_methods, reason = "what is shown changes in real time")]
        thread::sleep(std::time::Duration::from_secs(1));
    }
}

fn object_of(status: &Status) -> Value {
    let paths: Vec<Value> = status.paths.iter().map(|(destination, path)| path_object(destination, path)).collect();
    let connections: Vec<Value> = status.connections.iter().map(connection_object).collect();
    json!({
        "name": status.name,
        "registered": status.registered,
        "users": status.users,
        "form": status.form.tag(),
        "dispersion_factor": f64::from(status.factor) / 100.0,
        "initial_window": status.initial_window,
        "paths": paths,
        "connections": connections,
    })
}

fn path_object(destination: &Destination, path: &Path) -> Value {
    json!({
        "destination": destination.to_string(),
        "hops": path.hops,
        "channel_rate_bps": path.rate.0,
        "always": path.always,
        "sensing_hops": path.sensing,
        "link_delay_data_s": path.link_data.as_secs_f64(),
        "link_delay_ack_s": path.link_ack.as_secs_f64(),
    })
}

fn connection_object(connection: &Connection) -> Value {
    json!({
        "local": connection.local.to_string(),
        "remote": connection.remote.to_string(),
        "namespace": connection.namespace,
        "paced": connection.paced,
        "interval_s": connection.interval.as_secs_f64(),
        "gap_s": connection.gap.as_secs_f64(),
        "train": connection.train,
        "delay_s": connection.delay.as_secs_f64(),
        "cov_rtt": connection.cov,
        "rtt_samples": connection.samples,
        "hops": connection.hops,
        "channel_rate_bps": connection.channel.0,
        "segment": connection.payload,
        "pacing_rate_bps": u64::from(connection.rate) * 8,
    })
}

fn table(status: &Status) -> String {
    let state = if status.registered { "loaded" } else { "not registered: `meshpace kernel unload` cleans up" };
    let users = if status.users { "every user" } else { "users with CAP_NET_ADMIN" };
    let mut text = format!("{}: {state}; {}; for {users}\n", status.name, status.form.tag());
    for (destination, path) in &status.paths {
        let sensing = path.sensing.map_or_else(|| "all".to_owned(), |hops| hops.to_string());
        text += &match status.form {
            Form::Ap05 | Form::QuietTrainSolo => format!("  {destination}: {} hops, {}\n", path.hops, path.rate),
            Form::Ap10 => format!("  {destination}: {} hops, {}, sensed for {sensing}\n", path.hops, path.rate),
        };
        if !path.always {
            text += "    over 802.11 and the named devices; NewReno over other devices\n";
        }
    }
    let rows = status.connections.iter().map(|connection| {
        [
            connection.local.to_string(),
            connection.remote.to_string(),
            connection.hops.to_string(),
            format!("{:.3}", connection.interval.as_secs_f64() * 1e3),
            match status.form {
                Form::QuietTrainSolo => connection.train.to_string(),
                Form::Ap05 | Form::Ap10 => format!("{:.3}", connection.cov),
            },
            if connection.paced {
                Rate::from_bps(u64::from(connection.rate) * 8).to_string()
            } else {
                "not paced".to_owned()
            },
            connection.samples.to_string(),
        ]
    });
    if rows.len() > 0 {
        let fifth = if status.form == Form::QuietTrainSolo { "train" } else { "cov" };
        text += &listing(["from", "to", "hops", "interval ms", fifth, "at most", "samples"], rows);
    }
    text
}
