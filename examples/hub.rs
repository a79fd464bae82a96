//! A hub that gives two peers different rights by their keys: a notice that one may write and both may read. Nobody else can connect.
//!
//!   meshpace tunnel keygen hub.key                                            # and writer.key, reader.key: prints the public key
//!   cargo run -p meshpace-examples --bin hub -- 0.0.0.0:4000 hub.key WRITER READER     # the hub, with their public keys
//!   cargo run -p meshpace-examples --bin hub                                 # the hub and three peers, over loopback
//!
//! A connection carries one request, a line: `put TEXT` or `get`. `examples/hub.c` and `examples/hub.py` are the same hub in C and Python.

use meshpace_live::tpa::{KeyList, Options, Security, TpaListener, TpaPort, TpaStream, keys};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The hub.
struct Hub {
    writer: [u8; 32],
    notice: Mutex<String>,
}

impl Hub {
    /// A listener that takes connections from the writer and the reader. The list can be changed while it listens.
    fn listen(address: &str, own: [u8; 32], writer: [u8; 32], reader: [u8; 32]) -> io::Result<(Hub, TpaListener)> {
        let list = KeyList::default();
        list.set([writer, reader]);
        let security = Security::Keys { own, peers: Vec::new() };
        let options = Options { security, admission: Some(list.admission()), ..Options::default() };
        let listener = TpaPort::with_options(address, options)?.listen(16)?;
        Ok((Hub { writer, notice: Mutex::default() }, listener))
    }

    /// Answers one request. The peer has proved that it holds its key before the connection was open.
    fn serve(&self, stream: TpaStream) -> io::Result<()> {
        let may_write = stream.peer_key()? == Some(self.writer);
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        let mut notice = self.notice.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match line.trim_end().split_once(' ') {
            Some(("put", text)) if may_write => {
                *notice = text.to_owned();
                "done"
            }
            Some(("put", _)) => "denied",
            _ => &notice,
        };
        (&stream).write_all(format!("{answer}\n").as_bytes())?;
        drop(notice);
        stream.close()
    }
}

/// The hub's answer to a peer with this key.
fn ask(address: SocketAddr, own: [u8; 32], hub: [u8; 32], request: &str) -> io::Result<String> {
    let options = Options { security: Security::Keys { own, peers: vec![hub] }, ..Options::default() };
    let stream = TpaPort::with_options("127.0.0.1:0", options)?.connect(address)?;
    (&stream).write_all(format!("{request}\n").as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer)?;
    stream.close()?;
    Ok(answer.trim_end().to_owned())
}

/// A hub, its two peers and a stranger over loopback: what each is told.
fn all() -> io::Result<[String; 5]> {
    let [hub, writer, reader, stranger] = [(); 4].map(|()| keys::generate());
    let ((own, hub), (writer, writers), (reader, readers), (stranger, _)) = (hub?, writer?, reader?, stranger?);
    let (serving, listener) = Hub::listen("127.0.0.1:0", own, writers, readers)?;
    let address = listener.local_addr()?;
    std::thread::scope(|scope| {
        scope.spawn(|| listener.incoming().map_while(Result::ok).try_for_each(|stream| serving.serve(stream)));
        let said = [(writer, "put the bridge is closed"), (reader, "get"), (reader, "put open"), (writer, "get")]
            .map(|(key, request)| ask(address, key, hub, request).unwrap_or_else(|error| error.to_string()));
        let refused = ask(address, stranger, hub, "get").unwrap_or_else(|error| error.to_string());
        listener.close();
        let [first, second, third, fourth] = said;
        Ok([first, second, third, fourth, refused])
    })
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let key = |text: &str| keys::parse(text).ok_or_else(|| io::Error::other(format!("{text}: not a key")));
    match &arguments[..] {
        [address, own, writer, reader] => {
            let (hub, listener) = Hub::listen(address, keys::read(Path::new(own))?, key(writer)?, key(reader)?)?;
            for stream in listener.incoming() {
                // A peer that breaks off harms nobody else.
                let _ = hub.serve(stream?);
            }
        }
        _ => all()?.iter().for_each(|line| println!("{line}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_peer_has_its_rights() {
        let [written, read, denied, unchanged, refused] = super::all().unwrap();
        assert_eq!([written.as_str(), &read, &denied], ["done", "the bridge is closed", "denied"]);
        assert_eq!(unchanged, "the bridge is closed");
        assert!(refused.contains("does not admit this end's key"), "{refused}");
    }
}
