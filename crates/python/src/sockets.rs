//! TPA over UDP for Python. The public interface is in `meshpace/tpa.py`.
//!
//! A call that may block releases Python's global lock, and takes it ten times per second to check
//! for Ctrl-C. Timeouts are in seconds: `None` waits without limit, zero does not wait.

use meshpace_core::{Duration, Rate, Time};
use meshpace_live::Clock;
use meshpace_live::hosts;
use meshpace_live::tpa::keylog::KeyLog;
use meshpace_live::tpa::{self, Admission, Descriptor, Options, Security, TpaError, keys, path};
use meshpace_transport::PathInfo;
use pyo3::exceptions::{PyOSError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Time for which a call blocks before it checks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// Python exception for an error, with its errno.
fn os_error(error: &io::Error) -> PyErr {
    PyOSError::new_err((tpa::errno_of(error), error.to_string()))
}

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn std(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.0)
}

fn deadline(timeout: Option<f64>) -> Time {
    timeout.map_or(Time::NEVER, |seconds| Clock.now().saturating_add(Duration::from_secs_f64(seconds)))
}

/// Repeats `step` until it returns a result, the time is over, or the handler of a signal raises an
/// exception. `step` blocks for at most the duration that it is given.
fn wait<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    mut step: impl FnMut(Duration) -> io::Result<T> + Send,
) -> PyResult<T> {
    let deadline = deadline(timeout);
    loop {
        let left = deadline.since(Clock.now()).min(SLICE);
        match py.detach(|| step(left)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => py.check_signals()?,
            done => return done.map_err(|error| os_error(&error)),
        }
        if Clock.now() >= deadline {
            return Err(match timeout {
                Some(0.0) => os_error(&ErrorKind::WouldBlock.into()),
                _ => PyTimeoutError::new_err("timed out"),
            });
        }
    }
}

/// Addresses of a host. An empty name stands for all IPv4 addresses of this host.
fn resolve(py: Python<'_>, host: &str, port: u16) -> PyResult<Vec<SocketAddr>> {
    if host.is_empty() {
        return Ok(vec![(Ipv4Addr::UNSPECIFIED, port).into()]);
    }
    // Python's own function raises the exception that Python programs expect, `socket.gaierror`.
    let socket = py.import("socket")?;
    let kind = socket.getattr("SOCK_DGRAM")?;
    let found = socket.getattr("getaddrinfo")?.call1((host, port, 0, kind))?;
    let mut addresses = Vec::new();
    for one in found.try_iter()? {
        let address = one?.get_item(4)?;
        let (host, port): (String, u16) = (address.get_item(0)?.extract()?, address.get_item(1)?.extract()?);
        let found = hosts::host(&host, port);
        addresses
            .extend(found.map_err(|error| PyOSError::new_err((tpa::errno_of(&error), format!("{host}: {error}"))))?);
    }
    Ok(addresses)
}

/// Calls a Python callable to decide about a peer's key. An exception is reported in the way in
/// which Python reports exceptions of destructors, and the peer is refused.
fn admission(admits: Py<PyAny>) -> Admission {
    Admission::new(move |key| {
        // The result is `None` if the interpreter is ending.
        let asked = Python::try_attach(|py| {
            let answer = admits.call1(py, (PyBytes::new(py, key),)).and_then(|answer| answer.is_truthy(py));
            answer.unwrap_or_else(|error| {
                error.write_unraisable(py, Some(admits.bind(py)));
                false
            })
        });
        asked.unwrap_or(false)
    })
}

/// Host and port in the form that Python uses. A link-local address includes its zone, so that it
/// can be connected to.
fn pair(address: io::Result<SocketAddr>) -> PyResult<(String, u16)> {
    let address = address.map_err(|error| os_error(&error))?;
    let zone = match address {
        SocketAddr::V6(v6) if v6.scope_id() > 0 => format!("%{}", v6.scope_id()),
        _ => String::new(),
    };
    Ok((format!("{}{zone}", address.ip()), address.port()))
}

/// Parses a key: 32 bytes, or the text of a key file.
fn key(bytes: &[u8]) -> PyResult<[u8; 32]> {
    let text = || std::str::from_utf8(bytes).ok().and_then(keys::parse);
    bytes.try_into().ok().or_else(text).ok_or_else(|| value_error("expected a key: 32 bytes, or 64 hexadecimal digits"))
}

/// Settings of a port.
#[pyclass(frozen, module = "meshpace._native")]
pub struct TpaOptions(Options);

