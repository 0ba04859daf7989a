//! Detection of stores that ignore the conditions of writes.

use crate::entry::Condition;
use crate::error::ObjectError;
use crate::objects::Objects;
use bytes::Bytes;

/// The conditions that a store honors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Whether the store honors [`Condition::Absent`].
    pub if_absent: bool,
    /// Whether the store honors [`Condition::Is`].
    pub if_is: bool,
}

impl Probe {
    /// Returns whether writers can rely on [`Objects::put_if`].
    pub fn conditional(&self) -> bool {
        self.if_absent && self.if_is
    }
}

/// Writes, reads and deletes an object. Some of the writes have conditions that do not hold.
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
            "the object still exists after its deletion",
        )),
    }
}

async fn write_and_read(objects: &Objects, key: &str) -> Result<Probe, ObjectError> {
    let texts = ["first", "second", "third"].map(|text| Bytes::from(format!("{text} {key}\n")));
    let [first, second, third] = texts;
    let absent_on_absent = attempt(objects, key, &first, Condition::Absent).await?;
    if absent_on_absent != Attempt::Written {
        objects.put(key, first.clone()).await?;
    }
    let (found, old) = objects.get(key).await?;
    if found != first {
        return Err(damaged(
            objects,
            key,
            "the bytes that were read differ from the bytes that were written",
        ));
    }
    let absent_on_present = attempt(objects, key, &second, Condition::Absent).await?;
    objects.put(key, second.clone()).await?;
    let (found, new) = objects.get(key).await?;
    if found != second {
        return Err(damaged(
            objects,
            key,
            "the bytes that were read after a second write differ from the bytes that were written",
        ));
    }
    let is_old = attempt(objects, key, &third, Condition::Is(old)).await?;
    let is_new = attempt(objects, key, &third, Condition::Is(new)).await?;
    Ok(Probe {
        if_absent: absent_on_absent == Attempt::Written && absent_on_present == Attempt::Changed,
        if_is: is_old == Attempt::Changed && is_new == Attempt::Written,
    })
}

#[derive(PartialEq, Eq)]
enum Attempt {
    Written,
    Changed,
    Refused,
}

async fn attempt(
    objects: &Objects,
    key: &str,
    bytes: &Bytes,
    condition: Condition,
) -> Result<Attempt, ObjectError> {
    match objects.put_if(key, bytes.clone(), &condition).await {
        Ok(_) => Ok(Attempt::Written),
        Err(ObjectError::Changed { .. }) => Ok(Attempt::Changed),
        Err(ObjectError::Refused { .. }) => Ok(Attempt::Refused),
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
