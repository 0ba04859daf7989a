//! What gRPC's own tools ask of a coordinator: whether it serves, and what.

use crate::rig::Rig;
use hatebeam_net::{self as wire, Limits};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ListServiceResponse, ServerReflectionRequest};

#[tokio::test]
async fn a_coordinator_says_that_it_serves_and_what() {
    let mut rig = Rig::new();
    rig.start_coordinator();
    let channel = wire::connect(&rig.uri(), None, &Limits::default()).await;
    let channel = channel.unwrap();
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "hatebeam.v1.Runs", "hatebeam.v1.Members"] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(request).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let unknown = HealthCheckRequest {
        service: "hatebeam.v1.Nobody".to_owned(),
    };
    let status = health.check(unknown).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::NotFound);
    let ask = |what| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(what),
    };
    let questions = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol(
            "hatebeam.v1.Runs.Submit".to_owned(),
        )),
    ];
    let mut client = ServerReflectionClient::new(channel);
    let answers = client.server_reflection_info(tokio_stream::iter(questions));
    let mut answers = answers.await.unwrap().into_inner();
    let mut next = async || {
        answers
            .message()
            .await
            .unwrap()
            .unwrap()
            .message_response
            .unwrap()
    };
    let MessageResponse::ListServicesResponse(ListServiceResponse { service }) = next().await
    else {
        panic!("no list of services");
    };
    let names: Vec<String> = service.into_iter().map(|service| service.name).collect();
    for name in [
        "hatebeam.v1.Runs",
        "hatebeam.v1.Members",
        "grpc.health.v1.Health",
    ] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert!(
        !names.iter().any(|name| name == "hatebeam.v1.Peers"),
        "{names:?}"
    );
    let MessageResponse::FileDescriptorResponse(files) = next().await else {
        panic!("no file");
    };
    assert!(!files.file_descriptor_proto.is_empty());
}
