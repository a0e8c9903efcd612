//! `ro-crate-metadata.json`: the folder of a study as an RO-Crate 1.1, which archives and catalogues read.

use super::{KEPT, KeptFile, PROVENANCE, Provenance};
use crate::report::{
    bundle::{pretty, quoted},
    sheet::{SheetError, write_whole},
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// The file that describes a folder.
pub(crate) const CRATE: &str = "ro-crate-metadata.json";

/// The files that a folder may hold: the name, the meaning, and the media type.
const OUTPUTS: [(&str, &str, &str); 25] = [
    ("summary.json", "The outcome: figures of the whole", "application/json"),
    ("report.html", "The outcome as a page with plots", "text/html"),
    ("events.jsonl", "Every event of the run, one a line", "application/jsonl"),
    ("rounds.csv", "Figures by round", "text/csv"),
    ("rounds.parquet", "Figures by round", PARQUET),
    ("delegates.csv", "Slots of each delegate by round", "text/csv"),
    ("delegates.parquet", "Slots of each delegate by round", PARQUET),
    ("time.csv", "Figures by time", "text/csv"),
    ("time.parquet", "Figures by time", PARQUET),
    ("blocks.csv", "The blocks of the winning chain", "text/csv"),
    ("blocks.parquet", "The blocks of the winning chain", PARQUET),
    ("elections.csv", "Turnover of the active delegates and the spread of their votes by round", "text/csv"),
    ("elections.parquet", "Turnover of the active delegates and the spread of their votes by round", PARQUET),
    ("orphans.csv", "Blocks that are not part of the winning chain", "text/csv"),
    ("orphans.parquet", "Blocks that are not part of the winning chain", PARQUET),
    ("links.csv", "The links between nodes", "text/csv"),
    ("links.parquet", "The links between nodes", PARQUET),
    ("runs.csv", "A row for each run", "text/csv"),
    ("runs.parquet", "A row for each run", PARQUET),
    ("failures.csv", "The runs that failed", "text/csv"),
    ("failures.parquet", "The runs that failed", PARQUET),
    ("points.csv", "The points of the study", "text/csv"),
    ("sweep.json", "The sweep: seeds, values, part", "application/json"),
    ("rows.bin", "The rows of the runs, from which the tables are made", "application/octet-stream"),
    (PROVENANCE, "Commands, programs and files of the scenario", "application/json"),
];
const PARQUET: &str = "application/vnd.apache.parquet";

/// The ASCII characters that are escaped in the path of an address.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'[')
    .add(b']')
    .add(b'\\')
    .add(b'^')
    .add(b'|');

/// The text that describes a study to readers of an archive.
pub(crate) struct CrateText<'a> {
    /// One line.
    pub name: &'a str,
    pub description: &'a str,
    /// The day on which the folder was written, as `2026-11-28`.
    pub date: &'a str,
}

/// Describes a folder as it is now.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(folder: &Path, provenance: &Provenance, described: &CrateText<'_>) -> Result<(), SheetError> {
    let size = |name: &str| fs::metadata(folder.join(name)).ok().map(|file| file.len().to_string());
    let outputs = OUTPUTS.iter().filter_map(|(name, what, form)| {
        let size = size(name)?;
        Some(json!({ "@id": *name, "@type": "File", "name": *name, "description": *what, "encodingFormat": *form, "contentSize": size }))
    });
    let outputs: Vec<Value> = outputs.collect();
    let form = |file: &KeptFile| if file.kept.ends_with(".csv") { "text/csv" } else { "application/toml" };
    let kept = provenance.scenario.iter().map(|file| (file, "A file of the scenario", form(file)));
    let kept = kept.chain(provenance.named.iter().map(|file| (file, "A file that the scenario names", "text/plain")));
    let kept = kept.map(|(file, what, form)| {
        json!({
            "@id": utf8_percent_encode(&file.kept, PATH).to_string(),
            "@type": "File",
            "name": file.kept.trim_start_matches(KEPT).trim_start_matches('/'),
            "description": what,
            "encodingFormat": form,
            "contentSize": size(&file.kept),
        })
    });
    let kept: Vec<Value> = kept.collect();
    let ids = |entities: &[Value]| entities.iter().map(|entity| json!({ "@id": entity["@id"] })).collect::<Vec<_>>();
    let program = provenance.programs().next_back().expect("it was kept so");
    let command = provenance.played.last().expect("it was kept so").command.iter().map(|word| quoted(word));
    let command = command.collect::<Vec<_>>().join(" ");
    let parts = [ids(&kept), ids(&outputs)].concat();
    let mut graph = vec![
        json!({
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": { "@id": "./" },
            "conformsTo": { "@id": "https://w3id.org/ro/crate/1.1" },
        }),
        json!({
            "@id": "./",
            "@type": "Dataset",
            "name": described.name,
            "description": described.description,
            "datePublished": described.date,
            "license": "None is stated: the publisher of this folder states one.",
            "hasPart": parts,
            "mentions": { "@id": "#played" },
        }),
        json!({
            "@id": "#played",
            "@type": "CreateAction",
            "name": command,
            "instrument": { "@id": "#dposlab" },
            "object": ids(&kept),
            "result": ids(&outputs),
        }),
        json!({
            "@id": "#dposlab",
            "@type": "SoftwareApplication",
            "name": "dposlab",
            "softwareVersion": program.version,
            "description": format!("dposlab {}", program.in_words()),
        }),
    ];
    graph.extend(kept);
    graph.extend(outputs);
    let whole = json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph });
    write_whole(&folder.join(CRATE), pretty(&whole).as_bytes())
}
