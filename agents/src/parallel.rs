//! Runs numbered games on several threads and returns the results in the order of the numbers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Plays the games 0 to `games − 1` on `threads` threads and returns their results in order. `player` creates a
/// player for each thread, and `play` plays the game with the given number. If the result of `play` depends only on
/// this number, the results do not depend on the number of threads.
pub(crate) fn play_numbered<P, R: Send>(
    games: usize,
    threads: usize,
    player: impl Fn() -> P + Sync,
    play: impl Fn(&mut P, usize) -> R + Sync,
) -> Vec<R> {
    play_while(games, threads, player, play, || true)
}

/// Plays games like [`play_numbered`], and calls `on_game` after each game. If it returns `false`, no other game begins.
/// Returns the results of the first games, up to the last one that has begun.
pub(crate) fn play_while<P, R: Send>(
    games: usize,
    threads: usize,
    player: impl Fn() -> P + Sync,
    play: impl Fn(&mut P, usize) -> R + Sync,
    on_game: impl Fn() -> bool + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let is_stopped = AtomicBool::new(false);
    let results = Mutex::new((0..games).map(|_| None).collect::<Vec<Option<R>>>());
    let work = || {
        let mut player = player();
        while !is_stopped.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= games {
                return;
            }
            let result = play(&mut player, number);
            results
                .lock()
                .expect("lock is not poisoned: no thread panics while holding it")[number] =
                Some(result);
            if !on_game() {
                is_stopped.store(true, Ordering::Relaxed);
            }
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
    // Games begin in the order of their numbers and are never abandoned, so the games without a result are the last ones.
    results.into_iter().map_while(|result| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_games_are_kept_when_playing_stops() {
        for threads in [1, 3] {
            let count = AtomicUsize::new(0);
            let on_game = || count.fetch_add(1, Ordering::Relaxed) < 9;
            let results = play_while(1000, threads, || (), |(), number| number, on_game);
            let most = 10 + threads - 1;
            assert!((10..=most).contains(&results.len()), "{}", results.len());
            assert!(results.iter().copied().eq(0..results.len()));
        }
    }
}
