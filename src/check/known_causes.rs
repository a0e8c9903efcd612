//! The list of known causes: a text file, one cause a line, each with the count of runs that it was recorded with.
//!
//! ```text
//! # Lines that begin with # are for people.
//! drawn with: networks as drawn; rules 'corrected'
//! a rollback ends at the common block: forked | 27 of 17337
//! ```
//!
//! A finding is known if the list has its line, its run shows the certificate of the cause, and the cause occurs no more often
//! than recorded. Only runs that show the certificate are counted. The test is Fisher's ([`rates`]). For a cause whose rate
//! has not changed, it gives a false alarm in at most a share [`ALARM`] of all searches.

use super::{Signature, assertions::names};
use crate::statistics::rates::{self, Count};
use std::collections::BTreeSet;

/// The chance of a false alarm, for each line.
pub const ALARM: f64 = 1e-4;

/// The beginning of the line that describes how the runs were drawn.
const DRAWN: &str = "drawn with: ";

/// A list of known causes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownCauses {
    lines: Vec<Line>,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    /// A comment or an empty line.
    Text(String),
    Drawn(String),
    Cause {
        signature: Signature,
        /// The recorded count of runs that showed it; `None` for a cause that is yet to be recorded.
        recorded: Option<Count>,
    },
}

/// The frequency of a cause compared with its record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// More frequent than recorded, and the probability of that for a cause whose rate has not changed.
    More(f64),
    /// Less frequent than recorded.
    Fewer,
    AsRecorded,
}

impl KnownCauses {
    /// Reads a list.
    ///
    /// # Errors
    /// A line names no invariant, or has no record: which line, what was found, what is allowed.
    pub fn read(text: &str) -> Result<Self, String> {
        let known = Self::read_to_record(text)?;
        let unrecorded = known.lines.iter().position(|line| matches!(line, Line::Cause { recorded: None, .. }));
        if let Some(index) = unrecorded {
            return Err(format!(
                "line {}: found no record, allowed is '{} | RUNS of RUNS', which --record-known writes",
                index + 1,
                text.lines().nth(index).unwrap_or_default().trim()
            ));
        }
        if known.has_causes() && known.drawn_with().is_none() {
            return Err(format!("found no line '{DRAWN}…', which --record-known writes"));
        }
        Ok(known)
    }

    /// Reads a list whose causes need no record yet.
    ///
    /// # Errors
    /// As [`KnownCauses::read`].
    pub fn read_to_record(text: &str) -> Result<Self, String> {
        let mut known = Self::default();
        let mut seen = BTreeSet::new();
        for (index, line) in text.lines().enumerate() {
            let line = read_line(line.trim()).map_err(|why| format!("line {}: {why}", index + 1))?;
            let key = match &line {
                Line::Text(_) => None,
                Line::Drawn(_) => Some(DRAWN.to_owned()),
                Line::Cause { signature, .. } => Some(signature.to_string()),
            };
            if let Some(again) = key.filter(|key| !seen.insert(key.clone())) {
                return Err(format!("line {}: found '{again}' again, allowed is once", index + 1));
            }
            known.lines.push(line);
        }
        Ok(known)
    }

    fn has_causes(&self) -> bool {
        self.causes().next().is_some()
    }

    /// The way in which the recorded runs were drawn.
    pub fn drawn_with(&self) -> Option<&str> {
        self.lines.iter().find_map(|line| match line {
            Line::Drawn(drawn) => Some(drawn.as_str()),
            _ => None,
        })
    }

    /// Checks that a search draws its runs as those of the record were drawn.
    ///
    /// # Errors
    /// It draws them otherwise.
    pub fn check_drawn(&self, drawn: &str) -> Result<(), String> {
        match self.drawn_with() {
            Some(recorded) if recorded != drawn => Err(format!(
                "found causes recorded with '{recorded}', allowed is '{drawn}', as this search draws: how often a cause comes \
                 depends on it; --record-known records a list anew"
            )),
            _ => Ok(()),
        }
    }

    /// The causes, with their records.
    pub fn causes(&self) -> impl Iterator<Item = (&Signature, Option<Count>)> {
        self.lines.iter().filter_map(|line| match line {
            Line::Cause { signature, recorded } => Some((signature, *recorded)),
            _ => None,
        })
    }

    /// Returns true if a finding has a cause of the list, and its certificate.
    pub fn has(&self, signature: &Signature) -> bool {
        self.causes().any(|(known, _)| known == signature)
    }

    /// The record of a cause.
    pub fn recorded(&self, signature: &Signature) -> Option<Count> {
        self.causes().find(|(known, _)| *known == signature)?.1
    }

    /// Compares the frequency of a listed cause with its record.
    pub fn rate(&self, signature: &Signature, found: Count) -> Rate {
        let Some(recorded) = self.recorded(signature) else { return Rate::AsRecorded };
        let (more, fewer) = (rates::chance_of_more(found, recorded), rates::chance_of_fewer(found, recorded));
        match (more < ALARM, fewer < ALARM) {
            (true, _) => Rate::More(more),
            (false, true) => Rate::Fewer,
            (false, false) => Rate::AsRecorded,
        }
    }

    /// Returns the text of the list with new counts. `drawn` describes how their runs were drawn.
    pub fn record(&self, drawn: &str, count: impl Fn(&Signature) -> Count) -> String {
        let mut text = String::new();
        let mut is_drawn_told = false;
        for line in &self.lines {
            if matches!(line, Line::Cause { .. }) && !is_drawn_told && self.drawn_with().is_none() {
                text += &format!("{DRAWN}{drawn}\n");
                is_drawn_told = true;
            }
            match line {
                Line::Text(line) => text += line,
                Line::Drawn(_) => text += &format!("{DRAWN}{drawn}"),
                Line::Cause { signature, .. } => {
                    let Count { so, of } = count(signature);
                    text += &format!("{signature} | {so} of {of}");
                }
            }
            text.push('\n');
        }
        text
    }
}

