//! `replay show` in a real terminal: one that `script` (of util-linux, part of every Debian) makes.

use super::support::{example, script};
use std::thread::sleep;
use std::time::Duration;

#[test]
fn keys_steer_the_film_and_the_terminal_is_given_back() {
    let Some(mut terminal) = script(&["replay", "show", "--file", &example()]) else {
        eprintln!("skipped: there is no `script` to make a terminal with");
        return;
    };
    // The film starts within a moment; keys that come earlier wait for it.
    for keys in [" ", "g390\r", "\u{1b}[C", "q"] {
        sleep(Duration::from_millis(200));
        terminal.press(keys);
    }
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    for expected in ["paused", "390 of 402: S", "391 of 402", "score   144"] {
        assert!(
            screen.contains(expected),
            "{expected:?} was not shown: {screen:?}"
        );
    }
    assert!(
        screen.contains("\u{1b}[?1049h"),
        "the film has a screen of its own"
    );
    assert!(
        screen.ends_with("\u{1b}[?1049l"),
        "and leaves it: {screen:?}"
    );
}
