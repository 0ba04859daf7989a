//! Simple, multipart and conditional uploads.
//!
//! If the response to a request is lost, a retry may fail because the first attempt succeeded: the object has
//! changed, or the multipart upload no longer exists. Conditional writes and multipart uploads therefore
//! store a random mark in the object's metadata. After such a failure, the writer compares the stored mark with its own
//! mark. If they are equal, its write succeeded.

use super::S3;
use super::failure::root_cause;
use crate::checksum::Stored;
use crate::conditional::{self, ConditionalWrite, Rejection};
use crate::entry::{Condition, Version};
use crate::error::ObjectError;
use crate::pieces::Reading;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use std::path::Path;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Name of the metadata entry that contains the mark.
const MARK: &str = "write-id";
/// Maximum number of parts per upload that S3 accepts.
const MAX_PARTS: u64 = 10_000;

impl S3 {
    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), ObjectError> {
        let sent = self.put_request(key, bytes).send().await;
        sent.map(|_| ()).map_err(self.failed(key))
    }

    fn put_request(&self, key: &str, bytes: Bytes) -> PutObjectFluentBuilder {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(self.full(key))
            .set_server_side_encryption(self.encryption.clone())
            .set_ssekms_key_id(self.kms_key.clone())
            .set_storage_class(self.storage_class.clone())
            .body(bytes.into())
    }

    pub(crate) async fn put_if(
        &self,
        key: &str,
        bytes: Bytes,
        condition: &Condition,
    ) -> Result<Version, ObjectError> {
        let write = MarkedPut {
            s3: self,
            key,
            bytes,
            condition,
        };
        conditional::put_if(&write, &self.options, &self.counters).await
    }

    /// Returns the version of an object if its mark equals `mark`.
    async fn version_with_mark(
        &self,
        key: &str,
        mark: &str,
    ) -> Result<Option<Version>, ObjectError> {
        let request = self.client.head_object().bucket(&self.bucket);
        let head = request.key(self.full(key)).send().await;
        match head.map_err(self.failed(key)) {
            Ok(head) => {
                let found = head.metadata().and_then(|metadata| metadata.get(MARK));
                let is_own = found.is_some_and(|found| found == mark);
                Ok(head.e_tag.filter(|_| is_own).map(Version::from))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn put_file(&self, key: &str, path: &Path) -> Result<Stored, ObjectError> {
        let reading = Reading::open(path).await?;
        let part_bytes = self.options.part_bytes;
        if reading.left() <= part_bytes as u64 {
            let (reading, bytes) = reading.piece(part_bytes).await?;
            self.put(key, bytes).await?;
            return Ok(reading.stored());
        }
        let upload = self.begin_upload(key).await?;
        match self.send_and_complete(&upload, reading).await {
            Ok(stored) => {
                upload.done();
                Ok(stored)
            }
            Err(error) => {
                upload.abort().await;
                Err(error)
            }
        }
    }

    async fn begin_upload(&self, key: &str) -> Result<Upload, ObjectError> {
        let mark = self.options.random.name();
        let begun = self
            .client
            .create_multipart_upload()
            .bucket(&self.bucket)
            .key(self.full(key))
            .metadata(MARK, &mark)
            .set_checksum_algorithm(self.part_checksum.clone())
            .set_server_side_encryption(self.encryption.clone())
            .set_ssekms_key_id(self.kms_key.clone())
            .set_storage_class(self.storage_class.clone())
            .send()
            .await
            .map_err(self.failed(key))?;
        let id = begun
            .upload_id
            .ok_or_else(|| self.invalid_answer(key, "no upload ID"))?;
        Ok(Upload(Some(Begun {
            client: self.client.clone(),
            bucket: self.bucket.clone(),
            full: self.full(key),
            key: key.to_owned(),
            id,
            mark,
        })))
    }

    async fn send_and_complete(
        &self,
        upload: &Upload,
        reading: Reading,
    ) -> Result<Stored, ObjectError> {
        let upload = upload.begun();
        let (parts, stored) = self.send_parts(upload, reading).await?;
        let parts = CompletedMultipartUpload::builder()
            .set_parts(Some(parts))
            .build();
        let completed = self
            .client
            .complete_multipart_upload()
            .bucket(&self.bucket)
            .key(&upload.full)
            .upload_id(&upload.id)
            .multipart_upload(parts)
            .send()
            .await;
        let Err(error) = completed else {
            return Ok(stored);
        };
        let over = error
            .as_service_error()
            .and_then(|error| error.meta().code())
            == Some("NoSuchUpload");
        if over
            && self
                .version_with_mark(&upload.key, &upload.mark)
                .await?
                .is_some()
        {
            return Ok(stored);
        }
        Err(self.failed(&upload.key)(error))
    }

    /// Uploads the parts of a file, several at a time.
    async fn send_parts(
        &self,
        upload: &Begun,
        mut reading: Reading,
    ) -> Result<(Vec<CompletedPart>, Stored), ObjectError> {
        let part_bytes = part_bytes(reading.left(), self.options.part_bytes);
        let mut under_way = JoinSet::new();
        let mut sent = Vec::new();
        for number in 1.. {
            let full = under_way.len() >= self.options.parallel_parts;
            if full || reading.left() == 0 {
                match under_way.join_next().await {
                    Some(part) => sent.push(joined(part)?),
                    None => break,
                }
            }
            if reading.left() == 0 {
                continue;
            }
            let (rest, bytes) = reading.piece(part_bytes).await?;
            reading = rest;
            let request = self
                .client
                .upload_part()
                .bucket(&self.bucket)
                .key(&upload.full)
                .upload_id(&upload.id)
                .part_number(number)
                .body(bytes.into());
            let failed = self.failed(&upload.key);
            under_way.spawn(async move {
                let answer = request.send().await.map_err(failed)?;
                Ok(CompletedPart::builder()
                    .part_number(number)
                    .set_e_tag(answer.e_tag)
                    .set_checksum_crc32(answer.checksum_crc32)
                    .build())
            });
        }
        sent.sort_unstable_by_key(|part: &CompletedPart| part.part_number);
        Ok((sent, reading.stored()))
    }
}

struct MarkedPut<'a> {
    s3: &'a S3,
    key: &'a str,
    bytes: Bytes,
    condition: &'a Condition,
}

impl ConditionalWrite for MarkedPut<'_> {
    async fn attempt(&self, mark: &str, _: u32) -> Result<Version, Rejection> {
        let (s3, key) = (self.s3, self.key);
        let request = s3.put_request(key, self.bytes.clone()).metadata(MARK, mark);
        let request = match self.condition {
            Condition::Absent => request.if_none_match("*"),
            Condition::Is(version) => request.if_match(version.as_str()),
        };
        // Retries by the AWS SDK would hide whether an earlier attempt may have been applied.
        let once = aws_sdk_s3::Config::builder().retry_config(RetryConfig::disabled());
        let error = match request.customize().config_override(once).send().await {
            Ok(answer) => {
                let tag = answer.e_tag.map(Version::from);
                return tag.ok_or_else(|| Rejection {
                    error: s3.invalid_answer(key, "no ETag"),
                    in_doubt: true,
                });
            }
            Err(error) => error,
        };
        // Status 409 means that the server did not apply this write because of a concurrent write.
        let conflict = error
            .raw_response()
            .is_some_and(|raw| raw.status().as_u16() == 409);
        let error = match s3.failed(key)(error) {
            // A missing object does not have the expected version.
            ObjectError::NotFound { store, key } => ObjectError::Changed { store, key },
            error => error,
        };
        Err(Rejection {
            error,
            in_doubt: !conflict,
        })
    }

    async fn version_with_mark(&self, mark: &str) -> Result<Option<Version>, ObjectError> {
        self.s3.version_with_mark(self.key, mark).await
    }
}

