//! Programs of an emulation: starts them in their nodes, waits for them and ends them.

use crate::address;
use crate::run_dir::TOKEN;
use crate::sys;
use meshpace_core::NodeId;
use nix::sched::{CloneFlags, setns, unshare};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Environment variable with the settings of the radio.
pub const RADIO: &str = "MESHPACE_RADIO";

/// Time limit for the remaining output of a program after its end.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// A program to run in a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Node in which it runs.
    pub node: NodeId,
    /// Command line for a shell.
    pub command: String,
}

impl Spec {
    /// Reads `n0: iperf3 -s`, in a mesh of `nodes` nodes.
    pub fn parse(text: &str, nodes: usize) -> Result<Spec, String> {
        let Some((node, command)) = text.split_once(':') else {
            return Err(format!("`{text}`: expected a node and a command, such as 'n0: iperf3 -s'"));
        };
        let command = command.trim();
        if command.is_empty() {
            return Err(format!("`{text}`: no command after the node"));
        }
        Ok(Spec { node: address::parse_node(node.trim(), nodes)?, command: command.to_owned() })
    }

    /// Checks that the shell finds the program. Only the first word is checked, and only if it
    /// contains no special characters.
    pub fn check(&self) -> Result<(), String> {
        let word = self.command.split_whitespace().next().unwrap_or_default();
        let is_plain = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/+-".contains(&byte));
        if !is_plain {
            return Ok(());
        }
        let found = Command::new("sh")
            .args(["-c", "command -v -- \"$1\"", "sh", word])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match found {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(format!("{}: there is no program `{word}` on this machine", self.node)),
            Err(error) => Err(format!("sh: {error}")),
        }
    }
}

/// Exit status of a program as a shell reports it.
pub fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128u8.saturating_add(signal as u8),
        (None, None) => 1,
    }
}

/// Environment of a program.
#[derive(Debug)]
pub struct Place<'a> {
    /// Network namespace.
    pub network: File,
    /// File that is mounted as `/etc/hosts`.
    pub hosts: &'a Path,
    /// Token of the run.
    pub token: &'a str,
    /// Settings of the radio, which are those of all nodes.
    pub radio: &'a str,
}

/// Moves the calling thread into a node for good: into the network namespace, and into a mount
/// namespace of its own in which the names of the nodes resolve.
pub fn enter(network: &File, hosts: &Path) -> io::Result<()> {
    let explain = |what: &str, error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
    setns(network, CloneFlags::CLONE_NEWNET).map_err(|error| explain("entering the namespace", error.into()))?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| explain("a file system of its own", error.into()))?;
    // Mounts from here on are visible in this namespace only.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| explain("a file system of its own", error.into()))?;
    mount_bind(hosts, "/etc/hosts").map_err(|error| explain("/etc/hosts", error.into()))
}

/// A running program.
#[derive(Debug)]
pub struct Program {
    /// Process of the program, which leads a process group of its own.
    pub pid: Pid,
}

/// Message that program `number` has ended.
#[derive(Debug)]
pub struct Ended {
    /// Number of the program in the order of start.
    pub number: usize,
    /// Exit status.
    pub status: ExitStatus,
}

impl Program {
    /// Starts program `number`. `log` is a directory for copies of its output.
    pub fn start(
        number: usize,
        spec: &Spec,
        place: Place<'_>,
        log: Option<&Path>,
        ended: Sender<Ended>,
    ) -> io::Result<Program> {
        let hosts = place.hosts.to_owned();
        let mut command = Command::new("sh");
        command
            .args(["-c", &spec.command])
            .env(TOKEN, place.token)
            .env(RADIO, place.radio)
            .stdin(Stdio::null())
            .process_group(0);
        sys::die_with_parent(&mut command);
        let copies = log.map(|log| Copies::new(log, number, spec.node, &mut command)).transpose()?;
        let (tell, told) = channel();
        // The thread must live as long as its program, because the program ends with it.
        thread::spawn(move || {
            let mut child = match enter(&place.network, &hosts).and_then(|()| command.spawn()) {
                Ok(child) => child,
                Err(error) => {
                    let _ = tell.send(Err(error));
                    return;
                }
            };
            let copies = copies.map(|copies| copies.begin(&mut child));
            let _ = tell.send(Ok(child.id()));
            let status = child.wait();
            if let Some(copied) = copies {
                // A child of the program may keep the output open after the program has ended.
                while copied.recv_timeout(OUTPUT_TIMEOUT).is_ok() {}
            }
            if let Ok(status) = status {
                let _ = ended.send(Ended { number, status });
            }
        });
        let pid = told.recv().map_err(io::Error::other)??;
        let pid = Pid::from_raw(pid as i32).ok_or_else(|| io::Error::other("no process"))?;
        Ok(Program { pid })
    }

    /// Sends a signal to the program and its children.
    pub fn signal(&self, signal: Signal) {
        // The call fails if all processes of the group have ended.
        let _ = kill_process_group(self.pid, signal);
    }
}

/// Files for copies of a program's output: standard output and standard error.
struct Copies([File; 2]);

impl Copies {
    fn new(log: &Path, number: usize, node: NodeId, command: &mut Command) -> io::Result<Copies> {
        let create = |stream: &str| {
            let path = log.join(format!("{}-{node}.{stream}", number + 1));
            File::create(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        };
        let files = [create("stdout")?, create("stderr")?];
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Copies(files))
    }

    /// Starts to copy the program's output to our own output and to the files. The receiver is
    /// closed when the output has ended.
    fn begin(self, child: &mut Child) -> Receiver<()> {
        let (open, closed) = channel();
        let [out, error] = self.0;
        if let Some(from) = child.stdout.take() {
            let open = open.clone();
            thread::spawn(move || copy(from, out, &mut io::stdout(), open));
        }
        if let Some(from) = child.stderr.take() {
            thread::spawn(move || copy(from, error, &mut io::stderr(), open));
        }
        closed
    }
}

fn copy(mut from: impl Read, mut file: File, to: &mut dyn Write, _open: Sender<()>) {
    let mut block = [0; 8192];
    // If one of the two destinations cannot be written, the other still receives the output.
    while let Ok(length @ 1..) = from.read(&mut block) {
        let _ = to.write_all(&block[..length]).and_then(|()| to.flush());
        let _ = file.write_all(&block[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_node_and_a_command() {
        let spec = Spec::parse("n7: iperf3 -c n0 -C reno", 8).unwrap();
        assert_eq!(spec, Spec { node: NodeId(7), command: "iperf3 -c n0 -C reno".to_owned() });
        assert_eq!(Spec::parse(" n1 :  sh -c 'a: b'", 8).unwrap().command, "sh -c 'a: b'");
        for (wrong, says) in [("n8: ls", "n0 to n7"), ("ls", "expected a node"), ("n1:  ", "no command")] {
            assert!(Spec::parse(wrong, 8).unwrap_err().contains(says), "{wrong}");
        }
    }

    #[test]
    fn what_does_not_exist_is_known_before() {
        let check = |command: &str| Spec { node: NodeId(0), command: command.to_owned() }.check();
        for fine in ["sh -c true", "/bin/sh", "cd /tmp && ls", "A=b; whatever", "exec ls"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for missing in ["no-such-program-here", "/bin/no-such-program -x"] {
            assert!(check(missing).unwrap_err().contains("no program"), "{missing}");
        }
    }
}
