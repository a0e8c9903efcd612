//! `dposlab schema`: the format of scenario files, for editors and checkers.

use super::Failure;
use crate::scenario::Scenario;
use clap::Args;

/// Print the JSON Schema of scenario files, so that an editor completes and checks them.
#[derive(Debug, Args)]
pub(crate) struct Schema {}

impl Schema {
    /// Prints the schema.
    ///
    /// # Errors
    /// None.
    pub fn run(self) -> Result<(), Failure> {
        super::output::line(&format!("{:#}", Scenario::schema()));
        Ok(())
    }
}
