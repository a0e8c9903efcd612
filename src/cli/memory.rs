//! The check that a run fits into the available memory, made before it begins.

use super::{Failure, output::aside};
use crate::{files, scenario::memory::Need};
use clap::Args;
use rustix::process::{Resource, getrlimit};
use std::{fs, path::Path, str::FromStr};

/// The need from which on the command warns before it begins.
const TOLD_FROM: u64 = 512 << 20;
/// A cgroup's file that says so has no limit.
const CGROUPS: &str = "/sys/fs/cgroup";

/// The memory that a run may need.
#[derive(Clone, Debug, Default, Args)]
pub struct Memory {
    /// Memory that the run may need, such as 8GiB; by default what the system has available.
    #[arg(long = "allow-memory", value_name = "BYTES")]
    allowed: Option<Bytes>,
}

/// A number of bytes, written with or without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let bits = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" | "b" => Some(0),
            "k" | "kib" => Some(10),
            "m" | "mib" => Some(20),
            "g" | "gib" => Some(30),
            "t" | "tib" => Some(40),
            _ => None,
        };
        let number = digits.trim_end().parse::<u64>().ok();
        let bytes = number.zip(bits).and_then(|(number, bits)| number.checked_mul(1 << bits));
        bytes
            .map(Self)
            .ok_or_else(|| format!("'{text}' is no number of bytes: give one such as 8GiB, 500MiB or 1000000000"))
    }
}

impl Memory {
    /// Tells what so many runs at a time will need, if that is much.
    ///
    /// # Errors
    /// They need more than is allowed, or than there is.
    pub fn check(&self, what: &Path, need: &Need, at_a_time: u64) -> Result<(), Failure> {
        self.fits(what, need, at_a_time).map_err(Failure::usage)
    }

    /// [`Memory::check`] for those who tell somebody else.
    ///
    /// # Errors
    /// As [`Memory::check`].
    pub fn fits(&self, what: &Path, need: &Need, at_a_time: u64) -> Result<(), String> {
        let needed = need.bytes().saturating_mul(at_a_time);
        let times = if at_a_time > 1 { format!("{at_a_time} times ") } else { String::new() };
        let (limit, is) = match self.allowed {
            Some(Bytes(bytes)) => (bytes, "allowed"),
            None => (available().unwrap_or(u64::MAX), "available"),
        };
        let told = format!("needs about {times}{need} of memory");
        if needed > limit {
            return Err(format!(
                "{}: {told}, {} are {is}; --allow-memory {}MiB lets it begin",
                what.display(),
                files::in_words(limit),
                needed.div_ceil(1 << 20)
            ));
        }
        if needed >= TOLD_FROM {
            aside(&format!("dposlab: {}: {told}", what.display()));
        }
        Ok(())
    }
}

/// Bytes that this process can still have: of the machine, of its control groups, and of its own limit. `None` where the
/// system does not say.
fn available() -> Option<u64> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| of_machine(&text));
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().filter_map(|line| line.strip_prefix("0::")).next().unwrap_or("/").to_owned();
    let of_groups = Path::new(&group).ancestors().filter_map(|path| {
        let folder = format!("{CGROUPS}{}", path.display());
        let file = |name: &str| read(&format!("{}/{name}", folder.trim_end_matches('/')));
        of_group(&file("memory.max")?, &file("memory.current")?, &file("memory.stat").unwrap_or_default())
    });
    let old = |name: &str| read(&format!("{CGROUPS}/memory/memory.{name}"));
    let of_old = old("limit_in_bytes").zip(old("usage_in_bytes"));
    let of_old = of_old.and_then(|(limit, used)| of_group(&limit, &used, &old("stat").unwrap_or_default()));
    let own = getrlimit(Resource::As).current;
    [machine, of_groups.min(), of_old, own].into_iter().flatten().min()
}

/// Reads the available memory from `/proc/meminfo`.
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// Reads it from the files of a control group: its limit without what it uses, but for files that can be read again.
fn of_group(limit: &str, used: &str, stat: &str) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let again = stat.lines().find_map(|line| number(line.strip_prefix("inactive_file ")?));
    let used = number(used)?.saturating_sub(again.unwrap_or(0));
    Some(number(limit)?.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        let read = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        assert_eq!(read("1000"), Ok(1_000));
        assert_eq!((read("8GiB"), read("8g"), read("2 MiB")), (Ok(8 << 30), Ok(8 << 30), Ok(2 << 20)));
        for wrong in ["", "GiB", "-1", "1.5GiB", "8GB", "99999999999TiB", "18446744073709551616", "é"] {
            assert!(read(wrong).is_err_and(|why| why.contains("such as 8GiB")), "{wrong}");
        }
    }

    #[test]
    fn the_least_limit_counts() {
        assert_eq!(of_machine("MemTotal:       8 kB\nMemAvailable:       4 kB\n"), Some(4_096));
        assert_eq!(of_machine("MemTotal:       8 kB\n"), None);
        assert_eq!(of_group("1000\n", "700\n", "anon 1\ninactive_file 200\n"), Some(500));
        assert_eq!(of_group("1000", "1700", ""), Some(0));
        assert_eq!(of_group("max\n", "700\n", ""), None);
        assert!(available().is_none_or(|bytes| bytes > 0));
    }
}
