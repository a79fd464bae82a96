//! Hops from the mesh paths of 802.11s, read over nl80211.
//!
//! Source: `linux/nl80211.h`. The numbers below are those of its `nl80211_commands`,
//! `nl80211_attrs`, `nl80211_mpath_info` and `nl80211_mpath_flags`. The number of hops is that of
//! the path reply (IEEE Std 802.11-2020, 9.4.2.113), since Linux 5.3.

use super::link::Link;
use netlink_packet_core::{DecodeError, DefaultNla, Emitable, Nla, NlasIterator, Parseable, ParseableParametrized};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::constants::NETLINK_GENERIC;
use std::collections::BTreeMap;
use std::io;

/// MAC address of a station.
pub type Mac = [u8; 6];
/// Number of hops by station.
pub type Stations = BTreeMap<Mac, u8>;

const GET_INTERFACE: u8 = 5;
const GET_MPATH: u8 = 21;
const IFINDEX: u16 = 3;
const IFTYPE: u16 = 5;
const MAC: u16 = 6;
const MPATH_INFO: u16 = 27;
const INFO_FLAGS: u16 = 5;
const INFO_HOP_COUNT: u16 = 8;
const ACTIVE: u8 = 1;
const MESH_POINT: u32 = 7;

/// Reads the paths of all mesh interfaces of a network namespace.
pub struct MeshPaths {
    link: Link,
    family: u16,
}

impl MeshPaths {
    /// Opens the connection to nl80211. `None` on a machine without 802.11.
    pub fn new() -> io::Result<Option<MeshPaths>> {
        let mut link = Link::new(NETLINK_GENERIC)?;
        let name = GenlCtrlAttrs::FamilyName(Message::family_name().to_owned());
        let question = GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![name] };
        let answer = match link.one(GenlMessage::from_payload(question)) {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let family = answer.iter().flat_map(|answer| &answer.payload.nlas).find_map(|attribute| match attribute {
            GenlCtrlAttrs::FamilyId(family) => Some(*family),
            _ => None,
        });
        Ok(family.map(|family| MeshPaths { link, family }))
    }

    /// Hops to every station with a path in use. A kernel before 5.3 does not report any.
    pub fn read(&mut self) -> io::Result<Stations> {
        let mut stations = Stations::new();
        let interfaces = self.list(Message { command: GET_INTERFACE, attributes: Vec::new() })?;
        for index in interfaces.iter().filter_map(mesh_interface) {
            let index = DefaultNla::new(IFINDEX, index.to_ne_bytes().to_vec());
            match self.list(Message { command: GET_MPATH, attributes: vec![index] }) {
                Ok(paths) => stations.extend(paths.iter().filter_map(path)),
                // The interface is down, or has been removed since.
                Err(error) if matches!(error.raw_os_error(), Some(DOWN | GONE)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(stations)
    }

    fn list(&mut self, message: Message) -> io::Result<Vec<Message>> {
        let mut question = GenlMessage::from_payload(message);
        question.set_resolved_family_id(self.family);
        Ok(self.link.list(question)?.into_iter().map(|answer| answer.payload).collect())
    }
}

const DOWN: i32 = rustix::io::Errno::NETDOWN.raw_os_error();
const GONE: i32 = rustix::io::Errno::NODEV.raw_os_error();

/// Index of an interface, if it is a mesh interface.
fn mesh_interface(interface: &Message) -> Option<u32> {
    let kind = u32::from_ne_bytes(interface.value(IFTYPE)?.try_into().ok()?);
    let index = u32::from_ne_bytes(interface.value(IFINDEX)?.try_into().ok()?);
    (kind == MESH_POINT).then_some(index)
}

/// Station and hops of a path, if the path is in use.
fn path(path: &Message) -> Option<(Mac, u8)> {
    let station = path.value(MAC)?.try_into().ok()?;
    let info = attributes(&path.value(MPATH_INFO)?).ok()?;
    let byte = |kind: u16| info.iter().find(|one| one.kind() == kind).and_then(|one| value_of(one).first().copied());
    let is_active = byte(INFO_FLAGS)? & ACTIVE != 0;
    Some((station, byte(INFO_HOP_COUNT)?.max(1))).filter(|_| is_active)
}

/// A message of nl80211.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Message {
    command: u8,
    attributes: Vec<DefaultNla>,
}

fn attributes(bytes: &[u8]) -> Result<Vec<DefaultNla>, DecodeError> {
    NlasIterator::new(bytes).map(|attribute| DefaultNla::parse(&attribute?)).collect()
}

fn value_of(attribute: &DefaultNla) -> Vec<u8> {
    let mut value = vec![0; attribute.value_len()];
    attribute.emit_value(&mut value);
    value
}

impl Message {
    fn value(&self, kind: u16) -> Option<Vec<u8>> {
        // The highest two bits are flags for nesting and byte order.
        self.attributes.iter().find(|attribute| attribute.kind() & 0x3fff == kind).map(value_of)
    }
}

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        "nl80211"
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Message {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Message, DecodeError> {
        Ok(Message { command: header.cmd, attributes: attributes(bytes)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes an attribute as `linux/netlink.h` defines it: length, kind, value, padding.
    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(attributes: &[Vec<u8>]) -> Message {
        Message::parse_with_param(&attributes.concat(), GenlHeader { cmd: 23, version: 1 }).unwrap()
    }

    #[test]
    fn a_path_in_use_tells_its_hops() {
        let station = [2, 0, 0, 0, 2, 0];
        let with = |info: Vec<Vec<u8>>| {
            // Newer kernels set the highest bit in the kind of nested attributes.
            message(&[
                attribute(3, &7u32.to_ne_bytes()),
                attribute(6, &station),
                attribute(0x8000 | 27, &info.concat()),
            ])
        };
        let flags = |flags: u8| attribute(5, &[flags]);
        let metric = attribute(3, &8193u32.to_ne_bytes());
        assert_eq!(path(&with(vec![metric.clone(), flags(0b10101), attribute(8, &[2])])), Some((station, 2)));
        assert_eq!(path(&with(vec![flags(0b10), attribute(8, &[2])])), None, "being looked for");
        assert_eq!(path(&with(vec![metric, flags(1)])), None, "an old kernel");
        assert_eq!(path(&message(&[attribute(6, &station)])), None);
    }

    #[test]
    fn any_attributes_say_what_they_would_say_if_they_were_written_again() {
        meshpace_testing::fuzz::drive("kernel", |data| {
            let header = GenlHeader { cmd: 23, version: 1 };
            let Ok(message) = Message::parse_with_param(data, header) else { return };
            let mut written = vec![0; message.buffer_len()];
            message.emit(&mut written);
            // The library writes only one of the two highest bits of a kind, even if a message has
            // both.
            let again = Message::parse_with_param(&written, header).unwrap();
            let read = |message| (path(message), mesh_interface(message));
            assert_eq!(read(&again), read(&message));
        });
    }

    #[test]
    fn only_interfaces_of_meshes_are_asked() {
        let interface = |kind: u32| message(&[attribute(3, &7u32.to_ne_bytes()), attribute(5, &kind.to_ne_bytes())]);
        assert_eq!(mesh_interface(&interface(7)), Some(7));
        assert_eq!(mesh_interface(&interface(2)), None, "a client of an access point");
    }
}
