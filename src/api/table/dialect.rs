//! The two dialects of the API, and the rows of tables that belong to one of them. Source: api.md 4.10.

use std::{fmt, str::FromStr};

/// The dialect of the API. Source: api.md 4.10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The published specification, extended by the reference node: accepts the requests and shows the members of both.
    #[default]
    Documented,
    /// The reference node 2.6.57, member for member.
    Core26,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Documented => "documented",
            Self::Core26 => "core-2.6",
        })
    }
}

impl FromStr for Dialect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "documented" => Ok(Self::Documented),
            "core-2.6" => Ok(Self::Core26),
            _ => Err(format!("'{text}' is no dialect: give 'documented' or 'core-2.6'")),
        }
    }
}

/// The dialects that have a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialectSet {
    Always,
    Only(Dialect),
}

impl DialectSet {
    pub const DOCUMENTED: Self = Self::Only(Dialect::Documented);
    pub const CORE26: Self = Self::Only(Dialect::Core26);

    /// Returns true if this dialect has the row.
    pub fn holds(self, dialect: Dialect) -> bool {
        match self {
            Self::Always => true,
            Self::Only(only) => only == dialect,
        }
    }
}
