//! A number of a run of which a mean can be computed: a share, or a figure of the table of runs.

use super::{
    columns::{FIGURES, Status, TIMES},
    rows::Row,
};
use std::str::FromStr;

/// A number of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub name: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A figure divided by another one.
    Part(&'static str, &'static str),
    Figure(&'static str),
    /// 1 if the run ended well, else 0. Runs that are censored or died have none.
    Ok,
}

/// All measures that lie between 0 and 1.
pub(crate) const SHARES: [Measure; 4] = [
    // The share of the slots that were missed.
    Measure { name: "missed.rate", kind: Kind::Part("missed_slots", "slots") },
    // The share of the slots at whose end not all nodes stood on one chain.
    Measure { name: "forked.rate", kind: Kind::Part("slots_forked", "slots") },
    // The share of the nodes that stood on one block, mean over the run.
    Measure { name: "agreement.mean", kind: Kind::Figure("agreement_mean") },
    Measure { name: "ok.rate", kind: Kind::Ok },
];

impl Measure {
    /// Returns the number of a run, or `None` if the run has none.
    pub fn of(self, row: &Row) -> Option<f64> {
        match self.kind {
            Kind::Part(some, of) => {
                let (some, of) = (figure(row, some)?, figure(row, of)?);
                (of > 0.0).then_some(some / of)
            }
            Kind::Figure(name) => figure(row, name),
            Kind::Ok => row.status.is_decided().then_some(f64::from(u8::from(row.status == Status::Ok))),
        }
    }
}

fn figure(row: &Row, name: &str) -> Option<f64> {
    let index = FIGURES.iter().position(|figure| figure.name == name).expect("it is a column");
    row.figures[index]
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A mean of times would leave out the longest, which are censored.
        let has_mean = |name: &str| !TIMES.contains(&name);
        let figures = || {
            FIGURES
                .iter()
                .filter(|figure| has_mean(figure.name))
                .map(|figure| Self { name: figure.name, kind: Kind::Figure(figure.name) })
        };
        let all = || SHARES.into_iter().chain(figures());
        all().find(|measure| measure.name == text).ok_or_else(|| {
            let names: Vec<&str> = all().map(|measure| measure.name).collect();
            format!("found '{text}', allowed are {}", names.join(", "))
        })
    }
}
