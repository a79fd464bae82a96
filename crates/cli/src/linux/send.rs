//! `meshpace send`: sends traffic to a host over our transports or over the kernel's.

use crate::linux::network::{self, Interface, Transport};
use crate::linux::traffic_record::{About, sent};
use crate::output::{complain, finish};
use crate::{FAILED, INTERRUPTED, REFUSED};
use clap::{ArgGroup, Args, ValueEnum};
use meshpace_command::quantities::{bytes, rate, seconds};
use meshpace_core::{Duration, Rate};
use meshpace_live::generator::kernel::Kernel;
use meshpace_live::generator::tcp::Tcp;
use meshpace_live::generator::tpa::Tpa;
use meshpace_live::generator::udp::Udp;
use meshpace_live::generator::{Carrier, Load, Measured, Tick, send};
use meshpace_live::hosts::Host;
use meshpace_live::tcp::Protocol;
use meshpace_live::tpa::Options;
use meshpace_transport::Config;
use meshpace_transport::tcp::window::LIMIT;
use meshpace_tunnel::hosts::resolve;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, SocketAddrV4};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Mean file size in bytes, and shape of the distribution of file sizes. Both are the defaults of
/// scenarios.
const FILE_SIZE: f64 = 30_000.0;
const FILE_SHAPE: f64 = 1.5;

/// The arguments of `meshpace send`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("load").args(["bytes", "seconds"]).required(true))]
pub struct Arguments {
    /// Host that receives: one that runs `meshpace recv`, or any program that reads everything and
    /// then closes, such as `nc -l`.
    host: String,
    /// Port of the receiver.
    #[arg(long, default_value_t = network::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// One of `meshpace transports`. TCP runs on raw IP, TPA over UDP, and `udp` needs --send-rate;
    /// `kernel` is the TCP of this machine, and `kernel:reno` is that TCP with the congestion
    /// control reno.
    #[arg(long, default_value = "tcp-ap")]
    transport: String,
    /// Send this number of bytes: 50M, 1500, 2 MiB.
    #[arg(long, value_parser = bytes)]
    bytes: Option<u64>,
    /// Send for this time. Data that is not acknowledged by then is discarded.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Send one file after another for --seconds, each over its own connection, with pauses between
    /// them. Sizes are Pareto-distributed (mean 30 kB, shape 1.5).
    #[arg(long, requires = "seconds", conflicts_with = "bytes")]
    http_like: bool,
    /// Mean pause between files; pauses are exponentially distributed.
    #[arg(long, value_parser = seconds, default_value = "1 s", requires = "http_like")]
    pause: f64,
    /// Seed of file sizes and pauses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Payload rate of `udp`.
    #[arg(long, value_parser = rate)]
    send_rate: Option<Rate>,
    /// Let the window of our TCP grow by one step per ACK, as in ns-2. By default it grows by the
    /// data that an ACK covers (`+abc`, RFC 3465), because hosts delay their ACKs and the receivers
    /// in the papers do not.
    #[arg(long)]
    count_acks: bool,
    #[command(flatten)]
    network: network::Placement,
    /// Choose the output: `table` for people, `json` with one object like that of `meshpace run`.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Table,
    Json,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let prepared = network::transport(&arguments.transport)
        .map_err(|expected| format!("--transport {}: {expected}", arguments.transport))
        .and_then(|transport| adjusted(arguments, transport).map_err(|error| error.to_string()))
        .and_then(|transport| {
            let to = resolve(&arguments.host, arguments.port).map_err(|error| error.to_string())?;
            Ok((transport, to))
        });
    let (transport, to) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            complain(&error);
            return ExitCode::from(REFUSED);
        }
    };
    let stop = meshpace_command::interrupt::stop_on_interrupt();
    match run(arguments, &transport, &to, &stop) {
        Ok((measured, hops, at)) => report(arguments, &transport, at, hops, &measured),
        Err(error) if error.kind() == io::ErrorKind::Interrupted && stop.load(Ordering::Relaxed) => {
            complain("interrupted");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(FAILED)
        }
    }
}

