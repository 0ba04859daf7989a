//! Tests of the Kubernetes manifests in deploy/kubernetes.

use crate::support::{
    Start, Uri, checkov, hatebeam, list, parse_yaml, path, succeeds, table, text, tool, uri, yaml,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;

const FOLDER: &str = "deploy/kubernetes";
const GARAGE: u16 = 3900;
const POD_IP: &str = "10.244.0.7";

/// The manifests of the base or of an overlay.
struct Cluster {
    name: String,
    documents: Vec<Value>,
}

/// A pod template and the Deployment or StatefulSet that contains it.
struct Pod<'a> {
    name: &'a str,
    owner: &'a Value,
    template: &'a Value,
}

impl Pod<'_> {
    fn container(&self) -> &Value {
        let mut containers = list(self.template, "/spec/containers");
        let container = containers.next().unwrap();
        assert!(containers.next().is_none(), "{}", self.name);
        container
    }

    fn labels(&self) -> &Value {
        &self.template["metadata"]["labels"]
    }

    fn ports(&self) -> BTreeMap<&str, u16> {
        list(self.container(), "/ports")
            .map(|port| (text(port, "/name"), number(&port["containerPort"])))
            .collect()
    }

    fn is_ours(&self) -> bool {
        self.labels()["app.kubernetes.io/name"] == "hatebeam"
    }

    fn component(&self) -> &str {
        let part = &self.labels()["app.kubernetes.io/component"];
        part.as_str().unwrap_or(self.name)
    }
}

#[track_caller]
fn number(value: &Value) -> u16 {
    u16::try_from(value.as_u64().unwrap()).unwrap()
}

/// Returns `true` if `labels` contains all labels in `selector`.
fn selects(selector: &Value, labels: &Value) -> bool {
    table(selector, "").all(|(key, value)| labels.get(key) == Some(value))
}

impl Cluster {
    /// Returns the manifests of the base, including the ConfigMap that kustomize generates from literals.
    fn base() -> Cluster {
        let folder = format!("{FOLDER}/base");
        let kustomization = yaml(&format!("{folder}/kustomization.yaml")).remove(0);
        let resources = list(&kustomization, "/resources");
        let mut documents: Vec<Value> = resources
            .flat_map(|file| yaml(&format!("{folder}/{}", file.as_str().unwrap())))
            .collect();
        for map in list(&kustomization, "/configMapGenerator") {
            let literals = list(map, "/literals");
            let data = literals.map(|literal| {
                let (key, value) = literal.as_str().unwrap().split_once('=').unwrap();
                (key.to_owned(), Value::from(value))
            });
            let data = Value::Object(data.collect());
            let metadata = serde_json::json!({ "name": map["name"] });
            let map = serde_json::json!({"kind": "ConfigMap", "metadata": metadata, "data": data});
            documents.push(map);
        }
        Cluster {
            name: "base".to_owned(),
            documents,
        }
    }