#[pymethods]
impl TpaOptions {
    #[new]
    #[pyo3(signature = (*, transport = "tpa-2", segment = None, nodelay = true, plain = false, secret = None, key = None, peers = None, admits = None, send_buffer = None,
        receive_buffer = None, connect_timeout = None, linger = None, keep_alive = None, idle_timeout = None, silence_timeout = None, hops = None,
        channel_rate = 2e6, keylog = None))]
    #[expect(clippy::too_many_arguments, reason = "they are named where they are given")]
    fn new(
        transport: &str,
        segment: Option<u32>,
        nodelay: bool,
        plain: bool,
        secret: Option<PyBackedBytes>,
        key: Option<PyBackedBytes>,
        peers: Option<Vec<PyBackedBytes>>,
        admits: Option<Py<PyAny>>,
        send_buffer: Option<usize>,
        receive_buffer: Option<usize>,
        connect_timeout: Option<f64>,
        linger: Option<f64>,
        keep_alive: Option<f64>,
        idle_timeout: Option<f64>,
        silence_timeout: Option<f64>,
        hops: Option<u8>,
        channel_rate: f64,
        keylog: Option<PathBuf>,
    ) -> PyResult<TpaOptions> {
        let mut options = Options::named(transport).map_err(value_error)?;
        options.transport.segment = segment.unwrap_or(options.transport.segment);
        options.transport.waits_to_fill = !nodelay;
        let peers = peers.unwrap_or_default();
        options.security = match (plain, secret, key, peers.is_empty() && admits.is_none()) {
            (true, None, None, true) => Security::Plain,
            (false, None, None, true) => Security::Opportunistic,
            (false, Some(secret), None, true) => Security::Shared(self::key(&secret)?),
            (false, None, Some(own), false) => {
                let peers = peers.iter().map(|peer| self::key(peer)).collect::<PyResult<_>>()?;
                Security::Keys { own: self::key(&own)?, peers }
            }
            _ => {
                return Err(value_error("expected nothing, or plain, or secret, or key together with peers or admits"));
            }
        };
        options.admission = admits.map(admission);
        let spans = [connect_timeout, keep_alive, idle_timeout, silence_timeout, linger];
        if spans.iter().flatten().any(|seconds| seconds.is_nan() || *seconds < 0.0) {
            return Err(value_error("expected seconds, 0 or more"));
        }
        let [connect_timeout, keep_alive, idle_timeout, silence_timeout, linger] =
            spans.map(|seconds| seconds.map(Duration::from_secs_f64));
        let switched_off = |span: Duration| (span > Duration::ZERO).then_some(span);
        options.linger = linger.unwrap_or(options.linger);
        options.connect_timeout = connect_timeout.unwrap_or(options.connect_timeout);
        options.keep_alive = keep_alive.map_or(options.keep_alive, switched_off);
        options.idle_timeout = idle_timeout.map_or(options.idle_timeout, switched_off);
        options.silence_timeout = silence_timeout.unwrap_or(options.silence_timeout);
        options.send_buffer = send_buffer.unwrap_or(options.send_buffer);
        options.receive_buffer = receive_buffer.unwrap_or(options.receive_buffer);
        if channel_rate.is_nan() || channel_rate < 1.0 {
            return Err(value_error("channel_rate: expected bit/s, 1 or more"));
        }
        let rate = Rate::from_bps(channel_rate as u64);
        options.path = Some(match hops {
            Some(0) => return Err(value_error("hops: expected 1 to 255")),
            Some(hops) => Arc::new(path::Fixed(PathInfo { hops, rate, received_power_dbm: None })),
            None => Arc::new(path::TimeToLive { rate }),
        });
        if let Some(file) = keylog {
            options.keylog = Some(Arc::new(KeyLog::append(&file).map_err(|error| os_error(&error))?));
        }
        options.check().map_err(value_error)?;
        Ok(TpaOptions(options))
    }
}

/// Creates a pair of keys: private and public.
#[pyfunction]
pub fn tpa_new_key(py: Python<'_>) -> PyResult<(Bound<'_, PyBytes>, Bound<'_, PyBytes>)> {
    let (own, public) = keys::generate().map_err(|error| os_error(&error))?;
    Ok((PyBytes::new(py, &own), PyBytes::new(py, &public)))
}

/// Closes every connection, and waits for at most the linger time of each until all sent data has
/// arrived. Returns a sentence if it has not.
#[pyfunction]
pub fn tpa_finish_process(py: Python<'_>) -> Option<String> {
    py.detach(tpa::finish_process)
}

/// A UDP port.
#[pyclass(frozen, module = "meshpace._native")]
pub struct TpaPort(tpa::TpaPort);

#[pymethods]
impl TpaPort {
    /// Creates a port that is bound to the first address of a host.
    #[new]
    fn new(py: Python<'_>, host: &str, port: u16, options: &TpaOptions) -> PyResult<TpaPort> {
        let addresses = resolve(py, host, port)?;
        tpa::TpaPort::with_options(&addresses[..], options.0.clone()).map(TpaPort).map_err(|error| os_error(&error))
    }

