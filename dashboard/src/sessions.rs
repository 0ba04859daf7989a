//! The sessions of signed-in browsers.

use hatebeam_net::{Access, Token};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of sessions. A further sign-in ends the oldest session.
const MAX_SESSIONS: usize = 64;
/// Duration of a session.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// The sessions, the oldest first. They are kept only in memory, so users must sign in again after a restart.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    /// The name, which is a token because it grants access. It cannot be guessed, and `Debug` hides it.
    name: Token,
    access: Access,
    started: Instant,
}

impl Sessions {
    /// Starts a session and returns its name, or `None` if the system cannot provide random numbers.
    pub(crate) fn start(&self, access: Access, now: Instant) -> Option<String> {
        let name = Token::random().ok()?;
        let text = name.reveal().to_owned();
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(Session {
            name,
            access,
            started: now,
        });
        Some(text)
    }

    /// Returns the access that the session with this name grants, or `None` if there is no such session. Removes
    /// expired sessions.
    pub(crate) fn access(&self, name: &str, now: Instant) -> Option<Access> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| now.duration_since(session.started) < SESSION_LIFETIME);
        let session = sessions
            .iter()
            .find(|session| session.name.is(name.as_bytes()))?;
        Some(session.access)
    }

    pub(crate) fn end(&self, name: &str) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !session.name.is(name.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_lasts_until_it_ends_or_expires() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, other] = [(); 2].map(|()| sessions.start(Access::Full, now).unwrap());
        assert_ne!(one, other);
        assert!(sessions.access(&one, now).is_some() && sessions.access(&other, now).is_some());
        assert!(sessions.access("", now).is_none() && sessions.access(&one[1..], now).is_none());
        sessions.end(&one);
        assert!(sessions.access(&one, now).is_none() && sessions.access(&other, now).is_some());
        assert!(sessions.access(&other, now + SESSION_LIFETIME).is_none());
        assert!(!format!("{sessions:?}").contains(&other));
    }

    #[test]
    fn sign_in_beyond_the_limit_ends_oldest_session() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let names: Vec<_> = (0..=MAX_SESSIONS)
            .map(|_| sessions.start(Access::Full, now).unwrap())
            .collect();
        assert!(sessions.access(&names[0], now).is_none());
        assert!(
            names[1..]
                .iter()
                .all(|name| sessions.access(name, now).is_some())
        );
    }
}
