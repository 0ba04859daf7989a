//! Tests of the coordinator's gRPC services for health checks and reflection.

use crate::harness::Cluster;
use hatebeam_net::{self as net, Limits, Role};
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ListServiceResponse, ServerReflectionRequest};

async fn connect(cluster: &Cluster) -> Channel {
    let channel = net::connect(&cluster.uri(), None, Role::Coordinator, &Limits::default()).await;
    channel.unwrap()
}

#[tokio::test]
async fn health_service_reports_public_services_as_serving() {
    let cluster = Cluster::start(&[]);
    let mut health = HealthClient::new(connect(&cluster).await);
    let request = |service: &str| HealthCheckRequest {
        service: service.to_owned(),
    };
    for service in ["", "hatebeam.v1.Runs", "hatebeam.v1.Members"] {
        let answer = health.check(request(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let unknown = health.check(request("hatebeam.v1.Unknown")).await;
    assert_eq!(unknown.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn reflection_service_describes_public_services() {
    let cluster = Cluster::start(&[]);
    let mut client = ServerReflectionClient::new(connect(&cluster).await);
    let symbol = "hatebeam.v1.Runs.Submit".to_owned();
    let requests = [
        MessageRequest::ListServices(String::new()),
        MessageRequest::FileContainingSymbol(symbol),
    ];
    let requests = requests.map(|request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    });
    let answers = client.server_reflection_info(tokio_stream::iter(requests));
    let mut answers = answers.await.unwrap().into_inner();
    let mut next = async || {
        let answer = answers.message().await.unwrap().unwrap();
        answer.message_response.unwrap()
    };
    let MessageResponse::ListServicesResponse(ListServiceResponse { service }) = next().await
    else {
        panic!("the answer is not a list of services");
    };
    let names: Vec<String> = service.into_iter().map(|service| service.name).collect();
    for name in [
        "hatebeam.v1.Runs",
        "hatebeam.v1.Members",
        "grpc.health.v1.Health",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    // The coordinator does not list the service `Peers`, because only workers serve it.
    let peers = "hatebeam.v1.Peers".to_owned();
    assert!(!names.contains(&peers), "{names:?}");
    let MessageResponse::FileDescriptorResponse(files) = next().await else {
        panic!("the answer is not a file descriptor");
    };
    assert!(!files.file_descriptor_proto.is_empty());
}
