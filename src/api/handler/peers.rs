//! Peers: the other nodes of the simulated network. Source: api.md 8.

use crate::api::{
    http::ApiError,
    resource::peer::{self, PeerRow},
    table::{Call, Outcome, version::VersionRange},
    view::VERSION,
};

/// `GET /api/peers`.
pub fn list(call: &Call<'_>) -> Outcome {
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
pub fn show(call: &Call<'_>) -> Outcome {
    let ip = call.argument("ip");
    let row = all(call).find(|row| row.ip().to_string() == ip);
    let row = row.ok_or(ApiError::NotFound("Peer not found"))?;
    Ok(call.show_row(peer::MEMBERS, &row))
}

fn all(call: &Call<'_>) -> impl Iterator<Item = PeerRow> {
    let ports = call.context.ports;
    let neighbours = call.context.view.neighbours().all().into_iter();
    neighbours.map(move |(node, height, latency_ms)| PeerRow { node, height, latency_ms, ports })
}