    /// Returns the base and, if `kubectl` is installed, the overlays as `kubectl kustomize` renders them.
    fn all() -> &'static [Cluster] {
        static ALL: LazyLock<Vec<Cluster>> = LazyLock::new(Cluster::rendered);
        &ALL
    }

    fn rendered() -> Vec<Cluster> {
        let mut all = vec![Cluster::base()];
        for overlay in ["local", "s3"] {
            let Some(mut kubectl) = tool("HATEBEAM_KUBECTL", "kubectl") else {
                continue;
            };
            let folder = path(&format!("{FOLDER}/overlays/{overlay}"));
            let rendered = succeeds(kubectl.arg("kustomize").arg(folder));
            let documents = parse_yaml(overlay, &rendered);
            for document in &documents {
                let is_namespaced = document["metadata"]["namespace"] == "hatebeam";
                let kind = text(document, "/kind");
                let is_cluster_wide = ["Namespace", "StorageClass"].contains(&kind);
                assert!(is_namespaced != is_cluster_wide, "{overlay}: {kind}");
            }
            all.push(Cluster {
                name: overlay.to_owned(),
                documents,
            });
        }
        all
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        let documents = self.documents.iter();
        documents.filter(move |document| document["kind"] == kind)
    }

    fn named<'a>(&'a self, kind: &'a str, name: &str) -> &'a Value {
        let found = self
            .of_kind(kind)
            .find(|found| found["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{}: no {kind} {name}", self.name))
    }

    fn pods(&self) -> Vec<Pod<'_>> {
        let owners = self
            .of_kind("Deployment")
            .chain(self.of_kind("StatefulSet"));
        let pods: Vec<Pod<'_>> = owners
            .map(|owner| Pod {
                name: text(owner, "/metadata/name"),
                owner,
                template: &owner["spec"]["template"],
            })
            .collect();
        assert!(pods.len() >= 2, "{}", self.name);
        pods
    }

    /// Returns the command line and the environment of each pod that runs the program.
    fn starts(&self) -> BTreeMap<&str, Start> {
        let ours = self.pods().into_iter().filter(Pod::is_ours);
        ours.map(|pod| (pod.name, self.start(&pod))).collect()
    }

    fn start(&self, pod: &Pod<'_>) -> Start {
        let container = pod.container();
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        for from in list(container, "/envFrom") {
            let map = self.named("ConfigMap", text(from, "/configMapRef/name"));
            variables.extend(
                table(map, "/data")
                    .map(|(key, value)| (key.into(), value.as_str().unwrap().into())),
            );
        }
        for variable in list(container, "/env") {
            let field = variable.pointer("/valueFrom/fieldRef/fieldPath");
            let value = match field.and_then(Value::as_str) {
                Some("metadata.name") => format!("{}-0", pod.name),
                Some("status.podIP") => POD_IP.to_owned(),
                Some(other) => panic!("{other}"),
                None => text(variable, "/value").to_owned(),
            };
            variables.insert(text(variable, "/name").to_owned(), value);
        }
        let args = list(container, "/args").map(|arg| {
            let mut arg = arg.as_str().unwrap().to_owned();
            for (name, value) in &variables {
                arg = arg.replace(&format!("$({name})"), value);
            }
            assert!(!arg.contains("$("), "{arg}");
            arg
        });
        Start {
            place: format!("{}: {}", self.name, pod.name),
            args: args.collect(),
            variables: variables.into_iter().collect(),
        }
    }
}

#[test]
fn program_accepts_options_and_variables_of_every_pod() {
    for cluster in Cluster::all() {
        let starts = cluster.starts();
        let commands = starts.values().map(|start| start.args[0].as_str());
        assert_eq!(
            commands.collect::<BTreeSet<&str>>(),
            BTreeSet::from(["coordinator", "worker"])
        );
        for start in starts.values() {
            start.check();
        }
    }
}

#[test]
fn ports_and_probes_match_program() {
    for cluster in Cluster::all() {
        for pod in cluster.pods() {
            let ports = pod.ports();
            if pod.is_ours() {
                let start = cluster.start(&pod);
                let expected = BTreeMap::from([
                    ("grpc", start.port("--listen")),
                    ("metrics", start.port("--metrics")),
                ]);
                assert_eq!(ports, expected, "{}", start.place);
                let documented = match start.args[0].as_str() {
                    "coordinator" => (7800, 9100),
                    _ => (7801, 9101),
                };
                assert_eq!((ports["grpc"], ports["metrics"]), documented);
                let health = &pod.container()["livenessProbe"]["httpGet"];
                assert_eq!(text(health, "/path"), "/healthz");
                assert_eq!(text(health, "/port"), "metrics");
            } else {
                assert_eq!(ports, BTreeMap::from([("s3", GARAGE)]));
            }
            for probe in ["readinessProbe", "livenessProbe"] {
                let probe = &pod.container()[probe];
                let port = probe.pointer("/tcpSocket/port");
                let port = port.or_else(|| probe.pointer("/httpGet/port"));
                match port {
                    Some(port) => assert!(ports.contains_key(port.as_str().unwrap())),
                    None => assert_eq!(text(probe, "/exec/command/0"), "healthcheck"),
                }
            }
        }
    }
}

#[test]
fn configured_addresses_are_services_that_select_pods() {
    for cluster in Cluster::all() {
        let pods = cluster.pods();
        // Maps each service and port to the name of its pod.
        let mut targets = BTreeMap::new();
        for service in cluster.of_kind("Service") {
            let name = text(service, "/metadata/name");
            let selector = &service["spec"]["selector"];
            let mut selected = pods.iter().filter(|pod| selects(selector, pod.labels()));
            let pod = selected.next().unwrap_or_else(|| panic!("{name}"));
            assert!(
                selected.next().is_none(),
                "{name}: selects two kinds of pod"
            );
            for port in list(service, "/spec/ports") {
                let target = pod.ports()[text(port, "/targetPort")];
                assert_eq!(number(&port["port"]), target, "{name}");
                targets.insert((name, target), pod.name);
            }
        }
        for (name, start) in cluster.starts() {
            if let Some(coordinator) = start.variable("HATEBEAM_COORDINATOR") {
                let Uri { scheme, host, port } = uri(coordinator);
                assert_eq!(scheme, "https");
                assert_eq!(targets[&(host, port)], "hatebeam-coordinator");
            }
            if let Some(endpoint) = start.variable("HATEBEAM_S3_ENDPOINT") {
                let Uri { host, port, .. } = uri(endpoint);
                assert_eq!(targets[&(host, port)], "hatebeam-s3", "{name}");
            }
            if let Some(advertised) = start.option("--advertise") {
                // The worker advertises the address of its pod, because DNS resolves the name of a new pod only after a
                // delay.
                let expected = format!("https://{POD_IP}:{}", start.port("--listen"));
                assert_eq!(advertised, expected);
                assert_eq!(start.option("--name"), Some(format!("{name}-0").as_str()));
            }
        }
    }
}

