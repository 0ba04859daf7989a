//! A replay player for the terminal.

mod player;
mod screen;
mod terminal;
mod timeline;

pub use screen::picture;
pub use terminal::watch;
pub use timeline::{Frame, Timeline};
