//! Writing objects, whole, in parts, and on conditions.
//!
//! Where it is not known whether a request was done, for its answer was lost, it is tried again, and
//! the second try may be told that there is nothing left to do: that the object has changed, or that
//! the upload is over. Therefore each such write puts a random mark into the object's metadata, and in
//! case of doubt the mark tells whether the object is what we wrote.

use super::S3;
use super::failure::root_cause;
use crate::backoff::Backoff;
use crate::checksum::Stored;
use crate::error::ObjectError;
use crate::objects::{Condition, Version};
use crate::pieces::Reading;
use crate::random::random_name;
use crate::stats::count;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use std::path::Path;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// The mark's name in the metadata.
const MARK: &str = "write-id";
/// S3 takes no more parts.
const MOST_PARTS: u64 = 10_000;

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
        let mark = random_name();
        // Whether a try may have been done without our being told.
        let mut unsure = false;
        let mut backoff = Backoff::new(&self.options);
        loop {
            let request = self.put_request(key, bytes.clone()).metadata(MARK, &mark);
            let request = match condition {
                Condition::Absent => request.if_none_match("*"),
                Condition::Is(version) => request.if_match(version.as_str()),
            };
            // Tried again by us: the client would not say whether it did.
            let once = aws_sdk_s3::Config::builder().retry_config(RetryConfig::disabled());
            let error = match request.customize().config_override(once).send().await {
                Ok(answer) => {
                    let tag = answer
                        .e_tag
                        .ok_or_else(|| self.odd_answer(key, "it gives no ETag"));
                    return tag.map(Version::from);
                }
                Err(error) => error,
            };
            // Two writes at the same time; neither was done, as far as this answer goes.
            let conflict = error
                .raw_response()
                .is_some_and(|raw| raw.status().as_u16() == 409);
            let error = match self.failed(key)(error) {
                // There is nothing that could have the version.
                ObjectError::NotFound { store, key } => ObjectError::Changed { store, key },
                error => error,
            };
            if error.is_changed() && unsure {
                return match self.marked(key, &mark).await? {
                    Some(version) => Ok(version),
                    None => Err(error),
                };
            }
            if !error.is_transient() {
                return Err(error);
            }
            unsure |= !conflict;
            tracing::warn!(%error, "a conditional write failed for now");
            if !backoff.wait().await {
                return Err(error);
            }
            count(&self.counters.again, 1);
        }
    }

    /// The version of an object if it has our mark.
    async fn marked(&self, key: &str, mark: &str) -> Result<Option<Version>, ObjectError> {
        let request = self.client.head_object().bucket(&self.bucket);
        match request
            .key(self.full(key))
            .send()
            .await
            .map_err(self.failed(key))
        {
            Ok(head) => {
                let found = head.metadata().and_then(|metadata| metadata.get(MARK));
                let ours = found.is_some_and(|found| found == mark);
                Ok(head.e_tag.filter(|_| ours).map(Version::from))
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
        let mark = random_name();
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
            .ok_or_else(|| self.odd_answer(key, "it gives no upload"))?;
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
        if over && self.marked(&upload.key, &upload.mark).await?.is_some() {
            return Ok(stored);
        }
        Err(self.failed(&upload.key)(error))
    }

    /// Sends a file's parts, some at once.
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

fn joined<T>(
    part: Result<Result<T, ObjectError>, tokio::task::JoinError>,
) -> Result<T, ObjectError> {
    // Nobody cancels a part, so it panicked.
    part.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// The length of the parts of a file: as asked for, or more where that would make too many.
fn part_bytes(file_bytes: u64, asked: usize) -> usize {
    let mebibyte = 1 << 20;
    let least = file_bytes.div_ceil(MOST_PARTS).div_ceil(mebibyte) * mebibyte;
    asked.max(least as usize)
}

/// An upload in parts that was begun. If it is dropped before its end it is aborted: S3 keeps parts,
/// and has them paid for, until somebody says what to do with them.
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
            .expect("it is taken out only by what ends it")
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
                "parts of an upload that failed are left over"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_with_the_file_and_never_become_too_many() {
        assert_eq!(part_bytes(100 << 20, 16 << 20), 16 << 20);
        for file_bytes in [1u64 << 30, 160_000 << 20, (160_000 << 20) + 1, 5 << 40] {
            let part = part_bytes(file_bytes, 16 << 20) as u64;
            assert!(file_bytes.div_ceil(part) <= MOST_PARTS, "{file_bytes}");
        }
    }
}