#[test]
fn pods_pass_checkov() {
    // CKV_K8S_11 requires CPU limits, which would only slow the coordinator down. CKV_K8S_15 and CKV_K8S_43 are rules
    // for the image, which is built locally or set by an overlay. CKV_K8S_21 requires a namespace, which kustomize
    // sets.
    let skipped = ["CKV_K8S_11", "CKV_K8S_15", "CKV_K8S_21", "CKV_K8S_43"];
    checkov("kubernetes", FOLDER, &skipped);
}

#[test]
fn selectors_match_pods() {
    for cluster in Cluster::all() {
        let set = cluster.named("StatefulSet", "hatebeam-worker");
        let worker = &set["spec"]["template"];
        let budget = cluster.named("PodDisruptionBudget", "hatebeam-worker");
        let selector = &budget["spec"]["selector"]["matchLabels"];
        for pod in cluster.pods() {
            let is_worker = pod.name == "hatebeam-worker";
            assert_eq!(selects(selector, pod.labels()), is_worker, "{}", pod.name);
            let selector = &pod.owner["spec"]["selector"]["matchLabels"];
            assert!(selects(selector, pod.labels()), "{}", pod.name);
        }
        for spread in list(worker, "/spec/topologySpreadConstraints") {
            let selector = &spread["labelSelector"]["matchLabels"];
            assert!(selects(selector, &worker["metadata"]["labels"]));
        }
        // Either KEDA or the manifest sets the number of workers.
        let scaled = cluster.of_kind("ScaledObject").next();
        assert_eq!(scaled.is_some(), set["spec"].get("replicas").is_none());
        if let Some(scaled) = scaled {
            let target = &scaled["spec"]["scaleTargetRef"];
            cluster.named(text(target, "/kind"), text(target, "/name"));
        }
    }
}

#[test]
fn pods_mount_secrets_that_make_secrets_creates() {
    let dir = tempfile::tempdir().unwrap();
    let mut certs = hatebeam();
    succeeds(certs.args(["certs", "--out"]).arg(dir.path().join("tls")));
    for secret in ["s3-credentials", "garage-rpc"] {
        std::fs::write(dir.path().join(secret), "secret\n").unwrap();
    }
    let Some(secrets) = secrets_of(dir.path()) else {
        return;
    };
    for cluster in Cluster::all() {
        for pod in cluster.pods() {
            let volumes: BTreeMap<&str, &Value> = list(pod.template, "/spec/volumes")
                .map(|volume| (text(volume, "/name"), volume))
                .collect();
            for volume in volumes.values() {
                let projected = list(volume, "/projected/sources").map(|source| &source["secret"]);
                for secret in projected.chain(volume.get("secret")) {
                    let name = secret.get("secretName").or(secret.get("name")).unwrap();
                    let keys = &secrets[name.as_str().unwrap()];
                    for item in list(secret, "/items") {
                        assert!(keys.contains(text(item, "/key")), "{name}");
                    }
                }
            }
            if pod.is_ours() {
                let secret = text(volumes["tls"], "/secret/secretName");
                let member = pod.component();
                let tokens: &[&str] = match member {
                    "coordinator" => &["token", "view-token"],
                    // A worker gets no token, so its files do not allow it to submit runs.
                    _ => &[],
                };
                let own = [format!("{member}.pem"), format!("{member}-key.pem")];
                let files = tokens
                    .iter()
                    .chain(&["ca.pem"])
                    .map(|&file| file.to_owned());
                assert_eq!(secrets[secret], files.chain(own).collect::<BTreeSet<_>>());
            }
        }
    }
}