    /// Creates a port from which `host` can be reached.
    #[staticmethod]
    fn reaching(py: Python<'_>, host: &str, options: &TpaOptions) -> PyResult<TpaPort> {
        let addresses = resolve(py, host, 0)?;
        tpa::TpaPort::reaching(&addresses, options.0.clone()).map(TpaPort).map_err(|error| os_error(&error))
    }

    #[getter]
    fn address(&self) -> PyResult<(String, u16)> {
        pair(self.0.local_addr())
    }

    fn check_process(&self) -> PyResult<()> {
        self.0.check_process().map_err(|error| os_error(&error))
    }

    fn listen(&self, backlog: usize) -> PyResult<TpaListener> {
        self.0
            .listen(backlog)
            .map(|listener| TpaListener(listener, Attached::default()))
            .map_err(|error| os_error(&error))
    }

    fn connect(&self, py: Python<'_>, host: &str, port: u16, timeout: Option<f64>) -> PyResult<TpaStream> {
        let addresses = resolve(py, host, port)?;
        let mut attempts = self.0.attempts(&addresses[..]).map_err(|error| os_error(&error))?;
        let opened = wait(py, timeout, |left| attempts.wait(Clock.now() + left));
        let stream = opened.map_err(|error| match attempts.refusal() {
            // The time is over. A refusal that was received in the meantime is the reason.
            Some(refusal) if error.is_instance_of::<PyTimeoutError>(py) => os_error(&refusal),
            _ => error,
        })?;
        Ok(TpaStream::new(stream))
    }

    /// Starts to open a connection to the first address of the host that has an address family of
    /// this port.
    fn begin(&self, py: Python<'_>, host: &str, port: u16) -> PyResult<TpaStream> {
        let addresses = resolve(py, host, port)?;
        self.0.connect_nonblocking(&addresses[..]).map(TpaStream::new).map_err(|error| os_error(&error))
    }
}

/// File descriptor for `select` and similar functions. It stands for a stream or listener.
#[pyclass(frozen, module = "meshpace._native")]
pub struct TpaDescriptor(Arc<Descriptor>);

#[pymethods]
impl TpaDescriptor {
    #[new]
    fn new() -> PyResult<TpaDescriptor> {
        Descriptor::new().map(|made| TpaDescriptor(Arc::new(made))).map_err(|error| os_error(&error))
    }

    fn fileno(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }
}

/// Descriptor that is attached to a stream or listener, if any.
#[derive(Default)]
struct Attached(Mutex<Option<Arc<Descriptor>>>);

impl Attached {
    fn set(&self, descriptor: &TpaDescriptor) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&descriptor.0));
    }

    fn refresh(&self) {
        let descriptor = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(descriptor) = descriptor {
            descriptor.refresh();
        }
    }
}

/// Listener that accepts connections.
#[pyclass(frozen, module = "meshpace._native")]
pub struct TpaListener(tpa::TpaListener, Attached);

#[pymethods]
impl TpaListener {
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<TpaStream> {
        let accepted = wait(py, timeout, |left| {
            if left == Duration::ZERO {
                return self.0.try_accept();
            }
            self.0.set_timeout(Some(std(left)))?;
            self.0.accept()
        });
        self.1.refresh();
        Ok(TpaStream::new(accepted?.0))
    }

    fn attach(&self, descriptor: &TpaDescriptor) {
        self.0.attach(&descriptor.0);
        self.1.set(descriptor);
    }

    /// Number of connections that were refused because of the peer's key.
    #[getter]
    fn refused_keys(&self) -> u64 {
        self.0.counters().refused
    }

    fn close(&self) {
        self.0.close();
    }
}

/// A connection, and whether its application has aborted it.
#[pyclass(frozen, module = "meshpace._native")]
pub struct TpaStream(tpa::TpaStream, AtomicBool, Attached);

impl Drop for TpaStream {
    fn drop(&mut self) {
        // The garbage collector must not block. Only `close` waits for sent data.
        let _ = self.0.set_nonblocking(true);
    }
}

impl TpaStream {
    fn new(stream: tpa::TpaStream) -> TpaStream {
        TpaStream(stream, AtomicBool::new(false), Attached::default())
    }

    fn write(&self, left: Duration, bytes: &[u8]) -> io::Result<usize> {
        if left == Duration::ZERO {
            return self.0.try_write(bytes);
        }
        self.0.set_write_timeout(Some(std(left)))?;
        (&self.0).write(bytes)
    }
}

