//! The limit of memory, in force while a command runs.

use super::output::aside;
use crate::files::in_words;
use rustix::process::{Resource, Signal, getpid, getrlimit, kill_process};
use std::{
    fs,
    path::Path,
    str::FromStr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// The folder of control groups.
const CGROUPS: &str = "/sys/fs/cgroup";
/// The time between two measurements.
const LOOKS: Duration = Duration::from_millis(50);
/// The number of measurements above the limit after which a command that has not stopped is ended.
const PATIENCE: u32 = 100;
/// The default limit, as a share of the memory that the system has available: two thirds.
const DEFAULT: (u64, u64) = (2, 3);
/// The multiple of the limit at which the process is ended at once. A stopping run still summarises what it has played, and that
/// summary as JSON takes twice its memory.
const MOST: u64 = 3;
/// The share of the limit up to which another chain may begin: three quarters.
const ROOM: (u64, u64) = (3, 4);

/// The limit of this process [bytes], once [`watch`] was called.
static LIMIT: OnceLock<u64> = OnceLock::new();
/// The limit was exceeded, and the command was asked to stop.
static EXCEEDED: AtomicBool = AtomicBool::new(false);
/// The least limit that can be set: a command takes some of it before it does anything.
const LEAST: u64 = 16 << 20;

/// A number of bytes, written with or without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(u64);

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
        match bytes {
            Some(bytes) if bytes >= LEAST => Ok(Self(bytes)),
            Some(_) => Err(format!("'{text}' is too little: allowed are {} or more", in_words(LEAST))),
            None => Err(format!("'{text}' is no number of bytes: give one such as 8GiB, 500MiB or 1000000000")),
        }
    }
}

/// Watches the memory of this process from now on. The default limit is two thirds of what the system has available now. Above the
/// limit the process prints a message and stops as at Ctrl-C. It is ended if stopping takes longer than five seconds, or if the
/// process takes three times the limit or all that the system has available.
pub(crate) fn watch(limit: Option<Bytes>) {
    let Some(limit) = limit.map(|Bytes(bytes)| bytes).or_else(|| Some(available()? / DEFAULT.1 * DEFAULT.0)) else {
        return;
    };
    if LIMIT.set(limit).is_ok() {
        let available = available().unwrap_or(u64::MAX);
        let most = limit.saturating_mul(MOST).min(available.max((limit / DEFAULT.0).saturating_mul(DEFAULT.1)));
        thread::spawn(move || end_above(limit, most));
    }
}

/// Returns true if this command was asked to stop because it took more memory than its limit.
pub(crate) fn is_exceeded() -> bool {
    EXCEEDED.load(Ordering::Relaxed)
}

/// Asks whether there is room for another network in this process.
///
/// # Errors
/// The process takes more than three quarters of its limit.
pub(crate) fn has_room() -> Result<(), String> {
    let (Some(limit), Some(taken)) = (LIMIT.get(), taken()) else { return Ok(()) };
    match taken > limit / ROOM.1 * ROOM.0 {
        true => Err(format!(
            "found {} of memory in use, allowed is three quarters of {} for another chain",
            in_words(taken),
            in_words(*limit)
        )),
        false => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "memory is looked at by the real clock, and no run sees it")]
fn end_above(limit: u64, most: u64) {
    let mut looks_above = 0;
    loop {
        thread::sleep(LOOKS);
        let Some(taken) = taken() else { return };
        if taken <= limit {
            continue;
        }
        let said = format!("{} of memory taken, {} are allowed (--max-memory)", in_words(taken), in_words(limit));
        if looks_above == 0 {
            aside(&format!("dposlab: {said}: stopping"));
            EXCEEDED.store(true, Ordering::Relaxed);
            let _ends_below = kill_process(getpid(), Signal::TERM);
        }
        looks_above += 1;
        if looks_above > PATIENCE || taken > most {
            aside(&format!("dposlab: {said}: ended"));
            std::process::exit(1);
        }
    }
}

/// Memory that this process has in use [bytes], resident; `None` where the system does not say.
fn taken() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
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

/// Reads it from the files of a control group: the limit minus the memory in use. Cached files, which can be read again, do not
/// count as used.
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
        assert_eq!(read("100000000"), Ok(100_000_000));
        assert_eq!((read("8GiB"), read("8g"), read("16 MiB")), (Ok(8 << 30), Ok(8 << 30), Ok(16 << 20)));
        for little in ["0", "5", "16000k"] {
            assert!(read(little).is_err_and(|why| why.contains("16 MiB or more")), "{:?}", read(little));
        }
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
