//! `meshpace recv`: receives the traffic of `meshpace send`, or of any TCP.

use crate::linux::network::{self, Interface, Placement, Transport};
use crate::linux::traffic_record::{About, received};
use crate::output::{complain, failed, note, results};
use crate::{FAILED, INTERRUPTED, REFUSED};
use clap::{Args, ValueEnum};
use meshpace_command::quantities::seconds;
use meshpace_live::generator::receive::{self, Look, Received};
use meshpace_live::tcp::{Protocol, Stack};
use meshpace_live::tpa::{Options, TpaPort};
use meshpace_transport::Config;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Largest number of connections that wait to be accepted.
const BACKLOG: usize = 64;

/// Keep-alive of TPA: a peer that is silent for `KEEP_ALIVE` is asked for a sign of life. After
/// `SILENCE` it counts as gone.
const KEEP_ALIVE: meshpace_core::Duration = meshpace_core::Duration::from_secs(10);
const SILENCE: meshpace_core::Duration = meshpace_core::Duration::from_secs(30);

/// The arguments of `meshpace recv`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Port to listen on.
    #[arg(long, default_value_t = network::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Choose the receiver: `kernel` accepts any TCP; a TCP of `meshpace transports` accepts it in
    /// user space, and acknowledges as that transport does; a TPA accepts TPA; `udp` accepts UDP.
    #[arg(long, default_value = "kernel")]
    transport: String,
    /// End after this number of transfers [default: with Ctrl-C]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// End a TPA connection that has carried no data for this time [default: only if the peer is
    /// gone]
    #[arg(long, value_parser = seconds)]
    idle: Option<f64>,
    #[command(flatten)]
    network: network::Placement,
    /// Choose the output for each transfer: `table` with one line for people, `json` with one
    /// object like that of `meshpace run`.
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
    let mut transport = match network::transport(&arguments.transport) {
        Ok(transport) => transport,
        Err(expected) => {
            complain(&format!("--transport {}: {expected}", arguments.transport));
            return ExitCode::from(REFUSED);
        }
    };
    if let Transport::Ours(config) = &mut transport
        && let Err(error) = arguments.network.adjust(config)
    {
        complain(&error.to_string());
        return ExitCode::from(REFUSED);
    }
    let stop = meshpace_command::interrupt::stop_on_interrupt();
    let end = arguments.seconds.map(Duration::from_secs_f64).and_then(|span| {
        #[expect(clippy::disallowed_methods, reason = "for how long to serve is counted in real time")]
        std::time::Instant::now().checked_add(span)
    });
    let (mut transfers, mut aborted, mut unwritten) = (0, 0, None);
    let mut look = |ended: Option<Received>| {
        if let Some(ended) = ended {
            transfers += 1;
            aborted += u64::from(!ended.in_order);
            if let Err(error) = results(&line(arguments, &transport, &ended)) {
                unwritten = Some(error);
                return false;
            }
        }
        #[expect(clippy::disallowed_methods, reason = "for how long to serve is counted in real time")]
        let in_time = end.is_none_or(|end| std::time::Instant::now() < end);
        in_time && !stop.load(Ordering::Relaxed) && arguments.count.is_none_or(|count| transfers < count)
    };
    let served = serve(arguments, &transport, &mut look);
    match (served, unwritten) {
        (_, Some(error)) => failed(&error),
        (Err(error), None) => {
            complain(&error.to_string());
            ExitCode::from(FAILED)
        }
        (Ok(()), None) if stop.load(Ordering::Relaxed) => ExitCode::from(INTERRUPTED),
        (Ok(()), None) if aborted > 0 => {
            complain(&format!("{aborted} of {transfers} transfers were aborted"));
            ExitCode::from(FAILED)
        }
        (Ok(()), None) => ExitCode::SUCCESS,
    }
}