#[test]
fn program_finds_its_files_in_mounted_volumes() {
    for cluster in Cluster::all() {
        for pod in cluster.pods().into_iter().filter(Pod::is_ours) {
            let mounts: BTreeMap<&str, &str> = list(pod.container(), "/volumeMounts")
                .map(|mount| (text(mount, "/name"), text(mount, "/mountPath")))
                .collect();
            let start = cluster.start(&pod);
            assert_eq!(start.variable("HATEBEAM_TLS"), Some(mounts["tls"]));
            let credentials = start.variable("AWS_SHARED_CREDENTIALS_FILE").unwrap();
            assert_eq!(credentials, format!("{}/credentials", mounts["s3"]));
            // The rest of the file system is read-only.
            assert!(mounts.values().any(|&place| place == "/var/lib/hatebeam"));
            let dir = start.option("--dir").unwrap_or("/var/lib/hatebeam/");
            assert!(dir.starts_with("/var/lib/hatebeam/"), "{dir}");
        }
    }
}

/// Returns the keys of each secret that the script `make-secrets` prints, or `None` if `kubectl` is not installed.
fn secrets_of(dir: &std::path::Path) -> Option<BTreeMap<String, BTreeSet<String>>> {
    tool("HATEBEAM_KUBECTL", "kubectl")?;
    let mut script = Command::new(path(&format!("{FOLDER}/make-secrets")));
    let printed = succeeds(script.arg(dir));
    let secrets = parse_yaml("make-secrets", &printed);
    let keys = |secret: &Value| {
        table(secret, "/data")
            .map(|(key, _)| key.to_owned())
            .collect()
    };
    let named = secrets.iter().map(|secret| {
        assert_eq!(text(secret, "/kind"), "Secret");
        assert_eq!(text(secret, "/metadata/namespace"), "hatebeam");
        (text(secret, "/metadata/name").to_owned(), keys(secret))
    });
    Some(named.collect())
}

#[test]
fn make_secrets_without_certificates_prints_usage() {
    let dir = tempfile::tempdir().unwrap();
    let script = path(&format!("{FOLDER}/make-secrets"));
    let refused = Command::new(script).arg(dir.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("hatebeam certs"));
}

/// A connection that the network policies allow.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flow {
    /// Component of the pods, name of a namespace, `pod-identity` or `internet`.
    from: String,
    /// Destination, in the same form as `from`.
    to: String,
    port: String,
}

impl Flow {
    fn new(from: &str, to: &str, port: &str) -> Flow {
        let [from, to, port] = [from, to, port].map(str::to_owned);
        Flow { from, to, port }
    }
}

/// Returns the connections that the policies allow. `direction` is `Ingress` or `Egress`.
fn allowed(cluster: &Cluster, direction: &str) -> BTreeSet<Flow> {
    let pods = cluster.pods();
    let of = |selector: &Value| -> Vec<String> {
        let labels = &selector["matchLabels"];
        let selected = pods.iter().filter(|pod| selects(labels, pod.labels()));
        selected.map(|pod| pod.component().to_owned()).collect()
    };
    let peers = |peer: &Value| -> Vec<String> {
        if let Some(block) = peer.get("ipBlock") {
            // The only addresses of the node that pods can reach are those of the DNS cache and of the credential
            // service.
            match text(block, "/cidr") {
                "169.254.20.10/32" => return vec!["kube-system".to_owned()],
                "169.254.170.23/32" | "fd00:ec2::23/128" => return vec!["pod-identity".to_owned()],
                _ => {}
            }
            let except = list(block, "/except").count();
            assert!(except > 0, "the metadata service is not blocked: {block}");
            return vec!["internet".to_owned()];
        }
        match peer.get("namespaceSelector") {
            Some(namespace) => {
                let name = &namespace["matchLabels"]["kubernetes.io/metadata.name"];
                vec![name.as_str().unwrap().to_owned()]
            }
            None => of(&peer["podSelector"]),
        }
    };
    let (rules, peers_of_rule) = match direction {
        "Ingress" => ("/spec/ingress", "/from"),
        _ => ("/spec/egress", "/to"),
    };
    let mut found = BTreeSet::new();
    for policy in cluster.of_kind("NetworkPolicy") {
        let own = of(&policy["spec"]["podSelector"]);
        for rule in list(policy, rules) {
            let others: Vec<String> = list(rule, peers_of_rule).flat_map(peers).collect();
            let ports: Vec<String> = list(rule, "/ports").map(port_name).collect();
            // An empty list would allow all peers or all ports.
            assert!(!others.is_empty() && !ports.is_empty(), "{policy}");
            for own in &own {
                found.extend(others.iter().flat_map(|other| {
                    let (from, to) = match direction {
                        "Ingress" => (other, own),
                        _ => (own, other),
                    };
                    ports.iter().map(move |port| Flow::new(from, to, port))
                }));
            }
        }
    }
    found
}

