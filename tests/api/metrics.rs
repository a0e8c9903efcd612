//! Figures for Prometheus: each is documented, and each counts.

use crate::live::{Network, head};
use serde_json::json;
use std::collections::BTreeMap;

/// The samples of a text, by name and labels as they stand there.
fn samples(network: &Network) -> BTreeMap<String, f64> {
    let answered = network.get("/metrics");
    assert_eq!(answered.status, 200);
    assert!(
        head(&answered).contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{}",
        head(&answered)
    );
    let text = String::from_utf8(answered.reply.body.to_vec()).expect("a text");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
        })
        .collect()
}

#[test]
fn figures_count_what_happens() {
    let network = Network::start(61);
    let before = samples(&network);
    assert_eq!(before["dposlab_node_height{node=\"4\"}"], 1.0);
    assert_eq!((before["dposlab_up"], before["dposlab_pace_ratio"]), (1.0, 0.0));
    network.advance(7);
    network.get("/api/blocks/3");
    network.get("/api/blocks/4");
    network.get("/api/blocks/no");
    network.get("/nowhere");
    network.post("/api/transactions", &json!({"transactions": []}));
    let after = samples(&network);
    assert_eq!(after["dposlab_node_height{node=\"4\"}"], 8.0);
    assert_eq!((after["dposlab_blocks_forged_total"], after["dposlab_missed_slots_total"]), (7.0, 0.0));
    assert_eq!((after["dposlab_branches"], after["dposlab_rollbacks_total"]), (1.0, 0.0));
    assert_eq!(after["dposlab_virtual_time_seconds"], 64.0);
    let count = |route: &str, method: &str, status: &str| {
        let labels = format!("{{route=\"{route}\",method=\"{method}\",status=\"{status}\"}}");
        after.get(&format!("dposlab_http_request_duration_seconds_count{labels}")).copied()
    };
    assert_eq!(count("/api/blocks/{id}", "GET", "2xx"), Some(2.0));
    assert_eq!(count("/api/blocks/{id}", "GET", "4xx"), Some(1.0));
    assert_eq!(count("none", "GET", "4xx"), Some(1.0));
    assert_eq!(count("/api/transactions", "POST", "4xx"), Some(1.0));
    assert_eq!(count("/metrics", "GET", "2xx"), Some(1.0));
    assert_eq!(after["dposlab_http_connections"], 1.0);
    assert_eq!(after["dposlab_http_connections_accepted_total"], 8.0);
    let sent = "{\"slots\":7}".len() + "{\"transactions\":[]}".len();
    assert_eq!(after["dposlab_http_received_bytes_total"], sent as f64);
    assert!(after["process_resident_memory_bytes"] > 1e6 && after["process_open_fds"] > 3.0);
    assert!(after["process_cpu_seconds_total"] >= before["process_cpu_seconds_total"]);
}

#[test]
fn every_figure_is_documented_with_type_and_labels_and_no_other_is() {
    let network = Network::start(62);
    network.get("/api/blocks");
    let text = String::from_utf8(network.get("/metrics").reply.body.to_vec()).expect("a text");
    let mut served: BTreeMap<String, (String, String)> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            served.insert(name.to_owned(), (kind.to_owned(), String::new()));
        } else if !line.starts_with('#')
            && let Some((name, labels)) = line.split_once('{')
        {
            let names = labels.split(['{', ',']).filter_map(|label| label.split_once("=\"")).map(|(name, _)| name);
            let names: Vec<&str> = names.filter(|name| *name != "le").collect();
            let name = name.trim_end_matches("_total").trim_end_matches("_count").trim_end_matches("_bucket");
            let figure = served.get_mut(name.trim_end_matches("_sum")).expect("its type stands before it");
            figure.1 = names.join(", ");
        }
    }
    let page = include_str!("../../docs/metrics.md");
    let rows =
        page.lines().filter_map(|line| line.strip_prefix("| `")).map(|line| line.split(" | ").collect::<Vec<_>>());
    let documented: BTreeMap<String, (String, String)> = rows
        .map(|row| (row[0].trim_end_matches('`').to_owned(), (row[1].to_owned(), row[2].replace('`', ""))))
        .collect();
    assert_eq!(documented, served);
}

#[test]
fn figures_are_for_this_machine() {
    let network = Network::start(63);
    let foreign = network.send_raw("GET /metrics HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n");
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
}
