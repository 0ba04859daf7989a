//! Who has shown the token, and has a cookie for it.

use rustls::crypto::ring;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Browsers that are signed in at most: the one that was so longest gives way.
const SESSIONS: usize = 64;
/// How long a browser stays signed in.
pub(crate) const LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Of a session's name: nobody can guess it.
const RANDOM_BYTES: usize = 32;

/// The sessions, the oldest first. They are in memory alone: a new start has everybody sign in again.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

struct Session {
    name: String,
    begun: Instant,
}

/// Its name is as good as the token.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(..)")
    }
}

impl Sessions {
    /// Begins a session and gives its name; `None` if the system has no random numbers.
    pub(crate) fn begin(&self, now: Instant) -> Option<String> {
        let mut bytes = [0; RANDOM_BYTES];
        ring::default_provider()
            .secure_random
            .fill(&mut bytes)
            .ok()?;
        let mut name = String::with_capacity(2 * RANDOM_BYTES);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(Session {
            name: name.clone(),
            begun: now,
        });
        Some(name)
    }

    /// Whether there is such a session. Those that have lived too long are forgotten.
    pub(crate) fn has(&self, name: &str, now: Instant) -> bool {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| now.duration_since(session.begun) < LIFE);
        sessions.iter().any(|session| session.is(name))
    }

    /// Ends a session.
    pub(crate) fn end(&self, name: &str) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !session.is(name));
    }
}

impl Session {
    /// In a time that does not tell how much of the name is right.
    fn is(&self, name: &str) -> bool {
        self.name.as_bytes().ct_eq(name.as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_until_it_is_ended_or_too_old() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, other] = [(); 2].map(|()| sessions.begin(now).unwrap());
        assert_ne!(one, other);
        assert!(sessions.has(&one, now) && sessions.has(&other, now));
        assert!(!sessions.has("", now) && !sessions.has(&one[1..], now));
        sessions.end(&one);
        assert!(!sessions.has(&one, now) && sessions.has(&other, now));
        assert!(!sessions.has(&other, now + LIFE));
        assert!(!format!("{sessions:?}").contains(&other));
    }

    #[test]
    fn the_oldest_session_gives_way() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let names: Vec<_> = (0..=SESSIONS)
            .map(|_| sessions.begin(now).unwrap())
            .collect();
        assert!(!sessions.has(&names[0], now));
        assert!(names[1..].iter().all(|name| sessions.has(name, now)));
    }
}