/// Returns the name or the number of a port in a policy.
fn port_name(port: &Value) -> String {
    match &port["port"] {
        Value::String(name) => name.clone(),
        number => number.to_string(),
    }
}

#[test]
fn network_policies_allow_only_required_connections() {
    for cluster in Cluster::all() {
        let deny = cluster.named("NetworkPolicy", "deny-all");
        let all = serde_json::json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
        assert_eq!(deny["spec"], all);
        let has_garage = cluster.pods().iter().any(|pod| !pod.is_ours());
        let within = || {
            let grpc = ["coordinator", "worker"].map(|to| Flow::new("worker", to, "grpc"));
            let s3 = ["coordinator", "worker"].map(|from| Flow::new(from, "hatebeam-s3", "s3"));
            let s3 = s3.into_iter().filter(|_| has_garage);
            grpc.into_iter().chain(s3).collect::<BTreeSet<Flow>>()
        };
        let mut expected = within();
        for pod in cluster.pods() {
            expected.insert(Flow::new(pod.component(), "kube-system", "53"));
        }
        if !has_garage {
            for (to, port) in [("internet", "443"), ("pod-identity", "80")] {
                expected.extend(["coordinator", "worker"].map(|from| Flow::new(from, to, port)));
            }
        }
        assert_eq!(allowed(cluster, "Egress"), expected, "{}", cluster.name);
        let mut expected = within();
        expected.extend(["coordinator", "worker"].map(|to| Flow::new("monitoring", to, "metrics")));
        assert_eq!(allowed(cluster, "Ingress"), expected, "{}", cluster.name);
    }
}

#[test]
fn coordinator_has_single_coordinator_flag_only_if_store_is_garage() {
    for cluster in Cluster::all() {
        let start = &cluster.starts()["hatebeam-coordinator"];
        let is_garage = start.variable("HATEBEAM_S3_ENDPOINT").is_some();
        assert_eq!(start.has("--single-coordinator"), is_garage);
        if is_garage {
            let pods = cluster.pods();
            let garage = pods.iter().find(|pod| !pod.is_ours()).unwrap();
            let variables: BTreeMap<&str, &str> = list(garage.container(), "/env")
                .map(|variable| (text(variable, "/name"), text(variable, "/value")))
                .collect();
            let bucket = variables["GARAGE_DEFAULT_BUCKET"];
            let store = start.variable("HATEBEAM_STORE").unwrap();
            assert!(store.starts_with(&format!("s3://{bucket}/")), "{store}");
        }
    }
}

#[test]
fn monitors_select_metrics_ports() {
    let base = Cluster::base();
    let monitors = yaml(&format!("{FOLDER}/components/monitoring/monitors.yaml"));
    let mut scraped = BTreeSet::new();
    for monitor in &monitors {
        let selector = &monitor["spec"]["selector"]["matchLabels"];
        let pods = base.pods();
        let found: Vec<&Pod<'_>> = pods
            .iter()
            .filter(|pod| selects(selector, pod.labels()))
            .collect();
        assert_eq!(found.len(), 1, "{monitor}");
        let port = text(monitor, "/spec/podMetricsEndpoints/0/port");
        assert!(found[0].ports().contains_key(port));
        scraped.insert(found[0].name.to_owned());
    }
    assert_eq!(scraped.len(), base.pods().len());
}

#[test]
fn manifests_match_kubernetes_schemas() {
    let check = "import json, sys, kubernetes_validate as k\n\
                 for document in json.loads(sys.argv[1]):\n    \
                     try: k.validate(document, '1.31', strict=True)\n    \
                     except k.SchemaNotFoundError: print(document['kind'])\n";
    for cluster in Cluster::all().iter().skip(1) {
        let Some(mut python) = tool("HATEBEAM_SCHEMAS", "python-with-schemas") else {
            return;
        };
        let documents = serde_json::to_string(&cluster.documents).unwrap();
        let unknown = succeeds(python.args(["-c", check, &documents]));
        // There is no schema for the custom resources of KEDA and the Prometheus operator.
        for kind in unknown.lines() {
            assert!(["ScaledObject", "PodMonitor"].contains(&kind), "{kind}");
        }
        let mut wrong = cluster.documents[0].clone();
        wrong["spce"] = Value::from("wrong");
        let wrong = Value::Array(vec![wrong]).to_string();
        let refused = Command::new(python.get_program())
            .args(["-c", check, &wrong])
            .output();
        assert!(
            !refused.unwrap().status.success(),
            "the schema check accepted an invalid manifest"
        );
    }
}
