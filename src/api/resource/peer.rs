//! The other nodes of the simulated network, as peers. They have no sockets: their addresses are of the range that is
//! set aside for measuring networks (RFC 2544), where no machine of the world is. Source: api.md 8.

use crate::{
    actors::NodeId,
    api::{
        http::request::Ports,
        table::{
            dialect::Spoken,
            field::{Cell, Field},
            frame::Frame,
            parameter::{ANY_TEXT, Parameter, both, documented},
            row::{self, Member, write_members},
            rule::{Bound, Rule},
            shape::Shape,
        },
        view::VERSION,
    },
    protocol::Height,
};
use std::net::Ipv4Addr;

const OS: &str = "linux";
/// The status of HTTP that a peer answered last.
const STATUS: u16 = 200;

/// The parameters that the list of peers takes.
pub const FILTERS: &[Parameter] = &[
    both("orderBy", Rule::Order(&["height", "ip", "latency", "version"])),
    both("ip", Rule::Ip),
    both("version", ANY_TEXT),
    documented("port", Rule::Integer(Bound::Between(0, 65_535))),
    documented("status", ANY_TEXT),
    documented("os", ANY_TEXT),
];

/// A peer as a path has it.
pub const PATH_IP: &[Parameter] = &[both("ip", Rule::Ip)];

/// Another node.
#[derive(Clone, Copy, Debug)]
pub struct PeerRow {
    pub node: NodeId,
    pub height: Height,
    /// There and back [ms].
    pub latency_ms: u32,
    /// All nodes listen on the same ports.
    pub ports: Ports,
}

impl PeerRow {
    /// Its simulated public address.
    pub fn ip(&self) -> Ipv4Addr {
        self.node.address().into()
    }
}

/// The fields by which peers are filtered and ordered. Versions are looked at apart, as ranges.
pub const FIELDS: &[Field<PeerRow>] = &[
    Field::new("ip", |row, _| Cell::shown(row.ip())),
    Field::new("port", |row, _| Cell::number(row.ports.p2p)),
    Field::new("status", |_, _| Cell::shown(STATUS)),
    Field::new("os", |_, _| Cell::text(Some(OS))),
    Field::new("height", |row, _| Cell::number(row.height.0)),
    Field::new("latency", |row, _| Cell::number(row.latency_ms)),
];

const MEMBERS: &[Member<PeerRow>] = &[
    Member::new("ip", Shape::Text, |row, _, slot| slot.text(row.ip())),
    Member::new("port", Shape::Integer, |row, _, slot| slot.put(&row.ports.p2p)),
    Member::new("ports", Shape::Map(&Shape::Integer), |row, _, slot| {
        slot.object(|ports| {
            ports.member("@arkecosystem/core-p2p").put(&row.ports.p2p);
            // No API answers there.
            ports.member("@arkecosystem/core-api").put(&-1);
        });
    }),
    Member::new("version", Shape::Text, |_, _, slot| slot.put(VERSION)),
    Member::new("height", Shape::Integer, |row, _, slot| slot.put(&row.height)),
    Member::only("status", Spoken::DOCUMENTED, Shape::Integer, |_, _, slot| slot.put(&STATUS)),
    Member::only("os", Spoken::DOCUMENTED, Shape::Text, |_, _, slot| slot.put(OS)),
    Member::new("latency", Shape::Integer, |row, _, slot| slot.put(&row.latency_ms)),
];

/// The shape of a peer.
pub const SHAPE: Shape = Shape::Resource("Peer", |dialect, named| row::of_table(MEMBERS, dialect, named));

/// Writes a peer.
pub fn write(out: &mut Vec<u8>, row: &PeerRow, frame: &Frame<'_>) {
    write_members(out, MEMBERS, row, frame);
}
