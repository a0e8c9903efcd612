//! One value of a scenario replaced from outside, for `--set` and `--vary`: `network.latency.max_ms=200`.
//!
//! A path is the keys of the file joined by points, with an entry of a list by its index in brackets: `fault[0].rounds`. `fault[+]` is
//! a new entry at the end of the list. A value is written as in the file. Text that is no TOML value stands for itself, so
//! `network.gossip=reference` needs no quotes that a shell would remove.

use super::path::{FORMS, PathStep, join};
use std::{fmt, str::FromStr};
use toml::{Table, Value};

/// A path into a scenario file and the value to put there.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    path: Vec<PathStep>,
    value: Value,
}

impl Override {
    /// Returns true if both set the same value. Numbers are compared as numbers: 0 is 0.0.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = match (&self.value, &other.value) {
            (Value::Integer(whole), Value::Float(float)) | (Value::Float(float), Value::Integer(whole)) => {
                *whole as f64 == *float
            }
            (one, other) => one == other,
        };
        self.path == other.path && same
    }
}

/// Several values for one path: `network.latency.max_ms=50,100,200`.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// As it was written.
    pub path: String,
    /// The values in the order written, at least one.
    pub values: Vec<Override>,
}

/// The largest number of keys and indexes in a path: more than the depth of any value of a scenario.
const PATH_LIMIT: usize = 32;

/// The reason why a text is no override, or why it does not fit a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[rustfmt::skip]
pub enum OverrideError {
    #[error("'{0}' sets nothing: give PATH=VALUE, such as network.latency.max_ms=200")]
    NoValue(String),
    #[error("'{0}' is no path: give keys joined by points, an entry of a list by its index, a new one by [+]: fault[0].rounds, fault[+]")]
    BadPath(String),
    #[error("'{0}...' is no path: allowed are {PATH_LIMIT} keys and indexes")]
    LongPath(String),
    #[error("'{path}': '{at}' is no table, so it has no key '{key}'")]
    NoTable { path: String, at: String, key: String },
    #[error("'{path}': '{at}' is no list, so it takes no new entry")]
    NoList { path: String, at: String },
    #[error("'{path}': '{at}' has {found} entries, so there is no [{index}]")]
    NoEntry { path: String, at: String, index: usize, found: usize },
}

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let (path, value) = text.split_once('=').ok_or_else(|| OverrideError::NoValue(text.to_owned()))?;
        Self::new(path, value)
    }
}

impl FromStr for Variation {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let (path, values) = text.split_once('=').ok_or_else(|| OverrideError::NoValue(text.to_owned()))?;
        let steps = parse_path(path.trim())?;
        let values = split_values(values);
        if values.iter().any(|value| value.trim().is_empty()) {
            return Err(OverrideError::NoValue(text.to_owned()));
        }
        let set = |value: &&str| Override { path: steps.clone(), value: parse_value(value) };
        Ok(Self { path: path.trim().to_owned(), values: values.iter().map(set).collect() })
    }
}

impl Override {
    /// An override from a path and a value, as they are written on both sides of `=`.
    ///
    /// # Errors
    /// The path is invalid.
    pub fn new(path: &str, value: &str) -> Result<Self, OverrideError> {
        Ok(Self { path: parse_path(path.trim())?, value: parse_value(value) })
    }

    /// The path, in its normal form.
    pub fn path(&self) -> String {
        join(&self.path)
    }

