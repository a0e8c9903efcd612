//! The messages of schema errors.

use crate::protocol::keys::shorten;

/// A member that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transaction member `{path}` is {found}, allowed is {rule}")]
pub struct SchemaError {
    /// The path from the transaction, for instance `asset.votes[0]`.
    pub path: String,
    /// The value found, shortened; `missing` if there is none.
    pub found: String,
    /// The number of characters of a text found, or of members of a list.
    length: usize,
    pub rule: Rule,
}

/// Passed, or the member at fault.
pub(crate) type SchemaResult = Result<(), SchemaError>;

/// The allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    #[error("a value: the member is required")]
    Required,
    #[error("nothing: the member must be absent")]
    Absent,
    #[error("an object")]
    Object,
    #[error("an array")]
    Array,
    #[error("a text")]
    Text,
    #[error("a whole number, as number or decimal text, from {min} to {max}")]
    Amount { min: u64, max: u64 },
    #[error("a whole number from {min} to {max}")]
    Number { min: u64, max: u64 },
    #[error("{0}")]
    OneOf(&'static str),
    #[error("{digits} hex digits")]
    Hex { digits: usize },
    #[error("a text of {min} to {max} characters")]
    Characters { min: usize, max: usize },
    #[error("a list of {min} to {max}")]
    Items { min: usize, max: usize },
    #[error("a list without repetition: items {0} and {1} are the same")]
    Unique(usize, usize),
    #[error("a text that matches {0}")]
    Pattern(&'static str),
    #[error("{meaning}")]
    Format { name: &'static str, meaning: String },
    #[error("{0}, the address byte of this network")]
    Network(u8),
    #[error("at most {0}, the limit of payments in force")]
    PaymentLimit(usize),
    #[error("at least one of {0}")]
    AnyOf(&'static str),
}

/// A vote: stricter than the reference's pattern, which lets `|` and digits that are not hex pass.
pub(in crate::protocol::transaction) const VOTE: &str = "^[+-][0-9a-fA-F]{66}$";

/// Members of every transaction; the reference names them with a dot.
const COMMON: [&str; 8] = ["id", "signature", "type", "senderPublicKey", "fee", "amount", "nonce", "timestamp"];

impl SchemaError {
    pub(in crate::protocol::transaction) fn new(
        path: impl Into<String>,
        found: impl std::fmt::Display,
        rule: Rule,
    ) -> Self {
        Self { path: path.into(), found: found.to_string(), length: 0, rule }
    }

    /// The error of a text with a wrong length or form.
    pub(in crate::protocol::transaction) fn of_text(path: impl Into<String>, text: &str, rule: Rule) -> Self {
        Self { length: text.chars().count(), ..Self::new(path, format!("{:?}", shorten(text)), rule) }
    }

    /// The error of a list with too few or too many members.
    pub(in crate::protocol::transaction) fn of_list(path: impl Into<String>, length: usize, rule: Rule) -> Self {
        Self { length, ..Self::new(path, format!("{length} items"), rule) }
    }

    /// Approximately the message of the reference's validator. Its long lists of tried alternatives are not reproduced.
    pub fn reference_text(&self) -> String {
        let path = &self.path;
        // The path writes a member whose name is no identifier in brackets.
        let bracket = path.rfind("['").filter(|_| path.ends_with("']")).map(|at| path.split_at(at));
        let (parent, member) = match bracket.or_else(|| path.rsplit_once('.')) {
            Some((parent, member)) => (format!("data.{parent}"), member),
            None => ("data".to_owned(), path.as_str()),
        };
        match &self.rule {
            Rule::Required if COMMON.contains(&path.as_str()) => {
                format!("data should have required property '.{member}'")
            }
            Rule::Required => format!("{parent} should have required property '{member}'"),
            Rule::Absent => format!("data.{path} should be null"),
            Rule::Object => format!("data.{path} should be object"),
            Rule::Array => format!("data.{path} should be array"),
            Rule::Text => format!("data.{path} should be string"),
            Rule::Amount { .. } => format!("data.{path} should pass \"bignumber\" keyword validation"),
            Rule::Number { min, max } => match self.found.parse::<i128>() {
                Ok(number) if number > i128::from(*max) => format!("data.{path} should be <= {max}"),
                Ok(_) => format!("data.{path} should be >= {min}"),
                Err(_) => format!("data.{path} should be integer"),
            },
            Rule::OneOf(_) => format!("data.{path} should be equal to one of the allowed values"),
            Rule::Hex { digits } => self.length_text(*digits, *digits, "characters"),
            Rule::Characters { min, max } => self.length_text(*min, *max, "characters"),
            Rule::Items { min, max } => self.length_text(*min, *max, "items"),
            Rule::Unique(one, other) => {
                format!("data.{path} should NOT have duplicate items (items ## {one} and {other} are identical)")
            }
            Rule::Pattern(VOTE) => format!("data.{path} should match pattern \"^[+|-][a-zA-Z0-9]{{66}}$\""),
            Rule::Pattern(pattern) => format!("data.{path} should match pattern \"{pattern}\""),
            Rule::Format { name, .. } => format!("data.{path} should match format \"{name}\""),
            Rule::Network(_) => format!("data.{path} should pass \"network\" keyword validation"),
            Rule::PaymentLimit(_) => "data.type should pass \"transactionType\" keyword validation".to_owned(),
            Rule::AnyOf(_) => format!("data.{path} should match some schema in anyOf"),
        }
    }

    fn length_text(&self, min: usize, max: usize, unit: &str) -> String {
        let path = &self.path;
        match (self.length, unit) {
            (length, "items") if length < min => format!("data.{path} should NOT have fewer than {min} items"),
            (length, "items") if length > max => format!("data.{path} should NOT have more than {max} items"),
            (length, _) if length < min => format!("data.{path} should NOT be shorter than {min} characters"),
            (length, _) if length > max => format!("data.{path} should NOT be longer than {max} characters"),
            _ => format!("data.{path} should match pattern \"^[0123456789A-Fa-f]+$\""),
        }
    }
}
