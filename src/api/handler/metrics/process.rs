//! The resources that this process uses, read from `/proc`. Source: proc(5).

use std::fs;

/// The ticks per second in which the kernel reports times to programs (`USER_HZ`). The kernel's own timer may differ.
const TICKS: f64 = 100.0;

/// The resources that the process uses. A figure is `None` if the system does not report it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    /// Processor time of all its threads [s].
    pub cpu: Option<f64>,
    /// Memory [bytes].
    pub resident: Option<f64>,
    pub virtual_size: Option<f64>,
    pub threads: Option<f64>,
    pub open_files: Option<f64>,
}

impl Process {
    /// Reads the resources as they are now.
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let member = |name: &str| -> Option<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let kilobytes = |name| member(name).map(|kilobytes| kilobytes * 1_024.0);
        Self {
            cpu: cpu(&fs::read_to_string("/proc/self/stat").unwrap_or_default()),
            resident: kilobytes("VmRSS"),
            virtual_size: kilobytes("VmSize"),
            threads: member("Threads"),
            // One of them is the folder that is being read.
            open_files: fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1) as f64),
        }
    }
}

/// The processor time in `stat` [s]: members 14 and 15. Member 2 is a name in parentheses that may contain any
/// character.
fn cpu(stat: &str) -> Option<f64> {
    let (_, members) = stat.rsplit_once(')')?;
    let mut members = members.split_whitespace().skip(11);
    let mut ticks = || members.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 0 0 0 150 25 9 9 20 0 4 0 1 2 3";
        assert_eq!(cpu(stat), Some(1.75));
        assert_eq!(cpu("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_takes_something() {
        let now = Process::now();
        assert!(now.resident > Some(1e6) && now.virtual_size >= now.resident, "{now:?}");
        assert!(now.threads >= Some(1.0) && now.open_files >= Some(3.0) && now.cpu >= Some(0.0), "{now:?}");
    }
}
