//! The last of the benches by name: one table of what the others have measured, beside the limits of the machine, so
//! that a figure reads as a share of what could be had. Criterion keeps each result in a file; those are read here.

use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

const SIGNATURE: &str = "simulation/limit/a signature and its verification";
const HEAP: &str = "simulation/limit/the standard library's heap";

/// The limits that no measure can exceed. A name begins so, and the limit holds for so many of its units at once.
const LIMITS: [(&str, &str, f64); 8] = [
    ("forging/", SIGNATURE, 1.0),
    ("simulation/empty blocks once/real", SIGNATURE, 1.0),
    ("simulation/reference gossip/real", SIGNATURE, 1.0),
    // Its client's signing of the transfers is timed too, which this limit leaves out.
    ("simulation/full blocks/real", "signatures/schnorr batch of 150", 150.0),
    ("simulation/1000 peers 8-regular/real", SIGNATURE, 1.0),
    ("simulation/messages", HEAP, 1.0),
    ("simulation/reference gossip/messages", HEAP, 1.0),
    ("signatures/", "signatures/libsecp256k1 ecdsa verify, parsed", 1.0),
];

fn main() {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let mut rates = BTreeMap::new();
    collect(&folder.join("criterion"), &mut rates);
    if rates.is_empty() {
        return println!("Nothing has been measured yet; `cargo bench` runs all benches, this table last.");
    }
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN).set_header(["measure", "a second", "limit", "share"]);
    for (name, rate) in &rates {
        // Of either stage.
        let measured = name.replace("ractor, ", "");
        let limit = LIMITS.iter().find(|(prefix, ..)| measured.starts_with(prefix));
        let limit = limit.and_then(|(_, limit, units)| Some((limit, rates.get(*limit)? / units)));
        let (of, share) = match limit {
            Some((limit, most)) => ((*limit).to_owned(), format!("{:.2}", rate / most)),
            None => Default::default(),
        };
        table.add_row([name.clone(), readable(*rate), of, share]);
    }
    for column in [1, 3] {
        table.column_mut(column).expect("it has four columns").set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}");
}

/// The results below a folder: each measure's name, and how many of its units, or runs, it does in a second.
fn collect(folder: &Path, rates: &mut BTreeMap<String, f64>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()) {
        if path.ends_with("new") {
            rates.extend(result(&path));
        } else {
            collect(&path, rates);
        }
    }
}

fn result(folder: &Path) -> Option<(String, f64)> {
    let read = |file: &str| serde_json::from_str::<Value>(&fs::read_to_string(folder.join(file)).ok()?).ok();
    let (about, estimates) = (read("benchmark.json")?, read("estimates.json")?);
    let nanoseconds = estimates["mean"]["point_estimate"].as_f64()?;
    let units = about["throughput"]["Elements"].as_f64().unwrap_or(1.0);
    Some((about["full_id"].as_str()?.to_owned(), units * 1e9 / nanoseconds))
}

fn readable(rate: f64) -> String {
    match rate {
        rate if rate >= 1e6 => format!("{:.2} M", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.1} k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}
