//! Tests of the tracing spans around log lines: run, epoch (a period with a fixed set of workers), depth and table (a
//! file with a shard's wells at one depth). With the feature `otlp`, further tests start a collector that receives the
//! spans.

use crate::harness::{Cluster, Process};
use crate::program::hatebeam;
use serde_json::Value;
use std::collections::BTreeSet;

const RUN: [&str; 6] = ["--width", "5000", "--max-depth", "30", "--shards", "8"];

/// Returns the lines of a JSON log that have the given message. Ignores other output.
fn lines(log: &str, message: &str) -> Vec<Value> {
    let lines = log.lines().filter(|line| line.starts_with('{'));
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["message"] == message).collect()
}

/// Returns the name and a value of each span around a log line, outermost first. The value is the field `shard` for the
/// span `table`, and the field with the span's name for any other span.
fn spans(line: &Value) -> Vec<(String, Value)> {
    let spans = line["spans"].as_array().unwrap_or_else(|| panic!("{line}"));
    let pair = |span: &Value| {
        let name = span["name"].as_str().unwrap();
        let field = if name == "table" { "shard" } else { name };
        (name.to_owned(), span[field].clone())
    };
    spans.iter().map(pair).collect()
}

fn names(line: &Value) -> Vec<String> {
    spans(line).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn log_lines_of_cluster_contain_run_epoch_depth_and_table() {
    let mut cluster = Cluster::new();
    cluster.env = vec![("HATEBEAM_LOG".to_owned(), "hatebeam=debug,info".to_owned())];
    let json = ["--log-format", "json"];
    cluster.set_coordinator_flags(&json);
    cluster.start_coordinator();
    cluster.start_worker("w0", &[&["--threads", "2"][..], &json].concat());
    let name = cluster.submit_name(&RUN);
    cluster.wait_for_depth(3);
    // The second worker fetches the tables of its shards.
    cluster.start_worker("w1", &[&["--threads", "2"][..], &json].concat());
    cluster.watch();

    let coordinator = cluster.coordinator.as_ref().map(Process::log).unwrap();
    let committed = lines(&coordinator, "committed depth");
    assert_eq!(committed.len(), 30);
    for line in &committed {
        let spans = spans(line);
        assert_eq!(names(line), ["run", "epoch", "depth"], "{line}");
        assert_eq!(spans[0].1, name.as_str());
        assert!(spans[1].1.as_u64() >= Some(1), "{line}");
        assert_eq!(spans[2].1, line["depth"], "{line}");
    }
    let w0 = cluster.workers["w0"].log();
    for (message, expected) in [
        ("expanded frontier", &["run", "epoch", "depth"][..]),
        ("wrote table", &["run", "epoch", "depth", "table"]),
        ("uploaded tables", &["run", "epoch", "depth"]),
    ] {
        let found = lines(&w0, message);
        assert!(found.len() >= 30, "{message}: {w0}");
        let mut depths = BTreeSet::new();
        for line in &found {
            assert_eq!(names(line), expected, "{line}");
            assert_eq!(spans(line)[0].1, name.as_str());
            depths.insert(spans(line)[2].1.as_u64().unwrap());
        }
        assert!(
            (1..=30).all(|depth| depths.contains(&depth)),
            "{message}: {depths:?}"
        );
    }
    let fetched = lines(&cluster.workers["w1"].log(), "fetched table");
    assert!(!fetched.is_empty());
    for line in &fetched {
        assert_eq!(names(line), ["run", "epoch", "table"], "{line}");
        assert!(spans(line)[2].1.as_u64() < Some(8), "{line}");
    }
}

#[test]
fn log_lines_of_local_run_contain_run_and_depth() {
    let dir = tempfile::tempdir().unwrap();
    let log = |format: &str| {
        let mut command = hatebeam();
        command.args(["run", "--width", "1000", "--max-depth", "20"]);
        command.args(["--log-format", format, "--state"]);
        let output = command.arg(dir.path().join(format)).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let json = log("json");
    let committed = lines(&json, "committed depth");
    assert_eq!(committed.len(), 20, "{json}");
    for line in &committed {
        let spans = spans(line);
        assert_eq!(names(line), ["run", "depth"], "{line}");
        let run = spans[0].1.as_str().unwrap();
        assert!(run.starts_with("network-1000-"), "{line}");
        assert_eq!(spans[1].1, line["depth"]);
    }
    let text = log("text");
    let is_depth_7 = |line: &&str| line.contains("committed depth depth=7 ");
    let line = text.lines().find(is_depth_7);
    let line = line.unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(" run{run=\"network-1000-"), "{line}");
    let end = "\"}:depth{depth=7}: hatebeam_runs::local::commit: committed depth";
    assert!(line.contains(end), "{line}");
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
    use std::process::Output;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};
    use tonic::transport::Server;
    use tonic::transport::server::TcpIncoming;
    use tonic::{Request, Response, Status};

    /// A collector that stores each received span with the name of its service.
    #[derive(Clone, Default)]
    struct Collector(Arc<Mutex<Vec<(String, Span)>>>);

    #[tonic::async_trait]
    impl TraceService for Collector {
        async fn export(
            &self,
            request: Request<ExportTraceServiceRequest>,
        ) -> Result<Response<ExportTraceServiceResponse>, Status> {
            let mut received = self.0.lock().unwrap();
            for process in request.into_inner().resource_spans {
                let resource = process.resource.unwrap();
                let service = attribute(&resource.attributes, "service.name");
                let scopes = process.scope_spans.into_iter();
                let spans = scopes.flat_map(|scope| scope.spans);
                received.extend(spans.map(|span| (service.clone(), span)));
            }
            Ok(Response::new(ExportTraceServiceResponse::default()))
        }
    }

    /// Returns an attribute as text.
    fn attribute(attributes: &[KeyValue], key: &str) -> String {
        let found = attributes.iter().find(|attribute| attribute.key == key);
        match found.and_then(|found| found.value.clone()?.value) {
            Some(Any::StringValue(text)) => text,
            Some(Any::IntValue(number)) => number.to_string(),
            other => panic!("{key}: {other:?} in {attributes:?}"),
        }
    }

    /// A collector that runs until the value is dropped.
    struct Running {
        collector: Collector,
        url: String,
        _runtime: tokio::runtime::Runtime,
    }

    impl Running {
        fn start() -> Running {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let collector = Collector::default();
            let service = TraceServiceServer::new(collector.clone());
            let inside = runtime.enter();
            let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let url = format!("http://{}", incoming.local_addr().unwrap());
            let server = Server::builder().add_service(service);
            runtime.spawn(server.serve_with_incoming(incoming));
            drop(inside);
            Running {
                collector,
                url,
                _runtime: runtime,
            }
        }

        /// Returns the spans of a service that have the given name.
        fn spans(&self, service: &str, name: &str) -> Vec<Span> {
            let received = self.collector.0.lock().unwrap();
            let spans = received.iter();
            spans
                .filter(|(source, span)| source == service && span.name == name)
                .map(|(_, span)| span.clone())
                .collect()
        }
    }

    /// Searches a small run that sends its spans to the given URL.
    fn run(url: &str) -> Output {
        let dir = tempfile::tempdir().unwrap();
        let mut command = hatebeam();
        command.args(["run", "--width", "500", "--max-depth", "12", "--quiet"]);
        command.args(["--otlp", url, "--state"]).arg(dir.path());
        command.output().unwrap()
    }

    /// Asserts that the parent of each span is in `parents`.
    #[track_caller]
    fn assert_inside(spans: &[Span], parents: &[Span]) {
        for span in spans {
            let mut ids = parents.iter().map(|parent| &parent.span_id);
            assert!(ids.any(|id| *id == span.parent_span_id), "{span:?}");
        }
    }

    #[test]
    fn collector_receives_spans_of_local_run() {
        let collector = Running::start();
        let output = run(&collector.url);
        assert!(output.status.success(), "{output:?}");
        let [run] = &collector.spans("hatebeam-run", "run")[..] else {
            panic!("the collector did not receive exactly one `run` span");
        };
        assert!(attribute(&run.attributes, "run").starts_with("network-500-"));
        let depths = collector.spans("hatebeam-run", "depth");
        let numbers: BTreeSet<u32> = depths
            .iter()
            .map(|span| attribute(&span.attributes, "depth").parse().unwrap())
            .collect();
        assert_eq!(numbers, (1..=12).collect());
        assert_inside(&depths, std::slice::from_ref(run));
        for depth in &depths {
            assert_eq!(depth.trace_id, run.trace_id);
            let mut events = depth.events.iter();
            assert!(events.any(|event| event.name == "committed depth"));
        }
    }

    #[test]
    fn collector_receives_spans_of_cluster() {
        let collector = Running::start();
        let mut cluster = Cluster::new();
        let variable = "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned();
        cluster.env = vec![(variable, collector.url.clone())];
        cluster.start_all(&["w0"]);
        let name = cluster.submit_name(&RUN);
        cluster.watch();
        // The processes send their remaining spans when they exit.
        cluster.workers.remove("w0").unwrap().stop();
        cluster.coordinator().stop();
        for service in ["hatebeam-coordinator", "hatebeam-worker"] {
            let runs = collector.spans(service, "run");
            let epochs = collector.spans(service, "epoch");
            let depths = collector.spans(service, "depth");
            assert!(!runs.is_empty() && !epochs.is_empty(), "{service}");
            assert!(depths.len() >= 30, "{service}");
            for run in &runs {
                assert_eq!(attribute(&run.attributes, "run"), name);
            }
            assert_inside(&epochs, &runs);
            assert_inside(&depths, &epochs);
        }
    }

    #[test]
    fn run_ends_within_a_minute_if_collector_is_unreachable() {
        let begin = Instant::now();
        assert!(run("http://127.0.0.1:1").status.success());
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn collector_url_must_begin_with_http() {
        let refused = run("ftp://127.0.0.1");
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    }
}
