//! Finding out what a store can do.

use crate::error::ObjectError;
use crate::objects::{Condition, Objects};
use bytes::Bytes;

/// What a store can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Whether it keeps to [`Condition::Absent`].
    pub if_absent: bool,
    /// Whether it keeps to [`Condition::Is`].
    pub if_is: bool,
}

impl Probe {
    /// Whether writers can rely on [`Objects::put_if`]. There are servers that take conditions and
    /// then do not heed them.
    pub fn conditional(&self) -> bool {
        self.if_absent && self.if_is
    }
}

/// Writes an object, reads it, writes it again on conditions that hold and that do not.
pub(crate) async fn probe(objects: &Objects, prefix: &str) -> Result<Probe, ObjectError> {
    let name = format!("probe-{}", objects.random().name());
    let key = match prefix {
        "" => name,
        _ => format!("{prefix}/{name}"),
    };
    let result = write_and_read(objects, &key).await;
    let deleted = objects.delete(&key).await;
    let probe = result?;
    deleted?;
    match objects.get(&key).await {
        Err(error) if error.is_not_found() => Ok(probe),
        Err(error) => Err(error),
        Ok(_) => Err(damaged(
            objects,
            &key,
            "it is still there after it was deleted",
        )),
    }
}

async fn write_and_read(objects: &Objects, key: &str) -> Result<Probe, ObjectError> {
    let texts = ["first", "second", "third"].map(|text| Bytes::from(format!("{text} {key}\n")));
    let [first, second, third] = texts;
    let to_nothing = attempt(objects, key, &first, Condition::Absent).await?;
    if to_nothing != Outcome::Written {
        objects.put(key, first.clone()).await?;
    }
    let (found, old) = objects.get(key).await?;
    if found != first {
        return Err(damaged(
            objects,
            key,
            "what was written is not what is read",
        ));
    }
    let to_something = attempt(objects, key, &second, Condition::Absent).await?;
    objects.put(key, second.clone()).await?;
    let (found, new) = objects.get(key).await?;
    if found != second {
        return Err(damaged(
            objects,
            key,
            "what was written over it is not what is read",
        ));
    }
    let to_old = attempt(objects, key, &third, Condition::Is(old)).await?;
    let to_new = attempt(objects, key, &third, Condition::Is(new)).await?;
    Ok(Probe {
        if_absent: to_nothing == Outcome::Written && to_something == Outcome::Changed,
        if_is: to_old == Outcome::Changed && to_new == Outcome::Written,
    })
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Written,
    Changed,
    /// The server says that it knows no conditions.
    Refused,
}

async fn attempt(
    objects: &Objects,
    key: &str,
    bytes: &Bytes,
    condition: Condition,
) -> Result<Outcome, ObjectError> {
    match objects.put_if(key, bytes.clone(), &condition).await {
        Ok(_) => Ok(Outcome::Written),
        Err(ObjectError::Changed { .. }) => Ok(Outcome::Changed),
        Err(ObjectError::Refused { .. }) => Ok(Outcome::Refused),
        Err(error) => Err(error),
    }
}

fn damaged(objects: &Objects, key: &str, reason: &str) -> ObjectError {
    ObjectError::Damaged {
        store: objects.location().to_owned(),
        key: key.to_owned(),
        reason: reason.to_owned(),
    }
}
