//! Objects in S3, or in a server that speaks its protocol.
//!
//! Amazon's client signs, sends, and tries again what failed for the moment or was throttled, with
//! longer and longer waits. Two things it leaves to us. It gives out a body as it comes, and one that
//! is cut off is ours to go on with ([`download`]). And a conditional write that is tried again meets
//! what its first try may have written: here it is told from that of another writer by a mark in the
//! object's metadata ([`upload`]).

mod download;
mod failure;
mod upload;

use crate::error::ObjectError;
use crate::objects::Entry;
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

/// How many objects one request deletes at most.
const DELETED_AT_ONCE: usize = 1000;

/// A bucket, or what is in it below a prefix.
pub(crate) struct S3 {
    client: aws_sdk_s3::Client,
    bucket: String,
    /// What stands before each key: nothing, or a name with a slash behind it.
    prefix: String,
    encryption: Option<ServerSideEncryption>,
    kms_key: Option<String>,
    storage_class: Option<StorageClass>,
    /// The checksum of parts, to be announced when an upload begins; none where the environment or
    /// the profile says that the server knows none.
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
            // The timeout of a try, and ours for a silent body, are kinder to a busy machine.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(region) = &options.region {
            loader = loader.region(Region::new(region.clone()));
        } else if options.endpoint.is_some() {
            loader = loader.region(region_of_no_machine(options));
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
                reason: "no region is known: give one, or set AWS_REGION".to_owned(),
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

    /// The key in the bucket.
    fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// What the keys below a prefix begin with in the bucket.
    fn full_prefix(&self, prefix: &str) -> String {
        match prefix {
            "" => self.prefix.clone(),
            _ => format!("{}{prefix}/", self.prefix),
        }
    }

    fn store(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    /// Makes an error of one that came up with an object.
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

    /// An answer that the protocol does not allow.
    fn invalid_answer(&self, key: &str, reason: &str) -> ObjectError {
        ObjectError::Refused {
            store: self.store(),
            key: key.to_owned(),
            reason: format!("its answer is not that of an S3 server: {reason}"),
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
            .ok_or_else(|| self.invalid_answer(key, "it gives no length"))
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
        for some in listed.chunks(DELETED_AT_ONCE) {
            let mut delete = Delete::builder().quiet(true);
            for (key, _) in some {
                let object = ObjectIdentifier::builder().key(key).build();
                delete = delete.objects(object.expect("its only required field is the key"));
            }
            let answer = self
                .client
                .delete_objects()
                .bucket(&self.bucket)
                .delete(
                    delete
                        .build()
                        .expect("its only required field are the objects"),
                )
                .send()
                .await
                .map_err(self.failed(prefix))?;
            if let Some(error) = answer.errors().first() {
                let key = error.key().unwrap_or(prefix);
                let code = error.code().unwrap_or_default();
                return Err(failure::of_code(
                    self.store(),
                    key.strip_prefix(&self.prefix).unwrap_or(key).to_owned(),
                    code,
                    format!("{code}: {}", error.message().unwrap_or("no reason given")),
                ));
            }
        }
        Ok(listed.len() as u64)
    }

    /// All objects below a prefix, with their keys in the bucket.
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
                // Consoles make objects whose names end with a slash to show folders by.
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

/// Where to look for the region of a server other than AWS: such a one seldom cares, and the machine
/// need not be asked.
fn region_of_no_machine(options: &Options) -> RegionProviderChain {
    let mut profile = ProfileFileRegionProvider::builder();
    if let Some(name) = &options.profile {
        profile = profile.profile_name(name);
    }
    RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new())
        .or_else(profile.build())
        .or_else("us-east-1")
}

/// Credentials out of the one file asked for.
#[expect(
    deprecated,
    reason = "the new names are in a crate that would be a dependency for these two words alone"
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

/// Counts requests, and the operations that they are for.
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
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        count(&self.0.requests, 1);
        Ok(())
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let told = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        if let Some(told) = told {
            let ahead = told.secs() - DateTime::from(SystemTime::now()).secs();
            let mut kept = self.0.seconds_ahead.lock();
            if let Ok(kept) = &mut kept {
                **kept = Some(ahead);
            }
        }
        Ok(())
    }
}
