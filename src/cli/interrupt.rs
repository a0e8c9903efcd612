//! Ctrl-C, or SIGTERM, during work that ends in good order.

use super::Failure;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use std::sync::{Arc, atomic::AtomicBool};

/// Returns a flag that the first signal sets, so that the command stops and reports its results so far. A second signal ends the
/// process with exit code 130.
///
/// # Errors
/// The system takes no handler.
pub(super) fn stop_on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, stop.clone()).map_err(Failure::broken)?;
        flag::register(signal, stop.clone()).map_err(Failure::broken)?;
    }
    Ok(stop)
}
