//! Work on several threads. This is the only place in this crate that starts threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// Calls `work` on each of `items` with `jobs` threads. The threads take the items in order until
/// `stop` is set. Results arrive as they are ready, each with the position of its item. The threads
/// are not joined; they end with the process.
pub fn start<T, R>(
    jobs: usize,
    stop: &Arc<AtomicBool>,
    items: Vec<T>,
    work: impl Fn(&T) -> R + Send + Sync + 'static,
) -> mpsc::Receiver<(usize, R)>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
{
    let (sender, results) = mpsc::channel();
    let next = Arc::new(AtomicUsize::new(0));
    let shared = Arc::new((items, work));
    for _ in 0..jobs.clamp(1, shared.0.len().max(1)) {
        let (shared, next, stop, sender) = (Arc::clone(&shared), Arc::clone(&next), Arc::clone(stop), sender.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = shared.0.get(place) else { break };
                if sender.send((place, (shared.1)(item))).is_err() {
                    break;
                }
            }
        });
    }
    results
}
