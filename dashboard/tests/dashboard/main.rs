//! The dashboard over real sockets, in front of a coordinator that was made up; and in a real browser.

mod browser;
mod made_up;
mod server;
