//! The other nodes of the simulated network, as peers. A peer that serves an API has the address of that API, so that clients
//! which choose a node by themselves find it. The others have no sockets. Their addresses are from the range for benchmarks of
//! networks (RFC 2544), where no real machine is. Source: api.md 8.

use crate::{
    actors::NodeId,
    api::{
        http::request::Ports,
        table::{Bound, DialectSet, Member, Parameter, Rule, Shape, both, field::Cell, parameter::ANY_TEXT, row},
        view::VERSION,
    },
    protocol::Height,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const OS: &str = "linux";
/// The HTTP status of each peer's last answer.
const STATUS: u16 = 200;

/// The order of a list.
pub(crate) const ORDERED: &[Parameter] = &row::ordered(MEMBERS, &["height", "ip", "latency", "version"]);

/// The parameters that the list of peers takes.
pub(crate) const FILTERS: &[Parameter] = &row::filters(MEMBERS, ["ip", "version", "port", "status", "os"]);

/// A peer as a path has it.
pub(crate) const PATH_IP: &[Parameter] = &[both("ip", Rule::Ip)];

/// Another node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerRow {
    pub node: NodeId,
    pub height: Height,
    /// The round-trip time [ms].
    pub latency_ms: u32,
    /// All nodes listen on the same ports.
    pub ports: Ports,
    /// Where its API answers, if it serves one.
    pub api: Option<SocketAddr>,
}

impl PeerRow {
    /// Its address: that of its API, if it has one.
    pub fn ip(&self) -> IpAddr {
        self.api.map_or_else(|| self.simulated_ip().into(), |api| api.ip())
    }

    /// Its simulated public address.
    pub fn simulated_ip(&self) -> Ipv4Addr {
        self.node.address().into()
    }
}

type Row = Member<PeerRow>;

/// The members of a peer. The handler filters by version, because that parameter is a range.
pub(crate) const MEMBERS: &[Row] = &[
    Row::new("ip", Shape::Text, |row, _| row.ip().to_string().into()).asked(Rule::Ip),
    Row::new("port", Shape::Integer, |row, _| row.ports.p2p.into())
        .asked(Rule::Integer(Bound::Between(0, 65_535)))
        .if_documented(),
    Row::by("ports", Shape::Map(&Shape::Integer), |row, _, slot| {
        slot.object(|ports| {
            ports.member("@arkecosystem/core-p2p").put(&row.ports.p2p);
            // -1 means that the peer has no API.
            ports.member("@arkecosystem/core-api").put(&row.api.map_or(-1, |api| i32::from(api.port())));
        });
    }),
    Row::new("version", Shape::Text, |_, _| Cell::Elsewhere).written(|_, _, slot| slot.put(VERSION)).asked(ANY_TEXT),
    Row::new("height", Shape::Integer, |row, _| row.height.into()),
    Row::new("status", Shape::Integer, |_, _| STATUS.to_string().into())
        .written(|_, _, slot| slot.put(&STATUS))
        .only(DialectSet::DOCUMENTED)
        .asked(ANY_TEXT)
        .if_documented(),
    Row::new("os", Shape::Text, |_, _| OS.into()).only(DialectSet::DOCUMENTED).asked(ANY_TEXT).if_documented(),
    Row::new("latency", Shape::Integer, |row, _| row.latency_ms.into()),
];

/// The shape of a peer.
pub(crate) const SHAPE: Shape = Shape::Resource("Peer", &MEMBERS);
