//! Downloads that resume after a connection breaks.

use super::S3;
use super::failure::{is_wrong_checksum, root_cause};
use crate::backoff::Backoff;
use crate::entry::Version;
use crate::error::ObjectError;
use crate::stats::count;
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use bytes::{Bytes, BytesMut};
use std::ops::Range;

/// Number of bytes that an attempt must receive to reset the attempt count.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Maximum number of bytes to allocate before data arrives. The length that the server announces may be wrong.
const MAX_RESERVED: u64 = 64 << 20;

struct Progress {
    bytes: BytesMut,
    /// Offset of the first byte.
    start: u64,
    /// Offset of the next byte in the object.
    at: u64,
    /// Offset after the last byte, or `None` while it is unknown.
    end: Option<u64>,
    version: Option<Version>,
}

impl Progress {
    /// Discards all received bytes.
    fn restart(&mut self) {
        self.bytes.clear();
        self.at = self.start;
    }
}

/// The reason why a download stopped early.
enum Stop {
    /// The connection broke. The download can be resumed.
    Cut(String),
    /// The download cannot be resumed.
    Failed(ObjectError),
}

impl From<ObjectError> for Stop {
    fn from(error: ObjectError) -> Stop {
        Stop::Failed(error)
    }
}

impl S3 {
    pub(crate) async fn get(&self, key: &str) -> Result<(Bytes, Version), ObjectError> {
        self.read(key, None).await
    }

    pub(crate) async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Bytes, ObjectError> {
        Ok(self.read(key, Some(range)).await?.0)
    }

    /// Downloads an object or a range, and resumes if the connection breaks. All bytes come from the same version of
    /// the object.
    async fn read(
        &self,
        key: &str,
        range: Option<Range<u64>>,
    ) -> Result<(Bytes, Version), ObjectError> {
        let mut progress = Progress {
            bytes: BytesMut::new(),
            start: range.as_ref().map_or(0, |range| range.start),
            at: range.as_ref().map_or(0, |range| range.start),
            end: range.map(|range| range.end),
            version: None,
        };
        let mut backoff = Backoff::new(&self.options);
        loop {
            let before = progress.at;
            let reason = match self.read_on(key, &mut progress).await {
                Ok(version) => return Ok((progress.bytes.freeze(), version)),
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Cut(reason)) => reason,
            };
            let at = progress.at;
            tracing::warn!(store = %self.store(), key, at, reason, "download was interrupted");
            if at.saturating_sub(before) >= PROGRESS_BYTES {
                backoff.reset();
            }
            if !backoff.wait().await {
                let reason = format!("reading stopped at byte {at}: {reason}");
                return Err(self.unavailable(key, reason));
            }
            count(&self.counters.again, 1);
        }
    }

    /// Requests the missing bytes and reads until the end of the body or a failure.
    async fn read_on(&self, key: &str, progress: &mut Progress) -> Result<Version, Stop> {
        let answer = self.request_rest(key, progress).await?;
        let version = match answer.e_tag() {
            Some(tag) => Version::from(tag.to_owned()),
            None => return Err(self.invalid_answer(key, "no ETag").into()),
        };
        progress.version = Some(version.clone());
        let end = self.end_of(key, progress, &answer)?;
        progress.end = Some(end);
        let reserved = (end - progress.at).min(MAX_RESERVED);
        progress.bytes.reserve(reserved as usize);
        let mut body = answer.body;
        loop {
            match tokio::time::timeout(self.options.timeout, body.next()).await {
                Err(_) => {
                    let silent = self.options.timeout;
                    return Err(Stop::Cut(format!("no byte arrived for {silent:?}")));
                }
                Ok(Some(Ok(piece))) => {
                    let bytes = piece.len() as u64;
                    if bytes > end - progress.at {
                        return Err(self.invalid_answer(key, "the body is too long").into());
                    }
                    progress.at += bytes;
                    progress.bytes.extend_from_slice(&piece);
                }
                Ok(Some(Err(error))) if is_wrong_checksum(&error) => {
                    return Err(Stop::Failed(ObjectError::Damaged {
                        store: self.store(),
                        key: key.to_owned(),
                        reason: root_cause(&error),
                    }));
                }
                Ok(Some(Err(error))) => {
                    if progress.at == end {
                        // The checksum was not verified, so all bytes are requested again.
                        progress.restart();
                    }
                    return Err(Stop::Cut(root_cause(&error)));
                }
                Ok(None) if progress.at == end => return Ok(version),
                Ok(None) => return Err(Stop::Cut("the body ended early".to_owned())),
            }
        }
    }

    /// Requests the missing bytes. A resumed download requires the version of the first response.
    async fn request_rest(&self, key: &str, progress: &Progress) -> Result<GetObjectOutput, Stop> {
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
            ObjectError::Changed { .. } => self.unavailable(
                key,
                "the object was replaced while it was being read".to_owned(),
            ),
            error => error,
        }))
    }

    /// Checks the headers of a response, and returns the offset in the object after the response's last byte.
    fn end_of(
        &self,
        key: &str,
        progress: &Progress,
        answer: &GetObjectOutput,
    ) -> Result<u64, ObjectError> {
        let length = answer
            .content_length()
            .and_then(|length| u64::try_from(length).ok());
        let length = length.ok_or_else(|| self.invalid_answer(key, "no length"))?;
        if progress.at > 0 || progress.end.is_some() {
            let begins = format!("bytes {}-", progress.at);
            let range = answer.content_range().unwrap_or_default();
            if !range.starts_with(&begins) {
                return Err(self.invalid_answer(key, "the range differs from the requested one"));
            }
        }
        let end = progress.at.saturating_add(length);
        match progress.end {
            Some(most) if end > most => Err(self.invalid_answer(key, "the body is too long")),
            _ => Ok(end),
        }
    }
}
