//! Peers: the other nodes of the simulated network. Source: api.md 8.

use crate::{
    actors::NodeId,
    api::{
        http::ApiError,
        resource::peer::{self, PeerRow},
        table::{Call, Outcome, version::VersionRange},
        view::VERSION,
    },
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// `GET /api/peers`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let range = call.parameters.text("version").unwrap_or("*");
    let range = VersionRange::parse(range).ok_or(ApiError::NotFound("Invalid version range provided"))?;
    let version = VERSION.parse().expect("it is a version");
    // Every node is of the same version.
    let mut rows = call.matching(peer::MEMBERS, all(call).filter(|_| range.contains(&version)));
    let listing = match call.parameters.order() {
        Some(("ip", descending)) => {
            rows.sort_by_key(PeerRow::ip);
            if descending {
                rows.reverse();
            }
            call.page().cut(rows)
        }
        _ => call.ordered(peer::MEMBERS, rows, Some(("latency", false))),
    };
    Ok(call.list_rows(listing, peer::MEMBERS))
}

/// `GET /api/peers/{ip}`.
pub(crate) fn show(call: &Call<'_>) -> Outcome {
    let ip = call.argument("ip");
    // Nodes that serve APIs may share an address, so a node is also found by its simulated one.
    let named = |row: &PeerRow| row.ip().to_string() == ip || row.simulated_ip().to_string() == ip;
    let row = all(call).find(named);
    let row = row.ok_or(ApiError::NotFound("Peer not found"))?;
    Ok(call.show_row(peer::MEMBERS, &row))
}

fn all(call: &Call<'_>) -> impl Iterator<Item = PeerRow> {
    let (ports, served) = (call.context.ports, call.context.served.clone());
    // A server that listens on all addresses is shown at the address that the client asked.
    let literal = |host: &str| host.parse::<SocketAddr>().map(|host| host.ip()).or_else(|_| host.parse()).ok();
    let asked: Option<IpAddr> = call.request.host().and_then(literal);
    let real = move |node: NodeId| {
        let api = *served.get(node.0 as usize)?;
        let ip = if api.ip().is_unspecified() { asked.unwrap_or(Ipv4Addr::LOCALHOST.into()) } else { api.ip() };
        Some(SocketAddr::new(ip, api.port()))
    };
    let neighbours = call.context.view.neighbours().all().into_iter();
    neighbours.map(move |(node, height, latency_ms)| PeerRow { node, height, latency_ms, ports, api: real(node) })
}
