//! The part of a sweep that a process plays: given outright, or by the variables of a batch system.
//!
//! | system | index | number of parts |
//! |---|---|---|
//! | Slurm's job arrays | `SLURM_ARRAY_TASK_ID` from `_MIN` (0 or 1) on, in steps of `_STEP` | `SLURM_ARRAY_TASK_COUNT` |
//! | Kubernetes' Indexed Jobs | `JOB_COMPLETION_INDEX`, from 0 on | `JOB_COMPLETIONS`, which the job's author sets |
//!
//! With `auto/N` there are N parts, whatever the system reports, and the index counts from 0. So some tasks of an array can be
//! submitted again, although Slurm then counts only those.

use crate::report::sweep::Shard;
use std::{env, str::FromStr};

const ID: &str = "SLURM_ARRAY_TASK_ID";
const COUNT: &str = "SLURM_ARRAY_TASK_COUNT";
const MIN: &str = "SLURM_ARRAY_TASK_MIN";
const MAX: &str = "SLURM_ARRAY_TASK_MAX";
const STEP: &str = "SLURM_ARRAY_TASK_STEP";
const INDEX: &str = "JOB_COMPLETION_INDEX";
const COMPLETIONS: &str = "JOB_COMPLETIONS";

/// A part of a sweep, from the option and the variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part(pub Shard);

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        found(text, &|name| env::var(name).ok().filter(|value| !value.is_empty())).map(Self)
    }
}

/// Parses the part from the option's text and the variables.
fn found(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Shard, String> {
    let of = match text.strip_prefix("auto") {
        None => return text.parse(),
        Some("") => None,
        Some(rest) => Some(
            rest.strip_prefix('/')
                .and_then(|of| of.parse::<u64>().ok())
                .ok_or_else(|| format!("'{text}' is no part: give I/N, auto or auto/N, such as auto/8"))?,
        ),
    };
    let number = |name: &str| {
        let number =
            |value: String| value.parse::<u64>().map_err(|_| format!("{name}: found '{value}', allowed is a number"));
        variable(name).map(number).transpose()
    };
    let needed = |name: &str| {
        number(name)?.ok_or_else(|| format!("auto: {name} is not set; auto/N says how many parts there are"))
    };
    let (index, of) = match (number(ID)?, number(INDEX)?) {
        (Some(index), _) | (None, Some(index)) if of.is_some() => (index, of.unwrap_or(index)),
        (Some(id), _) => of_array(id, needed(COUNT)?, number(MIN)?.unwrap_or(0), number(MAX)?, number(STEP)?)?,
        (None, Some(index)) => (index, needed(COMPLETIONS)?),
        (None, None) => return Err(format!("auto: neither {ID} nor {INDEX} is set")),
    };
    let shard = format!("{}/{of}", index.saturating_add(1));
    shard
        .parse()
        .map_err(|_| format!("auto: found index {index} of {of} parts, allowed are 0 to {}", of.saturating_sub(1)))
}

/// The index and number of parts of a whole array.
fn of_array(id: u64, count: u64, min: u64, max: Option<u64>, step: Option<u64>) -> Result<(u64, u64), String> {
    let step = step.unwrap_or(1).max(1);
    let is_whole = min <= 1 && max.is_none_or(|max| (max.saturating_sub(min)) / step + 1 == count);
    match is_whole && id >= min && (id - min).is_multiple_of(step) {
        true => Ok(((id - min) / step, count)),
        false => Err(format!(
            "auto: found {ID} {id} of an array of {count} from {min} to {}, allowed is a whole one from 0 or 1 on; auto/N \
             takes the tasks of an array numbered from 0 that are given again",
            max.map_or("?".to_owned(), |max| max.to_string())
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, variables: &[(&str, &str)]) -> Result<String, String> {
        let value = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        found(text, &value).map(String::from)
    }

    #[test]
    fn a_part_is_what_is_said_or_what_the_batch_system_says() {
        let array = |id, min, max, step, count| [(ID, id), (MIN, min), (MAX, max), (STEP, step), (COUNT, count)];
        assert_eq!(part("2/8", &array("0", "0", "3", "1", "4")), Ok("2/8".to_owned()));
        assert_eq!(part("auto", &array("0", "0", "3", "1", "4")), Ok("1/4".to_owned()));
        assert_eq!(part("auto", &array("4", "1", "4", "1", "4")), Ok("4/4".to_owned()));
        assert_eq!(part("auto", &array("8", "0", "12", "4", "4")), Ok("3/4".to_owned()));
        assert_eq!(part("auto", &[(INDEX, "2"), (COMPLETIONS, "3")]), Ok("3/3".to_owned()));
        assert_eq!(part("auto/5", &[(INDEX, "2")]), Ok("3/5".to_owned()));
        assert_eq!(part("auto/8", &array("7", "3", "7", "4", "2")), Ok("8/8".to_owned()));
    }

    #[test]
    fn what_says_no_part_is_refused() {
        let refused = |text, variables: &[(&str, &str)]| part(text, variables).expect_err("it is no part");
        assert!(refused("auto", &[]).contains("neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX"));
        assert!(refused("auto", &[(INDEX, "2")]).contains("JOB_COMPLETIONS is not set"));
        assert!(refused("auto", &[(ID, "x")]).contains("found 'x', allowed is a number"));
        assert!(refused("auto/8", &[(ID, "8")]).contains("found index 8 of 8 parts, allowed are 0 to 7"));
        assert!(refused("auto/x", &[]).contains("auto/N"));
        let again = [(ID, "3"), (MIN, "3"), (MAX, "7"), (STEP, "1"), (COUNT, "2")];
        assert!(refused("auto", &again).contains("allowed is a whole one"));
    }
}