fn adjusted(arguments: &Arguments, mut transport: Transport) -> io::Result<Transport> {
    let refused = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    if let Transport::Ours(config) = &mut transport {
        if let (Config::Tcp(tcp), false) = (&mut *config, arguments.count_acks) {
            tcp.byte_counting.get_or_insert(LIMIT);
        }
        if let Config::Udp(udp) = config {
            match arguments.send_rate {
                Some(rate) => udp.rate = Some(rate),
                None => return refused("--send-rate is missing: UDP needs the rate at which it sends"),
            }
        }
        arguments.network.adjust(config)?;
        arguments.network.check_path(config)?;
    }
    let is_udp = matches!(&transport, Transport::Ours(Config::Udp(_)));
    if arguments.send_rate.is_some() && !is_udp {
        return refused("--send-rate is only for `udp`");
    }
    Ok(transport)
}

fn load(arguments: &Arguments) -> Load {
    let span = Duration::from_secs_f64(arguments.seconds.unwrap_or(0.0));
    match arguments.bytes {
        Some(bytes) => Load::Bytes(bytes),
        None if arguments.http_like => Load::Files {
            mean_size: FILE_SIZE,
            shape: FILE_SHAPE,
            mean_pause: Duration::from_secs_f64(arguments.pause),
            span,
            seed: arguments.seed,
        },
        None => Load::For(span),
    }
}

/// Runs the transfer. Returns the measurements, the number of hops, and the address of the
/// receiver.
fn run(
    arguments: &Arguments,
    transport: &Transport,
    to: &Host,
    stop: &Arc<AtomicBool>,
) -> io::Result<(Measured, u8, SocketAddr)> {
    let network = &arguments.network;
    let hops = network.hops();
    match transport {
        Transport::Kernel(congestion) => {
            let open = |to| Kernel::new(to, congestion.clone());
            let (measured, _, at) = drive_any(arguments, &only_v4(to)?, stop, open)?;
            Ok((measured, hops, at.into()))
        }
        Transport::Ours(Config::Udp(config)) => {
            let open = |to| Udp::new(to, config.clone());
            let (measured, _, at) = drive_any(arguments, &to.addresses()?, stop, open)?;
            Ok((measured, hops, at))
        }
        Transport::Ours(Config::Tpa(config)) => over_udp(arguments, to, network.tpa_options(config.clone())?, stop),
        Transport::Ours(Config::Tcp(config)) => over_tcp(arguments, config, to, stop),
        Transport::Ours(Config::Train(config)) if network.interface() == Interface::Udp => {
            over_udp(arguments, to, network.train_options(config.clone())?, stop)
        }
        Transport::Ours(Config::Train(config)) => over_tcp(arguments, config, to, stop),
        Transport::Ours(Config::Flush(_)) => Err(network::only_simulated()),
    }
}

fn over_udp(
    arguments: &Arguments,
    to: &Host,
    options: Options,
    stop: &AtomicBool,
) -> io::Result<(Measured, u8, SocketAddr)> {
    let keylog = options.keylog.clone();
    let measured = drive(arguments, Tpa::new(to.clone(), options)?, stop);
    network::complain_of_lost_keys(keylog.as_deref());
    let at = to.last().ok_or(io::ErrorKind::NotFound)?;
    Ok((measured?, arguments.network.hops(), at))
}

fn over_tcp(
    arguments: &Arguments,
    protocol: impl Into<Protocol> + Copy,
    to: &Host,
    stop: &AtomicBool,
) -> io::Result<(Measured, u8, SocketAddr)> {
    let (network, to) = (&arguments.network, only_v4(to)?);
    match network.interface() {
        Interface::Tun => {
            let open = |to: SocketAddrV4| Ok(Tcp::new(network.device(Some(*to.ip()))?, to, protocol));
            let (measured, tcp, at) = drive_any(arguments, &to, stop, open)?;
            Ok((measured, tcp.hops(), at.into()))
        }
        Interface::Raw => {
            let open = |to: SocketAddrV4| Ok(Tcp::new(network.raw(Some(*to.ip()))?, to, protocol));
            let (measured, tcp, at) = drive_any(arguments, &to, stop, open)?;
            Ok((measured, tcp.hops(), at.into()))
        }
        Interface::Udp => Err(network::only_trains()),
    }
}