fn read_line(line: &str) -> Result<Line, String> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(Line::Text(line.to_owned()));
    }
    if let Some(drawn) = line.strip_prefix(DRAWN) {
        return Ok(Line::Drawn(drawn.trim().to_owned()));
    }
    let (named, record) = match line.split_once('|') {
        Some((named, record)) => (named.trim(), Some(record.trim())),
        None => (line, None),
    };
    let (invariant, cause) = named.split_once(": ").unwrap_or((named, ""));
    let signature = signature(invariant, cause)?;
    let recorded = record.map(read_record).transpose()?;
    Ok(Line::Cause { signature, recorded })
}

fn signature(invariant: &str, cause: &str) -> Result<Signature, String> {
    match names().find(|name| *name == invariant) {
        Some(invariant) => Ok(Signature { invariant, cause: cause.to_owned(), is_certified: true }),
        None => Err(format!(
            "found '{invariant}', allowed is an invariant, and its cause behind a colon: {}",
            names().collect::<Vec<_>>().join("; ")
        )),
    }
}

fn read_record(record: &str) -> Result<Count, String> {
    let numbers = record.split_once(" of ").and_then(|(so, of)| {
        let read = |number: &str| number.trim().parse::<u64>().ok();
        Some(Count { so: read(so)?, of: read(of)? })
    });
    let count = numbers.filter(|count| count.so <= count.of && (1..=MOST_RUNS).contains(&count.of));
    count.ok_or_else(|| format!("found record '{record}', allowed is how many of how many runs, such as 27 of 17337"))
}

/// The largest number of runs in a record.
const MOST_RUNS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const CORRECTED: &str = "networks as drawn; rules 'corrected'";
    const LIST: &str = "# Why.\n\ndrawn with: networks as drawn; rules 'corrected'\na rollback ends at the common block: forked | 27 of 17337\n";

    fn forked() -> Signature {
        Signature { invariant: "a rollback ends at the common block", cause: "forked".to_owned(), is_certified: true }
    }

    #[test]
    fn a_list_names_invariants_with_and_without_a_cause() {
        let known = KnownCauses::read(&format!("{LIST}supply is conserved | 1 of 2\n")).expect("a list");
        assert!(known.has(&forked()) && !known.has(&Signature { cause: "double-forging".to_owned(), ..forked() }));
        assert!(!known.has(&Signature { is_certified: false, ..forked() }), "a name proves nothing");
        assert!(known.has(&Signature { invariant: "supply is conserved", cause: String::new(), is_certified: true }));
        assert_eq!(known.drawn_with(), Some(CORRECTED));
        assert!(known.check_drawn(CORRECTED).is_ok());
        let why = known.check_drawn("networks as drawn; rules 'reference'").expect_err("other rules");
        assert!(why.contains("rules 'corrected'") && why.contains("rules 'reference'"), "{why}");
    }

    #[test]
    fn a_cause_may_come_as_often_as_recorded() {
        let known = KnownCauses::read(LIST).expect("a list");
        let rate = |so, of| known.rate(&forked(), Count { so, of });
        assert_eq!(rate(1, 400), Rate::AsRecorded);
        assert!(matches!(rate(170, 400), Rate::More(chance) if chance < ALARM));
        assert!(matches!(rate(5, 40), Rate::More(chance) if chance < ALARM), "few runs are enough");
        assert_eq!(rate(0, 30_000), Rate::Fewer);
        let never = KnownCauses::read(&LIST.replace("27 of", "0 of")).expect("a list");
        assert_eq!(never.rate(&forked(), Count { so: 1, of: 2_000 }), Rate::AsRecorded);
    }

    #[test]
    fn a_record_is_written_in_its_place() {
        let known =
            KnownCauses::read_to_record("# Why.\na rollback ends at the common block: forked\n").expect("a list");
        let text = known.record(CORRECTED, |_| Count { so: 27, of: 17_337 });
        assert_eq!(text, LIST.replace("\n\n", "\n"));
        let again = KnownCauses::read(&text)
            .expect("a list")
            .record("networks as drawn; rules 'reference'", |_| Count { so: 1, of: 2 });
        assert!(
            again.contains("drawn with: networks as drawn; rules 'reference'\n")
                && again.ends_with(": forked | 1 of 2\n"),
            "{again}"
        );
    }

    #[test]
    fn a_line_that_is_no_cause_says_what_is_allowed() {
        let common = "a rollback ends at the common block";
        for (line, found, allowed) in [
            ("the sky is green: at all | 1 of 2", "found 'the sky is green'", common),
            (&format!("{common}: forked"), "found no record", "forked | RUNS of RUNS"),
            (&format!("{common}: forked | 3 of 2"), "found record '3 of 2'", "27 of 17337"),
            (&format!("{common}: forked | often"), "found record 'often'", "27 of 17337"),
            (&format!("{common}: forked | 0 of 0"), "found record '0 of 0'", "27 of 17337"),
        ] {
            let why = KnownCauses::read(&format!("drawn with: {CORRECTED}\n{line}\n")).expect_err(line);
            assert!(why.starts_with("line 2: ") && why.contains(found) && why.contains(allowed), "{line}: {why}");
        }
        let twice = format!("{LIST}a rollback ends at the common block: forked | 1 of 2\n");
        assert!(KnownCauses::read(&twice).expect_err("twice").contains("again"));
        let nobody = "a rollback ends at the common block: forked | 1 of 2\n";
        assert!(KnownCauses::read(nobody).expect_err("drawn how").contains("drawn with"));
    }
}