fn joined<T>(
    part: Result<Result<T, ObjectError>, tokio::task::JoinError>,
) -> Result<T, ObjectError> {
    // The task is never cancelled, so it must have panicked.
    part.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Returns the length of a file's parts: the configured length, or a greater length if the configured length would
/// result in too many parts.
fn part_bytes(file_bytes: u64, configured: usize) -> usize {
    let mebibyte = 1 << 20;
    let least = file_bytes.div_ceil(MAX_PARTS).div_ceil(mebibyte) * mebibyte;
    configured.max(least as usize)
}

/// A multipart upload. Dropping this value before the upload is complete aborts the upload, because S3 bills the stored
/// parts of an upload that is neither completed nor aborted.
struct Upload(Option<Begun>);

struct Begun {
    client: aws_sdk_s3::Client,
    bucket: String,
    full: String,
    key: String,
    id: String,
    mark: String,
}

impl Upload {
    fn begun(&self) -> &Begun {
        self.0
            .as_ref()
            .expect("the upload has not ended: ending it consumes this value")
    }

    fn done(mut self) {
        self.0 = None;
    }

    async fn abort(mut self) {
        if let Some(begun) = self.0.take() {
            begun.abort().await;
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let (Some(begun), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(begun.abort());
        }
    }
}

impl Begun {
    async fn abort(self) {
        let Begun {
            bucket, full, id, ..
        } = self;
        let request = self
            .client
            .abort_multipart_upload()
            .bucket(&bucket)
            .key(&full);
        if let Err(error) = request.upload_id(id).send().await {
            let reason = root_cause(&error);
            tracing::warn!(
                bucket,
                key = full,
                reason,
                "cannot abort upload: its parts remain in the bucket"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_length_grows_to_limit_the_number_of_parts() {
        assert_eq!(part_bytes(100 << 20, 16 << 20), 16 << 20);
        for file_bytes in [1u64 << 30, 160_000 << 20, (160_000 << 20) + 1, 5 << 40] {
            let part = part_bytes(file_bytes, 16 << 20) as u64;
            assert!(file_bytes.div_ceil(part) <= MAX_PARTS, "{file_bytes}");
        }
    }
}
