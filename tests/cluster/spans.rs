//! What is logged says of which run, epoch, depth and shard it is; and with the feature `otlp` a collector is told.

use crate::rig::{Process, Rig, hatebeam};
use serde_json::Value;
use std::collections::BTreeSet;

const RUN: [&str; 6] = ["--width", "5000", "--max-depth", "30", "--shards", "8"];

/// The lines of a JSON log with this message. Other lines are results.
fn lines(log: &str, message: &str) -> Vec<Value> {
    let lines = log.lines().filter(|line| line.starts_with('{'));
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["message"] == message).collect()
}

/// The spans that a line stands in, from the outside in: their names, and what each says under its name.
fn spans(line: &Value) -> Vec<(String, Value)> {
    let spans = line["spans"].as_array().unwrap_or_else(|| panic!("{line}"));
    let name = |span: &Value| span["name"].as_str().unwrap().to_owned();
    let said = |span: &Value| match span["name"].as_str() {
        Some("table") => span["shard"].clone(),
        Some(name) => span[name].clone(),
        None => Value::Null,
    };
    spans.iter().map(|span| (name(span), said(span))).collect()
}

fn names(line: &Value) -> Vec<String> {
    spans(line).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn log_lines_say_of_what_they_are() {
    let mut rig = Rig::new();
    let all = ("HATEBEAM_LOG".to_owned(), "hatebeam=debug,info".to_owned());
    rig.place.env.push(all);
    let json = ["--log-format", "json"];
    rig.coordinator_flags = json.map(str::to_owned).to_vec();
    rig.start_coordinator();
    rig.start_worker("w0", &[&["--threads", "2"][..], &json].concat());
    let name = rig.submit(&RUN)["run"].as_str().unwrap().to_owned();
    crate::wait_for_depth(&rig, 3);
    // This one has to fetch what it is given.
    rig.start_worker("w1", &[&["--threads", "2"][..], &json].concat());
    rig.watch();

    let coordinator = rig.coordinator.as_ref().map(Process::log).unwrap();
    let committed = lines(&coordinator, "depth committed");
    assert_eq!(committed.len(), 30);
    for line in &committed {
        let spans = spans(line);
        assert_eq!(names(line), ["run", "epoch", "depth"], "{line}");
        assert_eq!(spans[0].1, name.as_str());
        assert!(spans[1].1.as_u64() >= Some(1), "{line}");
        assert_eq!(spans[2].1, line["depth"], "{line}");
    }
    let w0 = rig.workers["w0"].log();
    for (message, expected) in [
        ("expanded frontier", &["run", "epoch", "depth"][..]),
        ("wrote table", &["run", "epoch", "depth", "table"]),
        ("uploaded tables", &["run", "epoch", "depth"]),
    ] {
        let found = lines(&w0, message);
        assert!(found.len() >= 30, "{message}: {w0}");
        let mut seen = BTreeSet::new();
        for line in &found {
            assert_eq!(names(line), expected, "{line}");
            assert_eq!(spans(line)[0].1, name.as_str());
            seen.insert(spans(line)[2].1.as_u64().unwrap());
        }
        assert!(
            (1..=30).all(|depth| seen.contains(&depth)),
            "{message}: {seen:?}"
        );
    }
    let fetched = lines(&rig.workers["w1"].log(), "fetched table");
    assert!(!fetched.is_empty());
    for line in &fetched {
        assert_eq!(names(line), ["run", "epoch", "table"], "{line}");
        assert!(spans(line)[2].1.as_u64() < Some(8), "{line}");
    }
}

#[test]
fn a_run_on_one_machine_says_so_too() {
    let dir = tempfile::tempdir().unwrap();
    let run = |format: &str| {
        let mut command = hatebeam();
        command.args([
            "run",
            "--width",
            "1000",
            "--max-depth",
            "20",
            "--log-format",
            format,
        ]);
        let output = command.arg("--state").arg(dir.path().join(format)).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    let json = run("json");
    let committed = lines(&json, "depth committed");
    assert_eq!(committed.len(), 20, "{json}");
    for line in &committed {
        let spans = spans(line);
        assert_eq!(names(line), ["run", "depth"], "{line}");
        assert!(
            spans[0].1.as_str().unwrap().starts_with("patterns-1000-"),
            "{line}"
        );
        assert_eq!(spans[1].1, line["depth"]);
    }
    let text = run("text");
    let line = text
        .lines()
        .find(|line| line.contains("depth committed depth=7 "));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(" run{run=\"patterns-1000-"), "{line}");
    assert!(
        line.contains("\"}:depth{depth=7}: hatebeam_runs::run: depth committed"),
        "{line}"
    );
}

#[cfg(feature = "otlp")]
mod otlp {
    use super::*;
    use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
        TraceService, TraceServiceServer,
    };
    use opentelemetry_proto::tonic::collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
    };
    use opentelemetry_proto::tonic::common::v1::KeyValue;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::trace::v1::Span;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};
    use tonic::transport::Server;
    use tonic::transport::server::TcpIncoming;
    use tonic::{Request, Response, Status};

    /// A collector that keeps what it gets: spans with the service they are of.
    #[derive(Clone, Default)]
    struct Collector(Arc<Mutex<Vec<(String, Span)>>>);

    #[tonic::async_trait]
    impl TraceService for Collector {
        async fn export(
            &self,
            request: Request<ExportTraceServiceRequest>,
        ) -> Result<Response<ExportTraceServiceResponse>, Status> {
            let mut kept = self.0.lock().unwrap();
            for of_process in request.into_inner().resource_spans {
                let service = said(&of_process.resource.unwrap().attributes, "service.name");
                let spans = of_process.scope_spans.into_iter().flat_map(|of| of.spans);
                kept.extend(spans.map(|span| (service.clone(), span)));
            }
            Ok(Response::new(ExportTraceServiceResponse::default()))
        }
    }

    fn said(attributes: &[KeyValue], key: &str) -> String {
        let found = attributes.iter().find(|attribute| attribute.key == key);
        match found.and_then(|found| found.value.clone()?.value) {
            Some(Any::StringValue(text)) => text,
            Some(Any::IntValue(number)) => number.to_string(),
            other => panic!("{key}: {other:?} in {attributes:?}"),
        }
    }

    impl Collector {
        /// Starts one; the runtime carries it.
        fn start() -> (Collector, String, tokio::runtime::Runtime) {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let collector = Collector::default();
            let service = TraceServiceServer::new(collector.clone());
            let inside = runtime.enter();
            let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let url = format!("http://{}", incoming.local_addr().unwrap());
            let server = Server::builder().add_service(service);
            runtime.spawn(server.serve_with_incoming(incoming));
            drop(inside);
            (collector, url, runtime)
        }

        /// The spans of a service by their names.
        fn spans(&self, service: &str, name: &str) -> Vec<Span> {
            let kept = self.0.lock().unwrap();
            let is_so = |kept: &&(String, Span)| kept.0 == service && kept.1.name == name;
            kept.iter()
                .filter(is_so)
                .map(|kept| kept.1.clone())
                .collect()
        }
    }

    #[test]
    fn a_collector_gets_the_spans_of_a_run() {
        let (collector, url, _runtime) = Collector::start();
        let dir = tempfile::tempdir().unwrap();
        let mut command = hatebeam();
        command.args([
            "run",
            "--width",
            "500",
            "--max-depth",
            "12",
            "--quiet",
            "--otlp",
            &url,
        ]);
        let output = command.arg("--state").arg(dir.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let [run] = &collector.spans("hatebeam-run", "run")[..] else {
            panic!("not one run");
        };
        assert!(said(&run.attributes, "run").starts_with("patterns-500-"));
        let depths = collector.spans("hatebeam-run", "depth");
        let found: BTreeSet<u32> = depths
            .iter()
            .map(|span| said(&span.attributes, "depth").parse().unwrap())
            .collect();
        assert_eq!(found, (1..=12).collect());
        for depth in &depths {
            assert_eq!(depth.parent_span_id, run.span_id);
            assert_eq!(depth.trace_id, run.trace_id);
            assert!(
                depth
                    .events
                    .iter()
                    .any(|event| event.name == "depth committed")
            );
        }
    }

    #[test]
    fn a_collector_gets_the_spans_of_a_cluster() {
        let (collector, url, _runtime) = Collector::start();
        let mut rig = Rig::new();
        rig.place
            .env
            .push(("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), url));
        rig.start_coordinator();
        rig.start_worker("w0", &["--threads", "1"]);
        let name = rig.submit(&RUN)["run"].as_str().unwrap().to_owned();
        rig.watch();
        // What is left is sent at the end.
        let mut worker = rig.workers.remove("w0").unwrap();
        worker.signal("-INT");
        assert_eq!(worker.ends(), Some(0), "{}", worker.log());
        let coordinator = rig.coordinator.as_mut().unwrap();
        coordinator.signal("-INT");
        assert_eq!(coordinator.ends(), Some(0), "{}", coordinator.log());
        for service in ["hatebeam-coordinator", "hatebeam-worker"] {
            let runs = collector.spans(service, "run");
            let epochs = collector.spans(service, "epoch");
            let depths = collector.spans(service, "depth");
            assert!(
                !runs.is_empty() && !epochs.is_empty() && depths.len() >= 30,
                "{service}"
            );
            assert!(runs.iter().all(|run| said(&run.attributes, "run") == name));
            for epoch in &epochs {
                let mut above = runs.iter();
                assert!(
                    above.any(|run| run.span_id == epoch.parent_span_id),
                    "{epoch:?}"
                );
            }
            for depth in &depths {
                let mut above = epochs.iter();
                assert!(
                    above.any(|epoch| epoch.span_id == depth.parent_span_id),
                    "{depth:?}"
                );
            }
        }
    }

    #[test]
    fn a_search_does_not_wait_for_a_collector_that_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let run = |url: &str| {
            let mut command = hatebeam();
            command.args([
                "run",
                "--width",
                "500",
                "--max-depth",
                "12",
                "--quiet",
                "--otlp",
                url,
            ]);
            command.arg("--state").arg(dir.path()).output().unwrap()
        };
        let begun = Instant::now();
        assert!(run("http://127.0.0.1:1").status.success());
        assert!(begun.elapsed() < Duration::from_secs(60));
        let refused = run("ftp://127.0.0.1");
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    }
}
