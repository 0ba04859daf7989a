//! The state of playback. Time and key presses are arguments, so this module needs no clock and no terminal.

use crate::timeline::Timeline;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// Available speeds, in replay keys per second.
const SPEEDS: [u32; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000];

/// Playback of a timeline.
#[derive(Debug)]
pub(crate) struct Player<'a> {
    timeline: &'a Timeline,
    /// Number of replay keys pressed so far.
    moment: usize,
    paused: bool,
    /// Index into [`SPEEDS`].
    speed: usize,
    /// Elapsed fraction, from 0 to 1, of the time between the last key and the next key.
    due: f64,
    /// The typed digits of the piece number to jump to, or `None` if the user is not typing a number.
    jump: Option<String>,
}

impl Player<'_> {
    pub(crate) fn new(timeline: &Timeline) -> Player<'_> {
        Player {
            timeline,
            moment: 0,
            paused: false,
            speed: 4,
            due: 0.0,
            jump: None,
        }
    }

    /// Returns the number of replay keys pressed so far.
    pub(crate) fn moment(&self) -> usize {
        self.moment
    }

    /// Returns whether playback advances with time.
    pub(crate) fn is_running(&self) -> bool {
        !self.paused && self.jump.is_none() && self.moment < self.timeline.end()
    }

    /// Returns a short description of the state of playback.
    pub(crate) fn status(&self) -> String {
        match &self.jump {
            Some(number) => format!("jump to piece {number}_"),
            None if self.moment == self.timeline.end() => "end".to_owned(),
            None if self.paused => "paused".to_owned(),
            None => match SPEEDS[self.speed] {
                1 => "1 key per second".to_owned(),
                keys => format!("{keys} keys per second"),
            },
        }
    }

    /// Advances playback by the elapsed time.
    pub(crate) fn advance(&mut self, elapsed: Duration) {
        if !self.is_running() {
            self.due = 0.0;
            return;
        }
        self.due += elapsed.as_secs_f64() * f64::from(SPEEDS[self.speed]);
        self.moment = (self.moment + self.due as usize).min(self.timeline.end());
        self.due = self.due.fract();
    }

    /// Handles a key press by the user. Returns `false` if the key quits the player.
    pub(crate) fn press(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Char('q') || control && key.code == KeyCode::Char('c') {
            return false;
        }
        match self.jump.take() {
            Some(number) => self.type_number(number, key.code),
            None if key.code == KeyCode::Esc => return false,
            None => self.steer(key.code),
        }
        true
    }

    fn steer(&mut self, key: KeyCode) {
        let well = self.timeline.well_at(self.moment);
        match key {
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Right | KeyCode::Char('n') => self.stop_at(self.timeline.moment_of(well + 1)),
            KeyCode::Left | KeyCode::Char('p') => self.stop_at(self.timeline.moment_of(well - 1)),
            KeyCode::Char('.') => self.stop_at(self.moment + 1),
            KeyCode::Char(',') => self.stop_at(self.moment.saturating_sub(1)),
            KeyCode::Char('+' | '=') | KeyCode::Up => {
                self.speed = (self.speed + 1).min(SPEEDS.len() - 1);
            }
            KeyCode::Char('-') | KeyCode::Down => self.speed = self.speed.saturating_sub(1),
            KeyCode::Home => self.stop_at(0),
            KeyCode::End => self.stop_at(self.timeline.end()),
            KeyCode::Char('g') => self.jump = Some(String::new()),
            KeyCode::Char(digit) if digit.is_ascii_digit() => self.jump = Some(digit.to_string()),
            _ => {}
        }
    }

    fn stop_at(&mut self, moment: usize) {
        self.moment = moment.min(self.timeline.end());
        self.paused = true;
    }

    /// Handles a key press while the user types a number. Enter jumps to the piece. Any other key that does not edit
    /// the number cancels the jump.
    fn type_number(&mut self, mut number: String, key: KeyCode) {
        match key {
            KeyCode::Enter => {
                if let Ok(number) = number.parse() {
                    self.stop_at(self.timeline.moment_of(number));
                }
            }
            KeyCode::Backspace => {
                number.pop();
                self.jump = Some(number);
            }
            KeyCode::Char(digit) if digit.is_ascii_digit() => {
                // Nine digits suffice for the number of pieces in any game.
                if number.len() < 9 {
                    number.push(digit);
                }
                self.jump = Some(number);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::nine_drops;

    fn press(player: &mut Player<'_>, keys: &[KeyCode]) {
        for &code in keys {
            assert!(player.press(code.into()), "{code:?}");
        }
    }

    #[test]
    fn playback_advances_with_time_until_the_end() {
        let timeline = nine_drops();
        let mut player = Player::new(&timeline);
        for _ in 0..10 {
            player.advance(Duration::from_millis(25));
        }
        assert_eq!(
            (player.moment(), player.status().as_str()),
            (5, "20 keys per second")
        );
        player.advance(Duration::from_secs(1000));
        assert_eq!((player.moment(), player.status().as_str()), (90, "end"));
        assert!(!player.is_running());
    }

    #[test]
    fn paused_playback_does_not_advance() {
        let timeline = nine_drops();
        let mut player = Player::new(&timeline);
        press(&mut player, &[KeyCode::Char(' ')]);
        player.advance(Duration::from_secs(1));
        assert_eq!((player.moment(), player.status().as_str()), (0, "paused"));
        press(&mut player, &[KeyCode::Char(' ')]);
        player.advance(Duration::from_secs(1));
        assert_eq!(player.moment(), 20);
    }

    #[test]
    fn steps_move_by_piece_and_by_key() {
        let timeline = nine_drops();
        let mut player = Player::new(&timeline);
        let steps = [
            (KeyCode::Right, 18),
            (KeyCode::Char('n'), 34),
            (KeyCode::Char('.'), 35),
            (KeyCode::Left, 18),
            (KeyCode::Char(','), 17),
            (KeyCode::Char('p'), 0),
            (KeyCode::Left, 0),
            (KeyCode::End, 90),
            (KeyCode::Right, 90),
            (KeyCode::Left, 88),
            (KeyCode::Home, 0),
        ];
        for (key, moment) in steps {
            press(&mut player, &[key]);
            assert_eq!(player.moment(), moment, "{key:?}");
        }
    }

    #[test]
    fn jump_moves_to_the_typed_piece() {
        let timeline = nine_drops();
        let mut player = Player::new(&timeline);
        press(
            &mut player,
            &[KeyCode::Char('g'), KeyCode::Char('4'), KeyCode::Char('2')],
        );
        assert_eq!(player.status(), "jump to piece 42_");
        press(&mut player, &[KeyCode::Backspace, KeyCode::Enter]);
        assert_eq!(player.moment(), 48);
        press(&mut player, &[KeyCode::Char('3'), KeyCode::Esc]);
        assert_eq!((player.moment(), player.status().as_str()), (48, "paused"));
        press(&mut player, &[KeyCode::Char('g'), KeyCode::Enter]);
        assert_eq!(player.moment(), 48);
        press(&mut player, &[KeyCode::Char('9'); 20]);
        press(&mut player, &[KeyCode::Enter]);
        assert_eq!(player.moment(), 90);
    }

    #[test]
    fn speed_is_limited() {
        let timeline = nine_drops();
        let mut player = Player::new(&timeline);
        press(&mut player, &[KeyCode::Char('+'); 20]);
        assert_eq!(player.status(), "2000 keys per second");
        press(&mut player, &[KeyCode::Char('-'); 20]);
        assert_eq!(player.status(), "1 key per second");
    }

    #[test]
    fn q_escape_and_control_c_quit() {
        let timeline = nine_drops();
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        for key in [KeyCode::Char('q').into(), KeyCode::Esc.into(), control_c] {
            assert!(!Player::new(&timeline).press(key), "{key:?}");
        }
        assert!(Player::new(&timeline).press(KeyCode::Char('c').into()));
    }
}
