//! The page of a sweep.

use crate::report::{
    bundle::quoted,
    sweep::{results::POINTS, summary::Summary},
};
use serde_json::json;
use std::mem;

pub(super) const SCRIPT: &str = include_str!("sweep.js");

/// The whole page. `shown` is the scenario's name in reports.
pub(crate) fn page(summary: &Summary, shown: &str) -> String {
    let mut summary = summary.clone();
    let given = mem::take(&mut summary.manifest.scenario);
    summary.manifest.scenario = shown.to_owned();
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
    if !summary.compared.is_empty() {
        command.push_str(" --compare");
    }
    if let Some(until) = &summary.until_ci {
        command.push_str(&format!(" --until-ci {}", quoted(&format!("{}<{}", until.figure, until.width))));
    }
    let title = format!("{}, seeds {}", manifest.scenario, String::from(manifest.seeds));
    super::page(&title, &json!({ "summary": summary, "command": command }), SCRIPT)
}
