//! Ctrl-C, or SIGTERM, during work that ends in good order.

use super::Failure;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    flag,
};
use std::sync::{Arc, atomic::AtomicBool};

/// Set by the first one: what is done so far is kept and told. The second one ends the process, with exit code 130.
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
