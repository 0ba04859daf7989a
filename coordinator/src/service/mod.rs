//! The coordinator's gRPC services.

mod convert;
mod estimate;
mod reflection;
mod runs;
mod workers;

pub use estimate::{estimate, program_constants};

use crate::coordinator::Coordinator;
use crate::request::RequestError;
use hatebeam_net::{Guard, MAX_ANSWER, MAX_MESSAGE, Role, Tokens};
use hatebeam_proto::v1::members_server::MembersServer;
use hatebeam_proto::v1::runs_server::RunsServer;
use reflection::reflection;
use tonic::Status;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::server::Router;

/// Implementation of the services that clients and workers call.
#[derive(Clone)]
pub(crate) struct Service(pub(crate) Coordinator);

/// Adds all services to a server: the services for clients and for workers, health checks, and reflection.
pub(crate) async fn add_services(
    mut server: tonic::transport::Server,
    service: &Service,
    tokens: Tokens,
) -> Router {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<RunsServer<Service>>().await;
    health.set_serving::<MembersServer<Service>>().await;
    let runs = RunsServer::new(service.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let members = MembersServer::new(service.clone())
        .max_decoding_message_size(MAX_ANSWER)
        .max_encoding_message_size(MAX_MESSAGE);
    let guard = Guard::new(tokens);
    // A caller with a coordinator's certificate may also call the services for clients.
    let clients = guard.clone().for_roles(&[Role::Client, Role::Coordinator]);
    let workers = guard.for_roles(&[Role::Worker]).or_certificate();
    let reflection = reflection();
    let reflection = reflection.map(|service| InterceptedService::new(service, clients.clone()));
    server
        .add_service(InterceptedService::new(runs, clients))
        .add_service(InterceptedService::new(members, workers))
        .add_service(health_service)
        .add_optional_service(reflection)
}

impl From<RequestError> for Status {
    fn from(error: RequestError) -> Status {
        let text = error.to_string();
        match error {
            RequestError::Invalid(_) => Status::invalid_argument(text),
            RequestError::NoRun(_) | RequestError::NoWorker(_) => Status::not_found(text),
            RequestError::Conflict(_) => Status::already_exists(text),
            RequestError::State(_) => Status::failed_precondition(text),
            RequestError::Busy(_) => Status::resource_exhausted(text),
            RequestError::Unavailable(_) => Status::unavailable(text),
            RequestError::Timeout(_) => Status::deadline_exceeded(text),
            RequestError::Internal(_) => Status::internal(text),
        }
    }
}
