//! The sessions of signed-in browsers.

use hatebeam_net::Access;
use rustls::crypto::ring;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Maximum number of sessions. A further sign-in ends the oldest session.
const MAX_SESSIONS: usize = 64;
/// Duration of a session.
pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Number of random bytes in a session's name. Names of this length cannot be guessed.
const RANDOM_BYTES: usize = 32;

/// The sessions, the oldest first. They are kept only in memory, so users must sign in again after a restart.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

struct Session {
    name: String,
    access: Access,
    started: Instant,
}

/// Hides the name, which grants the same access as the token.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session(..)")
    }
}

impl Sessions {
    /// Starts a session and returns its name, or `None` if the system cannot provide random numbers.
    pub(crate) fn start(&self, access: Access, now: Instant) -> Option<String> {
        let mut bytes = [0; RANDOM_BYTES];
        ring::default_provider()
            .secure_random
            .fill(&mut bytes)
            .ok()?;
        let mut name = String::with_capacity(2 * RANDOM_BYTES);
        for byte in bytes {
            // Writing to a `String` cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(Session {
            name: name.clone(),
            access,
            started: now,
        });
        Some(name)
    }

    /// Returns the access that the session with this name grants, or `None` if there is no such session. Removes
    /// expired sessions.
    pub(crate) fn access(&self, name: &str, now: Instant) -> Option<Access> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| now.duration_since(session.started) < SESSION_LIFETIME);
        let session = sessions.iter().find(|session| session.is(name))?;
        Some(session.access)
    }

    pub(crate) fn end(&self, name: &str) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !session.is(name));
    }
}

impl Session {
    /// Compares names in constant time, so that the duration does not reveal how many characters are correct.
    fn is(&self, name: &str) -> bool {
        self.name.as_bytes().ct_eq(name.as_bytes()).into()
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