    /// The new value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The value as it would be given on a command line: text without quotes.
    pub fn value_text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }

    /// Puts the value into the table of a file. Makes missing tables and lists on the way. Entries of lists must exist, except for new
    /// ones. The reader of the table checks that the key exists.
    ///
    /// # Errors
    /// The path goes through something that is no table, or past the end of a list.
    pub fn apply(&self, table: &mut Table) -> Result<(), OverrideError> {
        let mut root = Value::Table(std::mem::take(table));
        let done = self.put(&mut root);
        if let Value::Table(changed) = root {
            *table = changed;
        }
        done
    }

    fn put(&self, root: &mut Value) -> Result<(), OverrideError> {
        let mut at = root;
        for (depth, step) in self.path.iter().enumerate() {
            let here = || join(&self.path[..depth]);
            at = match step {
                PathStep::Key(key) => match at {
                    Value::Table(table) => {
                        let is_form = depth.checked_sub(1).is_some_and(
                            |above| matches!(&self.path[above], PathStep::Key(key) if FORMS.contains(&key.as_str())),
                        );
                        if is_form && !table.contains_key(key) {
                            table.clear();
                        }
                        let is_list = self.path.get(depth + 1) == Some(&PathStep::Next);
                        table.entry(key.clone()).or_insert_with(|| match is_list {
                            true => Value::Array(Vec::new()),
                            false => Value::Table(Table::new()),
                        })
                    }
                    _ => return Err(OverrideError::NoTable { path: self.path(), at: here(), key: key.clone() }),
                },
                PathStep::Index(index) => {
                    let found = at.as_array().map_or(0, Vec::len);
                    let missing = OverrideError::NoEntry { path: self.path(), at: here(), index: *index, found };
                    at.as_array_mut().and_then(|list| list.get_mut(*index)).ok_or(missing)?
                }
                PathStep::Next => {
                    let missing = OverrideError::NoList { path: self.path(), at: here() };
                    let list = at.as_array_mut().ok_or(missing)?;
                    list.push(Value::Table(Table::new()));
                    list.last_mut().expect("one was added")
                }
            };
        }
        *at = self.value.clone();
        Ok(())
    }
}

/// Writes it as it can be given again: `network.gossip=reference`. A text is in quotes if it would be another value without them.
impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.value_text();
        let text = if parse_value(&text) == self.value { text } else { self.value.to_string() };
        write!(f, "{}={text}", self.path())
    }
}

fn parse_path(text: &str) -> Result<Vec<PathStep>, OverrideError> {
    let bad = || OverrideError::BadPath(text.to_owned());
    let mut path = Vec::new();
    for part in text.split('.') {
        let (key, indexes) = part.split_at(part.find('[').unwrap_or(part.len()));
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        if key.is_empty() || !key.chars().all(is_word) {
            return Err(bad());
        }
        path.push(PathStep::Key(key.to_owned()));
        if path.len() > PATH_LIMIT {
            return Err(OverrideError::LongPath(text.chars().take(40).collect()));
        }
        let mut rest = indexes;
        while !rest.is_empty() {
            let (index, after) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(bad)?;
            path.push(match index {
                "+" => PathStep::Next,
                index => PathStep::Index(index.parse().map_err(|_| bad())?),
            });
            if path.len() > PATH_LIMIT {
                return Err(OverrideError::LongPath(text.chars().take(40).collect()));
            }
            rest = after;
        }
    }
    Ok(path)
}

/// Parses a TOML value, or returns the text itself. A text with a comment is no TOML value: the comment would hide the closing
/// bracket.
fn parse_value(text: &str) -> Value {
    let is_alone = toml::from_str::<Table>(&format!("value = [{text}]")).is_ok();
    let document =
        toml::from_str::<Table>(&format!("value = {text}")).ok().filter(|table| table.len() == 1 && is_alone);
    let parsed = document.and_then(|mut table| table.remove("value"));
    parsed.unwrap_or_else(|| Value::String(text.trim().to_owned()))
}

