//! The limit of open files: enough for all connections, and a reserve that clients cannot exhaust. Without the reserve, clients could end
//! a testnet that has a folder, because it could not open the next file of its log.

use crate::cli::output::aside;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside the connections. An idle testnet with a folder has 31 open; posts of webhooks, new segments and lists take more.
const OWN: u64 = 128;

/// The number of connections that each of `servers` servers may have. Raises the limit of this process as far as they need it and the
/// system allows it. If that does not suffice, returns fewer and reports it on standard error.
pub(crate) fn connections_that_fit(asked: u32, servers: u16) -> u32 {
    let wanted = u64::from(asked) * u64::from(servers) + OWN;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < wanted) {
        let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
        // Only the resulting limit counts.
        let _raised_or_not = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let fitting = fitting(allowed, asked, servers);
    if fitting < asked {
        aside(&format!(
            "dposlab: the system allows {allowed} open files, {wanted} are needed for --max-connections {asked}: {fitting} \
             connections are allowed"
        ));
    }
    fitting
}

/// The number of connections per server. At most half of the files are reserved, and one connection is always allowed.
fn fitting(allowed: u64, asked: u32, servers: u16) -> u32 {
    let left = allowed - OWN.min(allowed / 2);
    u32::try_from(left / u64::from(servers)).unwrap_or(u32::MAX).clamp(1, asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_testnet() {
        assert_eq!(fitting(u64::MAX, 1_000, 1), 1_000);
        assert_eq!(fitting(1_128, 1_000, 1), 1_000);
        assert_eq!(fitting(1_127, 1_000, 1), 999);
        assert_eq!(fitting(1_024, 1_000, 3), 298);
        assert_eq!(fitting(100, 1_000, 1), 50, "half of few files are kept");
        assert_eq!(fitting(20, 1_000, 50), 1);
    }
}
