//! The same work for each of many, on every processor.

use std::num::NonZero;
use std::thread;

/// Fewer for one thread are not worth it.
const MIN_SHARE: usize = 32;

/// What `work` makes of each, in their order.
pub fn map<T: Sync, R: Send>(each: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let at_once = thread::available_parallelism().map_or(1, NonZero::get);
    let share = each.len().div_ceil(at_once).max(MIN_SHARE);
    let do_share = |share: &[T]| share.iter().map(&work).collect::<Vec<R>>();
    if each.len() <= share {
        return do_share(each);
    }
    let do_share = &do_share;
    thread::scope(|scope| {
        let workers: Vec<_> = each
            .chunks(share)
            .map(|share| {
                let begun = thread::Builder::new().spawn_scoped(scope, move || do_share(share));
                (share, begun)
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|(share, begun)| match begun {
                Ok(worker) => worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // No more threads are allowed here.
                Err(_) => do_share(share),
            })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_list_whatever_its_length() {
        for length in [0, 1, MIN_SHARE, MIN_SHARE + 1, 1000] {
            let numbers: Vec<usize> = (0..length).collect();
            let doubled: Vec<usize> = numbers.iter().map(|n| n * 2).collect();
            assert_eq!(map(&numbers, |n| n * 2), doubled);
        }
    }
}
