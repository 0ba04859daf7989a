//! A client for a store in memory. The client retries transient failures, and a plan can inject faults.

use super::Memory;
use super::contents::Contents;
use crate::backoff::Backoff;
use crate::checksum::Stored;
use crate::conditional::{self, ConditionalWrite, Rejection};
use crate::entry::{Condition, Entry, Version};
use crate::error::ObjectError;
use crate::faults::{After, Before, Call, FaultPlan, Operation};
use crate::options::Options;
use crate::stats::{Counters, count};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Client {
    memory: Memory,
    plan: Option<Arc<dyn FaultPlan>>,
    options: Options,
    counters: Arc<Counters>,
}

impl Client {
    pub(crate) fn new(
        memory: Memory,
        plan: Option<Arc<dyn FaultPlan>>,
        options: Options,
        counters: Arc<Counters>,
    ) -> Client {
        Client {
            memory,
            plan,
            options,
            counters,
        }
    }

    /// Attempts an operation until it succeeds or fails permanently, or no attempts are left.
    async fn call<T>(
        &self,
        operation: Operation,
        key: &str,
        bytes: u64,
        apply: impl FnOnce(&mut Contents) -> Result<T, ObjectError> + Clone + Send + 'static,
    ) -> Result<T, ObjectError> {
        let mut backoff = Backoff::new(&self.options);
        loop {
            let call = Call {
                operation,
                key,
                bytes,
                attempt: backoff.attempt(),
            };
            let error = match self.attempt(&call, apply.clone()).await {
                Err(error) if error.is_transient() => error,
                result => return result,
            };
            if !backoff.wait().await {
                return Err(error);
            }
            count(&self.counters.again, 1);
        }
    }

    async fn attempt<T>(
        &self,
        call: &Call<'_>,
        apply: impl FnOnce(&mut Contents) -> Result<T, ObjectError> + Send + 'static,
    ) -> Result<T, ObjectError> {
        count(&self.counters.operations, 1);
        count(&self.counters.requests, 1);
        match call.operation {
            Operation::Delete => count(&self.counters.delete_requests, 1),
            Operation::Get | Operation::Head => count(&self.counters.read_requests, 1),
            Operation::Put | Operation::PutIf | Operation::List => {}
        }
        let Some(plan) = &self.plan else {
            return self.memory.with(apply);
        };
        let timeout = self.options.timeout;
        tokio::time::timeout(timeout, self.attempt_with_faults(&**plan, call, apply))
            .await
            .unwrap_or_else(|_| Err(call.unavailable("no response in time")))
    }

    async fn attempt_with_faults<T>(
        &self,
        plan: &dyn FaultPlan,
        call: &Call<'_>,
        apply: impl FnOnce(&mut Contents) -> Result<T, ObjectError> + Send + 'static,
    ) -> Result<T, ObjectError> {
        let is_write = call.operation.is_write();
        let result = match plan.before(call).await {
            Before::Fail(error) => return Err(error),
            Before::Late(delay) => {
                if is_write {
                    // The result is discarded, because the attempt ends with a timeout.
                    self.memory
                        .apply_late(delay, |contents| drop(apply(contents)));
                }
                // The timeout in `attempt` ends this wait.
                return std::future::pending().await;
            }
            Before::Stale(changes) if !is_write => apply(&mut self.memory.before_changes(changes)),
            Before::Unconditional => self
                .memory
                .with(|contents| contents.ignoring_conditions(apply)),
            Before::Stale(_) | Before::Proceed => self.memory.with(apply),
        };
        match plan.after(call, result.as_ref().map(|_| ())).await {
            After::Deliver => result,
            After::Fail(error) => Err(error),
        }
    }

    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), ObjectError> {
        let (length, to) = (bytes.len() as u64, key.to_owned());
        self.call(Operation::Put, key, length, move |contents| {
            contents.put(&to, &bytes);
            Ok(())
        })
        .await
    }

    pub(crate) async fn put_if(
        &self,
        key: &str,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Version, ObjectError> {
        let write = MarkedPut {
            client: self,
            key,
            bytes,
            condition,
        };
        conditional::put_if(&write, &self.options, &self.counters).await
    }

    /// Reads the file on the calling thread. With a separate thread, a simulation would depend on the operating
    /// system's scheduler.
    pub(crate) async fn put_file(&self, key: &str, path: &Path) -> Result<Stored, ObjectError> {
        let bytes = std::fs::read(path).map_err(ObjectError::io(path))?;
        let stored = Stored::of(&bytes);
        self.put(key, bytes.into()).await?;
        Ok(stored)
    }

    pub(crate) async fn get(&self, key: &str) -> Result<(Bytes, Version), ObjectError> {
        let from = key.to_owned();
        self.call(Operation::Get, key, 0, move |contents| contents.get(&from))
            .await
    }

    pub(crate) async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Bytes, ObjectError> {
        let from = key.to_owned();
        self.call(Operation::Get, key, 0, move |contents| {
            contents.get_range(&from, range)
        })
        .await
    }

    pub(crate) async fn size(&self, key: &str) -> Result<u64, ObjectError> {
        let of = key.to_owned();
        self.call(Operation::Head, key, 0, move |contents| contents.size(&of))
            .await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), ObjectError> {
        let at = key.to_owned();
        self.call(Operation::Delete, key, 0, move |contents| {
            contents.delete(&at);
            Ok(())
        })
        .await
    }

    pub(crate) async fn delete_prefix(&self, prefix: &str) -> Result<u64, ObjectError> {
        let entries = self.list(prefix).await?;
        for entry in &entries {
            self.delete(&entry.key).await?;
        }
        Ok(entries.len() as u64)
    }

    pub(crate) async fn delete_all(&self, keys: &[String]) -> Result<(), ObjectError> {
        for key in keys {
            self.delete(key).await?;
        }
        Ok(())
    }

    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ObjectError> {
        let below = prefix.to_owned();
        self.call(Operation::List, prefix, 0, move |contents| {
            Ok(contents.list(&below))
        })
        .await
    }

    pub(crate) async fn list_dirs(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        let below = prefix.to_owned();
        self.call(Operation::List, prefix, 0, move |contents| {
            Ok(contents.list_dirs(&below))
        })
        .await
    }
}

struct MarkedPut<'a> {
    client: &'a Client,
    key: &'a str,
    bytes: Bytes,
    condition: &'a Condition,
}

impl ConditionalWrite for MarkedPut<'_> {
    async fn attempt(&self, mark: &str, attempt: u32) -> Result<Version, Rejection> {
        let call = Call {
            operation: Operation::PutIf,
            key: self.key,
            bytes: self.bytes.len() as u64,
            attempt,
        };
        let (key, bytes) = (self.key.to_owned(), self.bytes.clone());
        let (condition, mark) = (self.condition.clone(), mark.to_owned());
        let apply = move |contents: &mut Contents| contents.put_if(&key, &bytes, &condition, &mark);
        let applied = self.client.attempt(&call, apply).await;
        applied.map_err(|error| Rejection {
            error,
            in_doubt: true,
        })
    }

    async fn version_with_mark(&self, mark: &str) -> Result<Option<Version>, ObjectError> {
        let (key, mark) = (self.key.to_owned(), mark.to_owned());
        let read = move |contents: &mut Contents| Ok(contents.version_with_mark(&key, &mark));
        self.client.call(Operation::Head, self.key, 0, read).await
    }
}