fn serve(arguments: &Arguments, transport: &Transport, look: Look<'_>) -> io::Result<()> {
    let (network, port) = (&arguments.network, arguments.port);
    let here = (Ipv4Addr::UNSPECIFIED, port);
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("port {port}: {error}"));
    let over_udp = |mut options: Options, look| {
        // A receiver expects no acknowledgements, so it detects the loss of its peer only with
        // keep-alives.
        (options.keep_alive, options.silence_timeout) = (Some(KEEP_ALIVE), SILENCE);
        options.idle_timeout = arguments.idle.map(meshpace_core::Duration::from_secs_f64);
        let keylog = options.keylog.clone();
        let listener = TpaPort::with_options(here, options).map_err(explain)?.listen(BACKLOG)?;
        note(&format!("listening on UDP {}:{port}", here.0));
        let served = receive::tpa(listener, look);
        network::complain_of_lost_keys(keylog.as_deref());
        served
    };
    match transport {
        Transport::Kernel(None) => {
            let listener = TcpListener::bind(here).map_err(explain)?;
            note(&format!("listening on TCP {}:{port}", here.0));
            receive::kernel(listener, look)
        }
        Transport::Kernel(Some(_)) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "a receiver has no congestion control: use `kernel`"))
        }
        Transport::Ours(Config::Udp(_)) => {
            let socket = UdpSocket::bind(here).map_err(explain)?;
            note(&format!("listening on UDP {}:{port}", here.0));
            receive::udp(&socket, look)
        }
        Transport::Ours(Config::Tpa(config)) => over_udp(network.tpa_options(config.clone())?, look),
        Transport::Ours(Config::Train(config)) if network.interface() == Interface::Udp => {
            over_udp(network.train_options(config.clone())?, look)
        }
        Transport::Ours(Config::Tcp(config)) => over_tcp(network, port, config, look),
        Transport::Ours(Config::Train(config)) => over_tcp(network, port, config, look),
        Transport::Ours(Config::Flush(_)) => Err(network::only_simulated()),
    }
}

fn over_tcp(network: &Placement, port: u16, protocol: impl Into<Protocol>, look: Look<'_>) -> io::Result<()> {
    match network.interface() {
        Interface::Tun => tcp(&mut network.device(None)?, port, protocol, look),
        Interface::Raw => tcp(&mut network.raw(None)?, port, protocol, look),
        Interface::Udp => Err(network::only_trains()),
    }
}

fn tcp<I: meshpace_live::tcp::Interface>(
    stack: &mut Stack<I>,
    port: u16,
    protocol: impl Into<Protocol>,
    look: Look<'_>,
) -> io::Result<()> {
    stack.listen(port, protocol)?;
    complain(&format!("listening on {}:{port}", stack.interface().address()));
    receive::tcp(stack, port, look)
}

fn line(arguments: &Arguments, transport: &Transport, ended: &Received) -> String {
    let config = match transport {
        Transport::Ours(config) => Some(config),
        Transport::Kernel(_) => None,
    };
    let hops = arguments.network.hops();
    let title = format!("receive from {}", ended.peer);
    let about = About { title, transport: &arguments.transport, config, hops, seed: 0 };
    let record = received(&about, ended);
    match arguments.format {
        Format::Json => with_end(&record.json_line(), ended),
        Format::Table => format!(
            "{}  {} bytes in {:.3} s  {:.1} kbit/s{}\n",
            ended.peer,
            ended.bytes,
            record.duration_s,
            record.aggregate_goodput_bps / 1e3,
            match &ended.error {
                _ if ended.in_order => String::new(),
                Some(error) => format!("  (aborted: {error})"),
                None => "  (aborted)".to_owned(),
            }
        ),
    }
}

/// Extends the line of a record by facts that only a receiver knows: whether the transfer was
/// complete, and the error otherwise.
fn with_end(line: &str, ended: &Received) -> String {
    let end = format!(",\"completed\":{},\"error\":{}}}\n", ended.in_order, serde_json::json!(ended.error));
    match line.trim_end().strip_suffix('}') {
        Some(line) => line.to_owned() + &end,
        None => line.to_owned(),
    }
}