#[pymethods]
impl TpaStream {
    #[getter]
    fn address(&self) -> PyResult<(String, u16)> {
        pair(self.0.local_addr())
    }

    fn check_process(&self) -> PyResult<()> {
        self.0.check_process().map_err(|error| os_error(&error))
    }

    #[getter]
    fn peer(&self) -> PyResult<(String, u16)> {
        pair(self.0.peer_addr())
    }

    /// Public key of the peer; `None` if the connection does not use known keys.
    #[getter]
    fn peer_key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = self.0.peer_key().map_err(|error| os_error(&error))?;
        Ok(key.map(|key| PyBytes::new(py, &key)))
    }

    #[getter]
    fn hops(&self) -> Option<u8> {
        self.0.hops()
    }

    #[getter]
    fn unacknowledged(&self) -> usize {
        self.0.unacknowledged()
    }

    #[getter]
    fn segments_sent(&self) -> u64 {
        self.0.stats().segments_sent
    }

    #[getter]
    fn retransmissions(&self) -> u64 {
        self.0.stats().retransmissions
    }

    #[getter]
    fn nodelay(&self) -> PyResult<bool> {
        self.0.nodelay().map_err(|error| os_error(&error))
    }

    fn set_nodelay(&self, nodelay: bool) -> PyResult<()> {
        self.0.set_nodelay(nodelay).map_err(|error| os_error(&error))
    }

    fn flush(&self) -> PyResult<()> {
        self.0.flush().map_err(|error| os_error(&error))
    }

    fn recv<'py>(&self, py: Python<'py>, most: usize, timeout: Option<f64>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = vec![0; most.min(1 << 20)];
        let length = wait(py, timeout, |left| {
            if left == Duration::ZERO {
                return self.0.try_read(&mut bytes);
            }
            self.0.set_read_timeout(Some(std(left)))?;
            (&self.0).read(&mut bytes)
        });
        self.2.refresh();
        Ok(PyBytes::new(py, &bytes[..length?]))
    }

    fn send(&self, py: Python<'_>, bytes: PyBackedBytes, timeout: Option<f64>) -> PyResult<usize> {
        let sent = wait(py, timeout, |left| self.write(left, &bytes));
        self.2.refresh();
        sent
    }

    fn sendall(&self, py: Python<'_>, bytes: PyBackedBytes, timeout: Option<f64>) -> PyResult<()> {
        let mut sent = 0;
        let done = wait(py, timeout, |left| {
            while sent < bytes.len() {
                sent += self.write(left, &bytes[sent..])?;
            }
            Ok(())
        });
        self.2.refresh();
        done
    }

    /// True if the handshake is complete. If the connection has failed, the reason is raised as an
    /// exception.
    fn is_open(&self) -> PyResult<bool> {
        self.0.is_open().map_err(|error| os_error(&error))
    }

    fn attach(&self, descriptor: &TpaDescriptor) {
        self.0.attach(&descriptor.0);
        self.2.set(descriptor);
    }

    /// Shuts down directions of the connection, with the constants of `socket`: 0 reading, 1
    /// writing, 2 both.
    fn shutdown(&self, how: i32) -> PyResult<()> {
        let how = match how {
            0 => Shutdown::Read,
            1 => Shutdown::Write,
            2 => Shutdown::Both,
            _ => return Err(value_error("expected SHUT_RD, SHUT_WR or SHUT_RDWR")),
        };
        self.0.shutdown(how).map_err(|error| os_error(&error))
    }

    /// Closes both directions and waits for at most `linger` seconds until all sent data has
    /// arrived. A failure of the connection is an error only if some data had not arrived.
    fn close(&self, py: Python<'_>, linger: f64) -> PyResult<()> {
        let deadline = deadline(Some(linger));
        let owes = self.0.unacknowledged() > 0 && !self.1.load(Ordering::Relaxed);
        loop {
            let left = deadline.since(Clock.now()).min(SLICE);
            let closed = self.0.set_linger(std(left)).and_then(|()| py.detach(|| self.0.finish()));
            match closed {
                Ok(()) => return Ok(()),
                // This is a failure of the connection. Any other error means that the time of this
                // step is over.
                Err(error) if error.get_ref().is_some_and(|inner| inner.is::<TpaError>()) => {
                    return if owes { Err(os_error(&error)) } else { Ok(()) };
                }
                Err(_) => py.check_signals()?,
            }
            if Clock.now() >= deadline {
                return Err(PyTimeoutError::new_err("what was sent had not all arrived in time"));
            }
        }
    }

    /// Closes both directions without waiting. In a child of the process that opened the
    /// connection, the call has no effect.
    fn let_go(&self) {
        let _ = self.0.let_go();
    }

    fn abort(&self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.abort();
    }
}
