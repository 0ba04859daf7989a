//! The terminal: taking it over, drawing on it, listening to its keys, and giving it back.

use super::film::Film;
use super::player::Player;
use super::screen::{self, Ink, Line};
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyEventKind};
use crossterm::style::{Color, Print, ResetColor, SetForegroundColor};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};
use hatebeam_game::Piece;
use std::io::{self, BufWriter, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time from one picture to the next.
const TICK: Duration = Duration::from_millis(33);
/// Time from one look at the signals to the next while nothing moves by itself.
const NAP: Duration = Duration::from_millis(250);

/// Plays a film until somebody quits, or a signal asks for it.
pub(crate) fn watch(film: &Film) -> io::Result<()> {
    let stop = stop_flag()?;
    let _taken = TakenTerminal::take()?;
    let mut player = Player::new(film);
    let mut out = BufWriter::new(io::stdout().lock());
    while !stop.load(Ordering::Relaxed) {
        let (was_running, start) = (player.is_running(), Instant::now());
        draw(&mut out, film, &player)?;
        if event::poll(if was_running { TICK } else { NAP })? && !press_pending(&mut player)? {
            return Ok(());
        }
        if was_running {
            player.advance(start.elapsed());
        }
    }
    Ok(())
}

/// Gives the player all keys that are waiting. `false` if one of them is to quit. What else may have
/// happened, as a change of the terminal's size, is seen at the next drawing.
fn press_pending(player: &mut Player<'_>) -> io::Result<bool> {
    loop {
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && !player.press(key)
        {
            return Ok(false);
        }
        if !event::poll(Duration::ZERO)? {
            return Ok(true);
        }
    }
}

/// A flag that signals raise instead of ending the process, which would leave the terminal as it is.
#[cfg(unix)]
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

#[cfg(not(unix))]
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    Ok(Arc::default())
}

fn draw(out: &mut impl Write, film: &Film, player: &Player<'_>) -> io::Result<()> {
    let frame = film.frame(player.moment());
    let (columns, rows) = screen::size(&frame);
    let (width, height) = size()?;
    let lines = if usize::from(width) < columns || usize::from(height) < rows {
        let text = format!("{width}x{height} is too small: make it {columns}x{rows} (q quits)");
        let text = text.chars().take(usize::from(width)).collect();
        vec![vec![screen::Span {
            text,
            ink: Ink::Plain,
        }]]
    } else {
        screen::lines(&frame, &player.status())
    };
    for (row, line) in lines.iter().enumerate() {
        queue!(out, MoveTo(0, row as u16))?;
        draw_line(out, line)?;
        queue!(out, ResetColor, Clear(ClearType::UntilNewLine))?;
    }
    if lines.len() < usize::from(height) {
        queue!(
            out,
            MoveTo(0, lines.len() as u16),
            Clear(ClearType::FromCursorDown)
        )?;
    }
    out.flush()
}

/// Colours are left out where NO_COLOR asks for it; crossterm sees to that.
fn draw_line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    for span in line {
        queue!(out, SetForegroundColor(color(span.ink)), Print(&span.text))?;
    }
    Ok(())
}

const fn color(ink: Ink) -> Color {
    match ink {
        Ink::Plain => Color::Reset,
        Ink::Faint => Color::DarkGrey,
        Ink::Locked => Color::Grey,
        Ink::Falling(Piece::S) => Color::Green,
        Ink::Falling(Piece::Z) => Color::Red,
        Ink::Falling(Piece::O) => Color::Yellow,
        Ink::Falling(Piece::I) => Color::Cyan,
        Ink::Falling(Piece::L) => Color::DarkYellow,
        Ink::Falling(Piece::J) => Color::Blue,
        Ink::Falling(Piece::T) => Color::Magenta,
    }
}

/// The terminal while it is ours. It is given back when this is dropped, and before a panic speaks.
struct TakenTerminal;

impl TakenTerminal {
    fn take() -> io::Result<TakenTerminal> {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            give_back();
            previous(info);
        }));
        enable_raw_mode()?;
        let taken = TakenTerminal;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(taken)
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        // A panic has given it back already, and what it says must not be wiped away.
        if !std::thread::panicking() {
            give_back();
        }
    }
}

/// Done as far as it can be: on the way out there is nobody to tell that it failed.
fn give_back() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
