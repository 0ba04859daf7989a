//! Objects in S3, or in a server that implements the S3 protocol.
//!
//! The AWS SDK signs and sends requests, and retries transient failures with increasing waits. This module adds two
//! features. It resumes a download after the connection breaks ([`download`]). It also detects that a conditional write
//! failed only because an earlier attempt succeeded ([`conditional`](crate::conditional)).

mod download;
mod failure;
mod upload;

use crate::entry::Entry;
use crate::error::ObjectError;
use crate::options::{Encryption, Options};
use crate::stats::{Counters, count};
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region, environment::EnvironmentVariableRegionProvider};
use aws_sdk_s3::config::interceptors::{
    BeforeDeserializationInterceptorContextRef, BeforeSerializationInterceptorContextRef,
    BeforeTransmitInterceptorContextRef,
};
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{
    ConfigBag, Intercept, RequestChecksumCalculation, RuntimeComponents, SharedHttpClient,
    StalledStreamProtectionConfig,
};
use aws_sdk_s3::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};
use aws_sdk_s3::types::{
    ChecksumAlgorithm, Delete, ObjectIdentifier, ServerSideEncryption, StorageClass,
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use std::error::Error;
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum number of objects deleted by one request.
const MAX_DELETED_AT_ONCE: usize = 1000;

/// A bucket, or a prefix in a bucket.
pub(crate) struct S3 {
    client: aws_sdk_s3::Client,
    bucket: String,
    /// Prefix of all keys. It is empty or ends with a slash.
    prefix: String,
    encryption: Option<ServerSideEncryption>,
    kms_key: Option<String>,
    storage_class: Option<StorageClass>,
    /// Checksum algorithm for the parts of multipart uploads, or `None` if the environment or the profile disables
    /// optional checksums. The request that begins an upload must name the algorithm.
    part_checksum: Option<ChecksumAlgorithm>,
    options: Options,
    counters: Arc<Counters>,
}

impl S3 {
    pub(crate) async fn open(
        bucket: String,
        prefix: String,
        options: &Options,
        counters: Arc<Counters>,
    ) -> Result<S3, ObjectError> {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(options.connect_timeout)
            .operation_attempt_timeout(options.timeout)
            .build();
        let retries = RetryConfig::standard()
            .with_max_attempts(options.max_attempts)
            .with_initial_backoff(options.first_wait);
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(http.clone())
            .timeout_config(timeouts)
            .retry_config(retries)
            // This protection is too strict for a busy machine. `Options::timeout` replaces it.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(region) = &options.region {
            loader = loader.region(Region::new(region.clone()));
        } else if options.endpoint.is_some() {
            loader = loader.region(region_without_machine(options));
        }
        if let Some(profile) = &options.profile {
            loader = loader.profile_name(profile);
        }
        if let Some(endpoint) = &options.endpoint {
            loader = loader.endpoint_url(endpoint);
        }
        if options.credentials_file.is_some() {
            loader = loader.credentials_provider(credentials(options, http));
        }
        let config = loader.load().await;
        if config.region().is_none() {
            return Err(ObjectError::Options {
                reason: "the region is unknown: configure one, or set AWS_REGION".to_owned(),
            });
        }
        let part_checksum = match config.request_checksum_calculation() {
            Some(RequestChecksumCalculation::WhenRequired) => None,
            _ => Some(ChecksumAlgorithm::Crc32),
        };
        let config = aws_sdk_s3::config::Builder::from(&config)
            .force_path_style(options.path_style)
            .interceptor(Observe(counters.clone()))
            .build();
        let (encryption, kms_key) = match &options.encryption {
            Encryption::Bucket => (None, None),
            Encryption::Aes256 => (Some(ServerSideEncryption::Aes256), None),
            Encryption::Kms { key_id } => (Some(ServerSideEncryption::AwsKms), key_id.clone()),
        };
        Ok(S3 {
            client: aws_sdk_s3::Client::from_conf(config),
            bucket,
            prefix,
            encryption,
            kms_key,
            storage_class: options.storage_class.as_deref().map(StorageClass::from),
            part_checksum,
            options: options.clone(),
            counters,
        })
    }

    fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Returns the prefix that all keys below `prefix` have in the bucket.
    fn full_prefix(&self, prefix: &str) -> String {
        match prefix {
            "" => self.prefix.clone(),
            _ => format!("{}{prefix}/", self.prefix),
        }
    }

    fn store(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// Returns a function that converts an error from the AWS SDK.
    fn failed<E>(&self, key: &str) -> impl FnOnce(SdkError<E>) -> ObjectError + use<E>
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let (store, key) = (self.store(), key.to_owned());
        move |error| failure::explain(store, key, &error)
    }

    fn unavailable(&self, key: &str, reason: String) -> ObjectError {
        ObjectError::Unavailable {
            store: self.store(),
            key: key.to_owned(),
            reason,
        }
    }

    /// Returns the error for a response that violates the protocol.
    fn invalid_answer(&self, key: &str, reason: &str) -> ObjectError {
        ObjectError::Refused {
            store: self.store(),
            key: key.to_owned(),
            reason: format!("the response violates the S3 protocol: {reason}"),
        }
    }

    pub(crate) async fn size(&self, key: &str) -> Result<u64, ObjectError> {
        let head = self
            .client
            .head_object()
            .bucket(&self.bucket)
            .key(self.full(key))
            .send()
            .await
            .map_err(self.failed(key))?;
        head.content_length()
            .and_then(|bytes| u64::try_from(bytes).ok())
            .ok_or_else(|| self.invalid_answer(key, "no length"))
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), ObjectError> {
        let deleted = self
            .client
            .delete_object()
            .bucket(&self.bucket)
            .key(self.full(key))
            .send()
            .await
            .map_err(self.failed(key));
        match deleted {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn delete_prefix(&self, prefix: &str) -> Result<u64, ObjectError> {
        let listed = self.list_full(prefix).await?;
        let keys: Vec<String> = listed.into_iter().map(|(key, _)| key).collect();
        self.delete_full(&keys, prefix).await?;
        Ok(keys.len() as u64)
    }

    pub(crate) async fn delete_all(&self, keys: &[String]) -> Result<(), ObjectError> {
        let first = keys.first().map_or("", String::as_str);
        let full: Vec<String> = keys.iter().map(|key| self.full(key)).collect();
        self.delete_full(&full, first).await
    }

    /// Deletes objects with these full keys. An error that concerns no single object names `what`.
    async fn delete_full(&self, keys: &[String], what: &str) -> Result<(), ObjectError> {
        for some in keys.chunks(MAX_DELETED_AT_ONCE) {
            let mut delete = Delete::builder().quiet(true);
            for key in some {
                let object = ObjectIdentifier::builder().key(key).build();
                delete =
                    delete.objects(object.expect("a key is set, which is the only required field"));
            }
            let answer = self
                .client
                .delete_objects()
                .bucket(&self.bucket)
                .delete(
                    delete
                        .build()
                        .expect("objects are set, which is the only required field"),
                )
                .send()
                .await
                .map_err(self.failed(what))?;
            // Some servers report objects that do not exist.
            let mut errors = answer.errors().iter();
            if let Some(error) = errors.find(|error| error.code() != Some("NoSuchKey")) {
                let key = error.key().unwrap_or(what);
                let code = error.code().unwrap_or_default();
                return Err(failure::of_code(
                    self.store(),
                    key.strip_prefix(&self.prefix).unwrap_or(key).to_owned(),
                    code,
                    format!("{code}: {}", error.message().unwrap_or("no reason given")),
                ));
            }
        }
        Ok(())
    }

    /// Returns the full key and the length of each object below a prefix.
    async fn list_full(&self, prefix: &str) -> Result<Vec<(String, u64)>, ObjectError> {
        let mut pages = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(self.full_prefix(prefix))
            .into_paginator()
            .send();
        let mut listed = Vec::new();
        while let Some(page) = pages.next().await {
            for object in page
                .map_err(self.failed(prefix))?
                .contents
                .unwrap_or_default()
            {
                if let Some(key) = object.key {
                    let bytes = object.size.and_then(|bytes| u64::try_from(bytes).ok());
                    listed.push((key, bytes.unwrap_or(0)));
                }
            }
        }
        Ok(listed)
    }

    pub(crate) async fn list(&self, prefix: &str) -> Result<Vec<Entry>, ObjectError> {
        let listed = self.list_full(prefix).await?;
        let mut entries: Vec<_> = listed
            .into_iter()
            .filter_map(|(full, bytes)| {
                // Skip objects with invalid keys. For example, web consoles represent folders by objects whose keys end
                // with a slash.
                let key = full.strip_prefix(&self.prefix)?.to_owned();
                crate::key::check_key(&key).ok()?;
                Some(Entry { key, bytes })
            })
            .collect();
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }

    pub(crate) async fn list_dirs(&self, prefix: &str) -> Result<Vec<String>, ObjectError> {
        let full = self.full_prefix(prefix);
        let mut pages = self
            .client
            .list_objects_v2()
            .bucket(&self.bucket)
            .prefix(&full)
            .delimiter("/")
            .into_paginator()
            .send();
        let mut names = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(self.failed(prefix))?;
            names.extend(page.common_prefixes().iter().filter_map(|common| {
                let name = common.prefix()?.strip_prefix(&full)?.strip_suffix('/')?;
                crate::key::check_key(name).ok()?;
                Some(name.to_owned())
            }));
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Returns the region sources for a server other than AWS. They exclude the machine's metadata service, which may not
/// respond outside AWS. Few servers check the region.
fn region_without_machine(options: &Options) -> RegionProviderChain {
    let mut profile = ProfileFileRegionProvider::builder();
    if let Some(name) = &options.profile {
        profile = profile.profile_name(name);
    }
    RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
        .or_else(profile.build())
        .or_else("us-east-1")
}

/// Returns a provider that loads credentials only from the configured file.
#[expect(
    deprecated,
    reason = "the new names are in a crate that would only be needed for these two types"
)]
fn credentials(options: &Options, http: SharedHttpClient) -> ProfileFileCredentialsProvider {
    use aws_config::profile::profile_file::{ProfileFileKind, ProfileFiles};
    let mut files = ProfileFiles::builder();
    if let Some(path) = &options.credentials_file {
        files = files.with_file(ProfileFileKind::Credentials, path);
    }
    let mut provider = ProfileFileCredentialsProvider::builder()
        .configure(&ProviderConfig::without_region().with_http_client(http))
        .profile_files(files.build());
    if let Some(profile) = &options.profile {
        provider = provider.profile_name(profile);
    }
    provider.build()
}

/// Returns whether a request deletes multiple objects (`POST /bucket?delete`).
fn is_multi_object_delete(method: &str, uri: &str) -> bool {
    method == "POST" && has_parameter(uri, "delete")
}

/// Returns whether a request reads an object or its metadata. A list (`GET /bucket?list-type=2`) costs as much as a write.
fn is_read(method: &str, uri: &str) -> bool {
    method == "HEAD" || method == "GET" && !has_parameter(uri, "list-type")
}

fn has_parameter(uri: &str, name: &str) -> bool {
    let query = uri.split_once('?').map_or("", |(_, query)| query);
    query
        .split('&')
        .any(|part| part.split('=').next() == Some(name))
}

/// An interceptor that counts requests and operations, and records how far the server's clock is ahead.
#[derive(Debug)]
struct Observe(Arc<Counters>);

impl Intercept for Observe {
    fn name(&self) -> &'static str {
        "Observe"
    }

    fn read_before_execution(
        &self,
        _: &BeforeSerializationInterceptorContextRef<'_>,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        count(&self.0.operations, 1);
        Ok(())
    }

    fn read_before_attempt(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        count(&self.0.requests, 1);
        let request = context.request();
        let (method, uri) = (request.method(), request.uri());
        if method == "DELETE" || is_multi_object_delete(method, uri) {
            count(&self.0.delete_requests, 1);
        } else if is_read(method, uri) {
            count(&self.0.read_requests, 1);
        }
        Ok(())
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "simulations never use S3, so this code may read the real clock"
    )]
    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let server = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        if let Some(server) = server {
            let ahead = server.secs() - DateTime::from(SystemTime::now()).secs();
            let mut kept = self.0.seconds_ahead.lock();
            if let Ok(kept) = &mut kept {
                **kept = Some(ahead);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_not_reads_although_both_use_get() {
        for (method, uri, expected) in [
            ("GET", "https://s3/bucket/key?x-id=GetObject", true),
            ("GET", "https://s3/bucket/list-type", true),
            ("HEAD", "https://s3/bucket/key", true),
            ("GET", "https://s3/bucket/?list-type=2&prefix=a", false),
            ("PUT", "https://s3/bucket/key?x-id=PutObject", false),
            ("POST", "https://s3/bucket/?delete", false),
        ] {
            assert_eq!(is_read(method, uri), expected, "{method} {uri}");
        }
    }
}