/// Splits at the commas that are in no list, table or quotes.
pub(crate) fn split_values(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start, mut values) = (0_i32, None, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                values.push(&text[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    values.push(&text[start..]);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).expect("the test writes TOML")
    }

    fn set(text: &str, file: &str) -> Result<Table, String> {
        let mut table = table(file);
        let set: Override = text.parse().map_err(|why: OverrideError| why.to_string())?;
        set.apply(&mut table).map_err(|why| why.to_string())?;
        Ok(table)
    }

    #[test]
    fn a_value_is_replaced_or_put_where_none_was() {
        assert_eq!(set("rounds=7", "rounds = 3"), Ok(table("rounds = 7")));
        assert_eq!(set("network.loss=0.05", ""), Ok(table("[network]\nloss = 0.05")));
        assert_eq!(set("network.gossip=reference", ""), Ok(table("network.gossip = \"reference\"")));
        assert_eq!(set("a-b.c = [1, 2]", ""), Ok(table("a-b.c = [1, 2]")));
        let faults = "[[fault]]\nrounds = 1\n[[fault]]\nrounds = 2\n";
        assert_eq!(set("fault[1].rounds={ from = 3, to = 4 }", faults).unwrap()["fault"][1]["rounds"]["to"], 4.into());
    }

    #[test]
    fn a_new_entry_comes_after_those_of_the_list() {
        let faults = "[[fault]]\nrounds = 1\n";
        let added = set("fault[+].rounds=2", faults).expect("it fits");
        assert_eq!(added, table("[[fault]]\nrounds = 1\n[[fault]]\nrounds = 2\n"));
        assert_eq!(set("assert[+]={ finally = 'missed == 0' }", ""), Ok(table("[[assert]]\nfinally = 'missed == 0'")));
        assert_eq!(set("a[+]=3", "a = [1, 2]"), Ok(table("a = [1, 2, 3]")));
        assert_eq!(set("a[+][+]=3", "a = []").unwrap_err(), "'a[+][+]': 'a[+]' is no list, so it takes no new entry");
        assert_eq!(set("a[+]=1", "a = 3").unwrap_err(), "'a[+]': 'a' is no list, so it takes no new entry");
    }

    #[test]
    fn an_override_is_shown_as_it_can_be_given_again() {
        for (text, shown) in [
            ("a=reference", "a=reference"),
            ("a=\"reference\"", "a=reference"),
            ("a=7", "a=7"),
            ("a=\"7\"", "a=\"7\""),
            ("a=\"true\"", "a=\"true\""),
            ("a=\" padded \"", "a=\" padded \""),
            ("a=\"two\\nlines\"", "a=two\nlines"),
            ("a=2 # three", "a=2 # three"),
            ("a=\"2 # three\"", "a=2 # three"),
            ("a=2,", "a=2,"),
            ("a[1].b=[\"7\", 7]", "a[1].b=[\"7\", 7]"),
            ("a[+].b=7", "a[+].b=7"),
        ] {
            let first: Override = text.parse().expect("well formed");
            assert_eq!(first.to_string(), shown, "{text}");
            assert_eq!(first.to_string().parse::<Override>().as_ref(), Ok(&first), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        assert_eq!(
            set("rounds", "").unwrap_err(),
            "'rounds' sets nothing: give PATH=VALUE, such as network.latency.max_ms=200"
        );
        assert!(set("a..b=1", "").unwrap_err().starts_with("'a..b' is no path"));
        assert!(set("a[x]=1", "a = [1]").unwrap_err().starts_with("'a[x]' is no path"));
        assert_eq!(set("a.b=1", "a = 3").unwrap_err(), "'a.b': 'a' is no table, so it has no key 'b'");
        assert_eq!(set("a[2]=1", "a = [1]").unwrap_err(), "'a[2]': 'a' has 1 entries, so there is no [2]");
    }

    #[test]
    fn a_variation_splits_at_commas_outside_of_lists_tables_and_quotes() {
        let values = |text: &str| -> Vec<String> {
            text.parse::<Variation>().expect("well formed").values.iter().map(Override::value_text).collect()
        };
        assert_eq!(values("network.loss=0,0.01,0.05"), ["0", "0.01", "0.05"]);
        assert_eq!(values("x=[1, 2],[3]"), ["[1, 2]", "[3]"]);
        assert_eq!(values("x={ a = 1, b = 2 },\"p,q\""), ["{ a = 1, b = 2 }", "p,q"]);
        assert!("x=1,,2".parse::<Variation>().is_err());
    }
}
