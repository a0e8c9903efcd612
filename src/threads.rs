//! Independent pieces of work on several threads. It knows nothing of runs.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Runs `work` for every index below `total` on `jobs` threads. Returns the results by index, or `None` if `stop` ended it early.
/// `progress` receives the number of finished pieces.
///
/// # Panics
/// A piece panics.
pub fn on_threads<T: Send>(
    total: usize,
    jobs: usize,
    stop: Option<&AtomicBool>,
    progress: impl Fn(usize) + Sync,
    work: impl Fn(usize) -> T + Sync,
) -> Option<Vec<T>> {
    let (next, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let done: Mutex<Vec<Option<T>>> = Mutex::new((0..total).map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, total.max(1)) {
            scope.spawn(|| {
                while !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= total {
                        break;
                    }
                    let one = work(index);
                    done.lock().expect("no thread panics while holding it")[index] = Some(one);
                    progress(over.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    done.into_inner().expect("no thread panics while holding it").into_iter().collect()
}
