//! Lists that a scenario file may leave to a CSV file. `scenario::load` reads the file and puts its list in the place of its name.

use schemars::JsonSchema;

/// A list in the form of a scenario file.
#[derive(JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
#[allow(dead_code, reason = "the schema is made of it, and no value")]
pub enum ListOrFile<T> {
    Inline(Vec<T>),
    InFile(ListFile),
}

/// The file of a list.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "the schema is made of it, and no value")]
pub struct ListFile {
    /// The name of a CSV file, relative to the file that names it. docs/simulation.md has the columns of each list.
    file: String,
}
