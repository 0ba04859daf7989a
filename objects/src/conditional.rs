//! Retries of conditional writes, which are applied only if a condition holds.
//!
//! If the response to an attempt is lost, the client cannot determine whether the write was applied. The next
//! attempt may then find the object changed by the first attempt. Every conditional write therefore stores a
//! random *mark* in the object's metadata. If the result is in doubt, the writer compares the stored mark with
//! its own mark. If they are equal, its write succeeded.

use crate::backoff::Backoff;
use crate::entry::Version;
use crate::error::ObjectError;
use crate::options::Options;
use crate::stats::{Counters, count};

/// A conditional write of one object to one server.
pub(crate) trait ConditionalWrite {
    /// Attempts the write, which stores `mark` in the object's metadata. `attempt` is the number of the attempt, counted
    /// from 1.
    async fn attempt(&self, mark: &str, attempt: u32) -> Result<Version, Rejection>;

    /// Returns the object's version if the stored mark equals `mark`.
    async fn version_with_mark(&self, mark: &str) -> Result<Option<Version>, ObjectError>;
}

/// A failed attempt at a conditional write.
pub(crate) struct Rejection {
    pub(crate) error: ObjectError,
    /// Whether the server may have applied the write despite the error. This field is ignored if the error is not
    /// transient.
    pub(crate) in_doubt: bool,
}

/// Repeats a conditional write until it succeeds or fails permanently, or no attempts are left.
pub(crate) async fn put_if<W: ConditionalWrite>(
    write: &W,
    options: &Options,
    counters: &Counters,
) -> Result<Version, ObjectError> {
    let mark = options.random.name();
    let mut in_doubt = false;
    let mut backoff = Backoff::new(options);
    loop {
        let rejection = match write.attempt(&mark, backoff.attempt()).await {
            Ok(version) => return Ok(version),
            Err(rejection) => rejection,
        };
        let error = rejection.error;
        if error.is_changed() && in_doubt {
            let own = write.version_with_mark(&mark).await?;
            return own.ok_or(error);
        }
        if !error.is_transient() {
            return Err(error);
        }
        in_doubt |= rejection.in_doubt;
        tracing::warn!(%error, attempt = backoff.attempt(), "conditional write failed");
        if !backoff.wait().await {
            return Err(error);
        }
        count(&counters.again, 1);
    }
}