/// Returns the IPv4 addresses of the host.
fn only_v4(to: &Host) -> io::Result<Vec<SocketAddrV4>> {
    let v4 = |address| if let SocketAddr::V4(v4) = address { Some(v4) } else { None };
    let addresses: Vec<SocketAddrV4> = to.addresses()?.into_iter().filter_map(v4).collect();
    if addresses.is_empty() {
        let text = format!("{to}: only TPA and `udp` support IPv6");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(addresses)
}

/// Sends to the first of these addresses that acknowledges anything. Returns the measurements, the
/// carrier and the address.
fn drive_any<A: Copy, C: Carrier>(
    arguments: &Arguments,
    addresses: &[A],
    stop: &AtomicBool,
    open: impl Fn(A) -> io::Result<C>,
) -> io::Result<(Measured, C, A)> {
    let mut left = addresses.len();
    for &to in addresses {
        left -= 1;
        let mut carrier = open(to)?;
        match drive(arguments, &mut carrier, stop) {
            Ok(measured) => return Ok((measured, carrier, to)),
            Err(error) => {
                let has_begun = carrier.progress().is_ok_and(|progress| progress.acknowledged > 0);
                if left == 0 || has_begun || stop.load(Ordering::Relaxed) {
                    return Err(error);
                }
                complain(&format!("{error}; trying the next address of the host"));
            }
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

fn drive(arguments: &Arguments, mut carrier: impl Carrier, stop: &AtomicBool) -> io::Result<Measured> {
    let live = io::stderr().is_terminal();
    let measured = send(&mut carrier, load(arguments), stop, |tick| {
        if live {
            show(tick);
        }
    });
    if live {
        let _ = writeln!(io::stderr());
    }
    measured
}

/// Prints the line of live measurements.
fn show(tick: &Tick) {
    let (now, before) = (&tick.now, &tick.before);
    let goodput =
        (now.acknowledged - before.acknowledged.min(now.acknowledged)) as f64 * 8e-3 / tick.span.as_secs_f64();
    let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
    let (a, b) = (&now.stats, &before.stats);
    let cov = mean(a.cov_sum - b.cov_sum, a.cov_samples - b.cov_samples);
    let interval = mean(a.interval_sum_s - b.interval_sum_s, a.interval_samples - b.interval_samples);
    let text = |value: Option<f64>, scale: f64, unit: &str| match value {
        Some(value) => format!("{:.3}{unit}", value * scale),
        None => "-".to_owned(),
    };
    // An error is ignored: if standard error is closed, nobody can be told.
    let _ = write!(
        io::stderr(),
        "\r{:8.1} s {:12.1} kbit/s   cov {:>6}   interval {:>10}   again {:6}   timeouts {:4} ",
        tick.elapsed.as_secs_f64(),
        goodput,
        text(cov, 1.0, ""),
        text(interval, 1e3, " ms"),
        a.retransmissions,
        a.timeouts
    );
    let _ = io::stderr().flush();
}

fn report(arguments: &Arguments, transport: &Transport, to: SocketAddr, hops: u8, measured: &Measured) -> ExitCode {
    let config = match transport {
        Transport::Ours(config) => Some(config),
        Transport::Kernel(_) => None,
    };
    let title = format!("send to {to}");
    let counts = matches!(config, Some(Config::Tcp(tcp)) if tcp.byte_counting.is_some());
    // The simulator uses this name for the same transport.
    let name = &arguments.transport;
    let name = if counts && !name.ends_with("+abc") { format!("{name}+abc") } else { name.clone() };
    let about = About { title, transport: &name, config, hops, seed: arguments.seed };
    let record = sent(&about, measured);
    let status = match arguments.format {
        Format::Json => finish(&record.json_line()),
        Format::Table => finish(&meshpace_lab::record::table::render(&[record])),
    };
    if measured.interrupted { ExitCode::from(INTERRUPTED) } else { status }
}
