//! The page of a sweep.

use crate::report::{
    bundle::{quoted, shown},
    sweep::{results::POINTS, summary::Summary},
};
use serde_json::json;
use std::{mem, path::Path};

const SCRIPT: &str = include_str!("sweep.js");

/// The whole page. It names the scenario's file as reports do.
pub fn page(summary: &Summary) -> String {
    let mut summary = summary.clone();
    // The page does not draw them.
    summary.compared.clear();
    let given = mem::take(&mut summary.manifest.scenario);
    summary.manifest.scenario = shown(Path::new(&given));
    let command = |scenario: &str| format!("dposlab run {} ", quoted(scenario));
    for failed in &mut summary.failures {
        failed.reproduce = failed.reproduce.replacen(&command(&given), &command(&summary.manifest.scenario), 1);
    }
    let manifest = &summary.manifest;
    let mut command = format!("dposlab sweep {} --seeds {}", quoted(&manifest.scenario), String::from(manifest.seeds));
    for (option, values) in [("--vary", &manifest.vary), ("--set", &manifest.set)] {
        for value in values {
            command.push_str(&format!(" {option} {}", quoted(value)));
        }
    }
    if manifest.points.is_some() {
        command.push_str(&format!(" --points {POINTS}"));
    }
    if let Some(shard) = manifest.shard {
        command.push_str(&format!(" --shard {}", String::from(shard)));
    }
    let title = format!("{}, seeds {}", manifest.scenario, String::from(manifest.seeds));
    super::page(&title, &json!({ "summary": summary, "command": command }), SCRIPT)
}
