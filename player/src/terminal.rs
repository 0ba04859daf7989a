//! Terminal setup, drawing, key presses, and restoring the terminal.

use crate::player::Player;
use crate::screen::{self, Ink, Line};
use crate::timeline::Timeline;
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

/// Interval between frames during playback.
const TICK: Duration = Duration::from_millis(33);
/// Interval between checks for signals while playback does not advance.
const NAP: Duration = Duration::from_millis(250);

/// Plays a timeline until the user quits or a signal arrives.
///
/// # Errors
/// Returns an error if the terminal cannot be read, written or configured.
pub fn watch(timeline: &Timeline) -> io::Result<()> {
    let stop = stop_flag()?;
    let _terminal = RawTerminal::enter()?;
    let mut player = Player::new(timeline);
    let mut out = BufWriter::new(io::stdout().lock());
    while !stop.load(Ordering::Relaxed) {
        let (was_running, start) = (player.is_running(), Instant::now());
        draw(&mut out, timeline, &player)?;
        if event::poll(if was_running { TICK } else { NAP })? && !press_pending(&mut player)? {
            return Ok(());
        }
        if was_running {
            player.advance(start.elapsed());
        }
    }
    Ok(())
}

/// Passes all pending key presses to the player. Returns `false` if a key press quits the player. Ignores all other
/// events. A resize event needs no handling, because the terminal's size is read for each frame.
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

/// Returns a flag that is set when SIGHUP, SIGINT or SIGTERM arrives. If these signals were not handled, they would
/// end the process before the terminal is restored.
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

fn draw(out: &mut impl Write, timeline: &Timeline, player: &Player<'_>) -> io::Result<()> {
    let frame = timeline.frame(player.moment());
    let (columns, rows) = screen::size(&frame);
    let (width, height) = size()?;
    let lines = if usize::from(width) < columns || usize::from(height) < rows {
        let text =
            format!("the terminal is {width}x{height}: enlarge it to {columns}x{rows} (q quits)");
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

/// Draws a line. crossterm omits colours if NO_COLOR is set.
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

/// The terminal in raw mode, showing its alternate screen. It is restored on drop, and before a panic message is printed.
struct RawTerminal;

impl RawTerminal {
    fn enter() -> io::Result<RawTerminal> {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            previous(info);
        }));
        enable_raw_mode()?;
        let terminal = RawTerminal;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(terminal)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // During a panic, the hook has already restored the terminal. Restoring it again would clear the panic message.
        if !std::thread::panicking() {
            restore();
        }
    }
}

/// Restores the terminal. Ignores errors, because neither a panic hook nor `drop` can return them.
fn restore() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}
