//! Games on all threads. Each game depends on its number alone, so the number of threads changes no result.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Plays the games 0 to `games − 1` on `threads` threads and returns their results in order. `player` makes one
/// player for each thread; `play` plays the game of a number.
pub fn play_numbered<P, R: Send>(
    games: usize,
    threads: usize,
    player: impl Fn() -> P + Sync,
    play: impl Fn(&mut P, usize) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((0..games).map(|_| None).collect::<Vec<Option<R>>>());
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, games.max(1)) {
            scope.spawn(|| {
                let mut player = player();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= games {
                        return;
                    }
                    let result = play(&mut player, number);
                    results.lock().expect("no thread panics with the lock")[number] = Some(result);
                }
            });
        }
    });
    let results = results
        .into_inner()
        .expect("no thread panics with the lock");
    results
        .into_iter()
        .map(|result| result.expect("every game was played"))
        .collect()
}
