//! The gRPC reflection service, through which generic gRPC tools list the available services.

use super::Service;
use hatebeam_proto::v1;
use hatebeam_proto::v1::members_server::MembersServer;
use hatebeam_proto::v1::runs_server::RunsServer;
use tonic::server::NamedService;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

/// Returns the reflection service. It lists only the coordinator's services, not those that workers serve to each
/// other.
pub(super) fn reflection() -> Option<ServerReflectionServer<impl ServerReflection>> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::FILES)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .with_service_name(<RunsServer<Service> as NamedService>::NAME)
        .with_service_name(<MembersServer<Service> as NamedService>::NAME)
        .with_service_name("grpc.health.v1.Health")
        .build_v1();
    reflection
        .inspect_err(|error| tracing::warn!(%error, "cannot serve reflection"))
        .ok()
}
