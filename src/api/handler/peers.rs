//! Peers: the other nodes of the simulated network. Source: api.md 8.

use crate::api::{
    http::ApiError,
    resource::peer::{self, PeerRow},
    table::{Call, Outcome, field, version::VersionRange},
    view::VERSION,
};

/// `GET /api/peers`.
pub fn list(call: &Call<'_>) -> Outcome {
    let frame = call.frame();
    let range = call.parameters.text("version").unwrap_or("*");
    let range = VersionRange::parse(range).ok_or(ApiError::NotFound("Invalid version range provided"))?;
    let version = VERSION.parse().expect("it is a version");
    let mut rows = all(call);
    // Every node is of the same version.
    rows.retain(|row| range.contains(&version) && field::matches(peer::MEMBERS, &call.parameters, row, &frame));
    rows = match call.parameters.order().unwrap_or(("latency", false)) {
        ("ip", descending) => {
            rows.sort_by_key(PeerRow::ip);
            if descending {
                rows.reverse();
            }
            rows
        }
        order => field::sort(peer::MEMBERS, order, rows, &frame),
    };
    Ok(call.list_rows(call.page().cut(rows), peer::MEMBERS))
}

/// `GET /api/peers/{ip}`.
pub fn show(call: &Call<'_>) -> Outcome {
    let ip = call.argument("ip");
    let row = all(call).into_iter().find(|row| row.ip().to_string() == ip);
    let row = row.ok_or(ApiError::NotFound("Peer not found"))?;
    Ok(call.show_row(peer::MEMBERS, &row))
}

fn all(call: &Call<'_>) -> Vec<PeerRow> {
    let ports = call.context.ports;
    let neighbours = call.context.view.neighbours().all().into_iter();
    neighbours.map(|(node, height, latency_ms)| PeerRow { node, height, latency_ms, ports }).collect()
}
