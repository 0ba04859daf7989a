//! Tests of `hatebeam replay show` in a terminal.

use crate::support::{example, terminal};
use std::thread::sleep;
use std::time::Duration;

#[test]
fn keys_control_player_and_player_restores_terminal() {
    let Some(mut terminal) = terminal(&["replay", "show", "--file", &example()]) else {
        return;
    };
    // The terminal buffers keys until the program reads them.
    for keys in [" ", "g390\r", "\u{1b}[C", "q"] {
        sleep(Duration::from_millis(200));
        terminal.press(keys);
    }
    let (code, screen) = terminal.wait();
    assert_eq!(code, 0, "{screen}");
    for expected in ["paused", "390 of 402: S", "391 of 402", "score   144"] {
        assert!(screen.contains(expected), "no {expected:?}: {screen:?}");
    }
    assert!(
        screen.contains("\u{1b}[?1049h"),
        "the player does not use the alternate screen: {screen:?}"
    );
    assert!(
        screen.ends_with("\u{1b}[?1049l"),
        "the player does not leave the alternate screen: {screen:?}"
    );
}
