//! Conversion of errors from the AWS SDK and the server to [`ObjectError`].

use crate::error::ObjectError;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use std::error::Error;
use std::io;

/// Converts an error from the AWS SDK.
pub(super) fn explain<E>(store: String, key: String, error: &SdkError<E>) -> ObjectError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::TimeoutError(_) => ObjectError::Unavailable {
            store,
            key,
            reason: "no response in time".to_owned(),
        },
        SdkError::DispatchFailure(failure) => match failure.as_connector_error() {
            Some(connector) if connector.is_timeout() => ObjectError::Unavailable {
                store,
                key,
                reason: "no connection in time".to_owned(),
            },
            Some(connector) => not_sent(store, key, connector),
            None => not_sent(store, key, error),
        },
        SdkError::ResponseError(_) => ObjectError::Unavailable {
            store,
            key,
            reason: format!("invalid response: {}", root_cause(error)),
        },
        SdkError::ServiceError(service) => answered(store, key, service.err(), service.raw()),
        // The request could not be built, so a retry would fail in the same way.
        error => ObjectError::Refused {
            store,
            key,
            reason: root_cause(error),
        },
    }
}

/// Converts the error of a request that failed without a response.
fn not_sent(store: String, key: String, error: &(dyn Error + 'static)) -> ObjectError {
    // `CredentialsNotLoaded` is in a crate that is not a dependency, so only its `Debug` output can identify it.
    if chain(error).any(|cause| format!("{cause:?}").starts_with("CredentialsNotLoaded")) {
        return ObjectError::Denied {
            store,
            key,
            reason: "no credentials found: set them in the environment or in a credentials file"
                .to_owned(),
        };
    }
    ObjectError::Unavailable {
        store,
        key,
        reason: root_cause(error),
    }
}

/// Converts a response that reports an error.
fn answered<E: ProvideErrorMetadata>(
    store: String,
    key: String,
    error: &E,
    raw: &aws_sdk_s3::config::http::HttpResponse,
) -> ObjectError {
    let status = raw.status().as_u16();
    let code = error.code().unwrap_or_default();
    let message = match (code, error.message().unwrap_or_default()) {
        ("", "") => format!("HTTP status {status}"),
        (code, "") => format!("{code} (HTTP status {status})"),
        (code, message) => format!("{code} (HTTP status {status}): {message}"),
    };
    let region = raw.headers().get("x-amz-bucket-region");
    match (status, region) {
        // Responses to HEAD requests have no body and therefore no error code.
        (301 | 307 | 400, Some(region)) => ObjectError::WrongRegion {
            store,
            reason: format!("it is in {region} ({message})"),
        },
        (404, _) if code != "NoSuchBucket" && code != "NoSuchUpload" => {
            ObjectError::NotFound { store, key }
        }
        (401 | 403, _) => ObjectError::Denied {
            store,
            key,
            reason: message,
        },
        (412, _) => ObjectError::Changed { store, key },
        (408 | 429 | 500.., _) if status != 501 => ObjectError::Unavailable {
            store,
            key,
            reason: message,
        },
        _ => of_code(store, key, code, message),
    }
}

/// Converts an error code from the server.
pub(super) fn of_code(store: String, key: String, code: &str, reason: String) -> ObjectError {
    match code {
        "NoSuchBucket" => ObjectError::NoBucket { store },
        "AccessDenied"
        | "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "ExpiredToken"
        | "InvalidToken" => ObjectError::Denied { store, key, reason },
        "PermanentRedirect" | "AuthorizationHeaderMalformed" => {
            ObjectError::WrongRegion { store, reason }
        }
        "RequestTimeout"
        | "SlowDown"
        | "InternalError"
        | "ServiceUnavailable"
        | "ConditionalRequestConflict"
        | "OperationAborted" => ObjectError::Unavailable { store, key, reason },
        _ => ObjectError::Refused { store, key, reason },
    }
}

/// Returns a description of the innermost cause. The outer errors only state that an operation failed.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let innermost = chain(error).last().unwrap_or(error);
    match innermost.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(io::ErrorKind::ConnectionReset) => "connection reset".to_owned(),
        _ => innermost.to_string(),
    }
}

/// Returns whether the SDK reports that the checksum of a body is wrong. Connections can also fail after the last byte.
pub(super) fn is_wrong_checksum(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|cause| cause.is::<aws_smithy_checksums::body::validate::Error>())
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let inner = |error: &&'a (dyn Error + 'static)| (*error).source();
    std::iter::successors(Some(error), inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_s3::primitives::ByteStream;
    use aws_sdk_s3::primitives::SdkBody;
    use aws_smithy_checksums::ChecksumAlgorithm;
    use aws_smithy_checksums::body::validate::ChecksumBody;

    #[tokio::test]
    async fn only_the_checksum_error_of_a_body_is_damage() {
        let checksum = ChecksumAlgorithm::Crc32.into_impl();
        let body = ChecksumBody::new(SdkBody::from("text"), checksum, vec![0, 0, 0, 1].into());
        let error = ByteStream::new(SdkBody::from_body_1_x(body))
            .collect()
            .await;
        assert!(is_wrong_checksum(&error.unwrap_err()));
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(!is_wrong_checksum(&reset));
    }
}
