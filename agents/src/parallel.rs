//! Runs numbered games on several threads and returns the results in the order of the numbers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Plays the games 0 to `games − 1` on `threads` threads and returns their results in order. `player` creates a
/// player for each thread, and `play` plays the game with the given number. If the result of `play` depends only on
/// this number, the results do not depend on the number of threads.
pub fn play_numbered<P, R: Send>(
    games: usize,
    threads: usize,
    player: impl Fn() -> P + Sync,
    play: impl Fn(&mut P, usize) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..games).map(|_| None).collect::<Vec<Option<R>>>());
    let work = || {
        let mut player = player();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= games {
                return;
            }
            let result = play(&mut player, number);
            results
                .lock()
                .expect("lock is not poisoned: no thread panics while holding it")[number] =
                Some(result);
        }
    };
    // The calling thread also plays games, so one thread needs no spawning, which WebAssembly does not support.
    thread::scope(|scope| {
        for _ in 1..threads.min(games) {
            scope.spawn(work);
        }
        work();
    });
    let results = results
        .into_inner()
        .expect("lock is not poisoned: no thread panics while holding it");
    results
        .into_iter()
        .map(|result| result.expect("every game has been played"))
        .collect()
}
