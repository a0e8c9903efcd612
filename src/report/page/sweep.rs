//! The page of a sweep.

use crate::report::{bundle::quoted, sweep::summary::Summary};
use serde_json::json;

const SCRIPT: &str = include_str!("sweep.js");

/// The whole page.
pub fn page(summary: &Summary) -> String {
    let manifest = &summary.manifest;
    let mut command = format!("dposlab sweep {} --seeds {}", quoted(&manifest.scenario), String::from(manifest.seeds));
    for (option, values) in [("--vary", &manifest.vary), ("--set", &manifest.set)] {
        for value in values {
            command.push_str(&format!(" {option} {}", quoted(value)));
        }
    }
    if let Some(shard) = manifest.shard {
        command.push_str(&format!(" --shard {}", String::from(shard)));
    }
    let title = format!("{}, seeds {}", manifest.scenario, String::from(manifest.seeds));
    super::page(&title, &json!({ "summary": summary, "command": command }), SCRIPT)
}
