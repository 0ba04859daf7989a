//! Reading objects, also when the connection is cut on the way.

use super::S3;
use super::failure::root_cause;
use crate::backoff::Backoff;
use crate::checksum::Stored;
use crate::error::ObjectError;
use crate::local::Arriving;
use crate::objects::Version;
use crate::pieces::Writing;
use crate::stats::count;
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::path::Path;

/// A body that got on by so much before it was cut again is worth as many tries as the first time.
const WORTH_BYTES: u64 = 1 << 20;

/// Memory set aside for a body whose length the server told; more is taken as it comes.
const MOST_AHEAD: u64 = 64 << 20;

/// Where the bytes go.
enum Sink {
    Memory(BytesMut),
    File(Writing),
}

impl Sink {
    /// Takes a piece; false if it can take no more.
    async fn push(&mut self, piece: Bytes) -> bool {
        match self {
            Sink::Memory(bytes) => {
                bytes.extend_from_slice(&piece);
                true
            }
            Sink::File(writing) => writing.push(piece).await,
        }
    }
}

/// How far a body has come.
struct Progress {
    /// The next byte.
    at: u64,
    /// The byte after the last one; none until it is known.
    end: Option<u64>,
    version: Option<Version>,
}

/// Why some of a body did not come.
enum Stop {
    /// It was cut, and one may go on with it.
    Cut(String),
    /// Where the bytes go no more can be taken; what is there knows why.
    Full,
    /// Nothing helps.
    Failed(ObjectError),
}

impl From<ObjectError> for Stop {
    fn from(error: ObjectError) -> Stop {
        Stop::Failed(error)
    }
}

impl S3 {
    pub(crate) async fn get(&self, key: &str) -> Result<(Bytes, Version), ObjectError> {
        self.get_bytes(key, None).await
    }

    pub(crate) async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Bytes, ObjectError> {
        Ok(self.get_bytes(key, Some(range)).await?.0)
    }

    async fn get_bytes(
        &self,
        key: &str,
        range: Option<Range<u64>>,
    ) -> Result<(Bytes, Version), ObjectError> {
        let mut sink = Sink::Memory(BytesMut::new());
        let version = self.read(key, range, &mut sink).await?;
        match sink {
            Sink::Memory(bytes) => Ok((bytes.freeze(), version)),
            Sink::File(_) => unreachable!("memory was given"),
        }
    }

    /// Reads an object into a file that is not yet in its place.
    pub(crate) async fn get_to(
        &self,
        key: &str,
        path: &Path,
    ) -> Result<(Arriving, Stored), ObjectError> {
        let mut sink = Sink::File(Writing::start(path).await?);
        let read = self.read(key, None, &mut sink).await;
        match sink {
            Sink::File(writing) => {
                // If the disk is full, that is why the reading stopped.
                let ended = writing.end().await?;
                read?;
                Ok(ended)
            }
            Sink::Memory(_) => unreachable!("a file was given"),
        }
    }

    /// Reads a body to its end, and goes on with it where it was cut. The bytes are of one version.
    async fn read(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        sink: &mut Sink,
    ) -> Result<Version, ObjectError> {
        let mut progress = Progress {
            at: range.as_ref().map_or(0, |range| range.start),
            end: range.map(|range| range.end),
            version: None,
        };
        let mut backoff = Backoff::new(&self.options);
        loop {
            let before = progress.at;
            let reason = match self.read_some(key, &mut progress, sink).await {
                Ok(version) => return Ok(version),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Full) => "it cannot be kept".to_owned(),
                Err(Stop::Cut(reason)) => {
                    tracing::warn!(store = %self.store(), key, at = progress.at, reason, "a body was cut");
                    if progress.at - before >= WORTH_BYTES {
                        backoff.reset();
                    }
                    if backoff.wait().await {
                        count(&self.counters.again, 1);
                        continue;
                    }
                    reason
                }
            };
            let at = progress.at;
            return Err(self.unavailable(key, format!("reading stopped at byte {at}: {reason}")));
        }
    }

    /// Reads on until the end or a failure.
    async fn read_some(
        &self,
        key: &str,
        progress: &mut Progress,
        sink: &mut Sink,
    ) -> Result<Version, Stop> {
        let answer = self.ask(key, progress).await?;
        let version = match answer.e_tag() {
            Some(tag) => Version::from(tag.to_owned()),
            None => return Err(self.odd_answer(key, "it gives no ETag").into()),
        };
        progress.version = Some(version.clone());
        let end = self.end_of(key, progress, &answer)?;
        progress.end = Some(end);
        if let Sink::Memory(bytes) = sink {
            bytes.reserve((end - progress.at).min(MOST_AHEAD) as usize);
        }
        let mut body = answer.body;
        loop {
            match tokio::time::timeout(self.options.timeout, body.next()).await {
                Err(_) => {
                    let silent = self.options.timeout;
                    return Err(Stop::Cut(format!("no byte came for {silent:?}")));
                }
                Ok(Some(Ok(piece))) => {
                    let bytes = piece.len() as u64;
                    if bytes > end - progress.at {
                        return Err(self.odd_answer(key, "its body is too long").into());
                    }
                    progress.at += bytes;
                    if !sink.push(piece).await {
                        return Err(Stop::Full);
                    }
                }
                // All bytes came, and then their checksum did not fit.
                Ok(Some(Err(error))) if progress.at == end => {
                    return Err(Stop::Failed(ObjectError::Damaged {
                        store: self.store(),
                        key: key.to_owned(),
                        reason: root_cause(&error),
                    }));
                }
                Ok(Some(Err(error))) => return Err(Stop::Cut(root_cause(&error))),
                Ok(None) if progress.at == end => return Ok(version),
                Ok(None) => return Err(Stop::Cut("the body ended early".to_owned())),
            }
        }
    }

    /// Asks for what is left of a body, of the version that was begun with.
    async fn ask(&self, key: &str, progress: &Progress) -> Result<GetObjectOutput, Stop> {
        let mut request = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(self.full(key));
        if progress.at > 0 || progress.end.is_some() {
            let last = progress.end.map(|end| (end - 1).to_string());
            let last = last.unwrap_or_default();
            request = request.range(format!("bytes={}-{last}", progress.at));
        }
        if let Some(version) = &progress.version {
            request = request.if_match(version.as_str());
        }
        let error = match request.send().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if error
            .raw_response()
            .is_some_and(|raw| raw.status().as_u16() == 416)
        {
            return Err(Stop::Failed(ObjectError::OutOfRange {
                store: self.store(),
                key: key.to_owned(),
                start: progress.at,
            }));
        }
        Err(Stop::Failed(match self.failed(key)(error) {
            ObjectError::Changed { .. } => {
                self.unavailable(key, "it was written anew while it was read".to_owned())
            }
            error => error,
        }))
    }

    /// The byte after the last one that an answer brings.
    fn end_of(
        &self,
        key: &str,
        progress: &Progress,
        answer: &GetObjectOutput,
    ) -> Result<u64, ObjectError> {
        let length = answer
            .content_length()
            .and_then(|length| u64::try_from(length).ok());
        let length = length.ok_or_else(|| self.odd_answer(key, "it gives no length"))?;
        if progress.at > 0 || progress.end.is_some() {
            let begins = format!("bytes {}-", progress.at);
            let range = answer.content_range().unwrap_or_default();
            if !range.starts_with(&begins) {
                return Err(self.odd_answer(key, "it gives another range than asked for"));
            }
        }
        let end = progress.at.saturating_add(length);
        match progress.end {
            Some(most) if end > most => Err(self.odd_answer(key, "its body is too long")),
            _ => Ok(end),
        }
    }
}
