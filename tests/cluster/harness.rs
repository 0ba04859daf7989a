//! A cluster of real processes. They are either all on the loopback interface or each on a separate simulated host.

use crate::hosts::{COORDINATOR, Hosts};
use crate::program::{self, hatebeam, wait_until};
use crate::servers::{Server, free_port};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A process that is killed on drop.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn signal(&self, signal: &str) {
        program::signal(&self.child, signal);
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Waits until the process exits, and returns its exit code.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let mut status: Option<ExitStatus> = None;
        let log = self.log.clone();
        wait_until(
            || {
                status = self.child.try_wait().unwrap();
                status.is_some()
            },
            || format!("the process has not exited: {}", read(&log)),
        );
        status.and_then(|status| status.code())
    }

    /// Sends SIGINT and asserts that the process exits with code 0.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        self.signal("-INT");
        assert_eq!(self.wait(), Some(0), "{}", self.log());
    }

    /// Returns the output of the process so far.
    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }

    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_until(
            || self.log().contains(text),
            || format!("no {text:?} in {}", self.log()),
        );
    }
}

fn read(log: &Path) -> String {
    fs::read_to_string(log).unwrap()
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Store {
    pub(crate) location: String,
    /// Options that the program needs for this store.
    pub(crate) flags: Vec<String>,
    /// Name and value of the environment variable for the credentials, if the store needs one.
    pub(crate) credentials: Option<(&'static str, PathBuf)>,
}

impl Store {
    pub(crate) fn folder(path: &Path) -> Store {
        Store {
            location: path.display().to_string(),
            flags: Vec::new(),
            credentials: None,
        }
    }

    /// Returns a store in the server's bucket, with a key prefix. `endpoint` is the URL of the server or of a proxy.
    pub(crate) fn s3(server: &Server, endpoint: &str) -> Store {
        let region = server.options().region.unwrap();
        let flags = [
            "--s3-path-style",
            "--s3-endpoint",
            endpoint,
            "--s3-region",
            &region,
        ];
        Store {
            location: server.location("cluster"),
            flags: flags.map(str::to_owned).to_vec(),
            credentials: Some(("AWS_SHARED_CREDENTIALS_FILE", server.credentials_file())),
        }
    }

    /// Adds the options for this store to a command of the program.
    pub(crate) fn configure(&self, command: &mut Command) {
        command.args(["--store", &self.location]).args(&self.flags);
        command.envs(self.credentials.clone());
    }
}

/// A cluster: a coordinator, its workers and an object store.
pub(crate) struct Cluster {
    pub(crate) dir: TempDir,
    /// Hosts for the coordinator and the workers, or `None` if all processes are on the loopback interface.
    pub(crate) hosts: Option<Hosts>,
    pub(crate) store: Store,
    /// Additional environment variables of the processes.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) port: u16,
    pub(crate) lost_after: f64,
    coordinator_flags: Vec<String>,
    /// Whether the coordinator serves a dashboard at the default address, which only one cluster at a time can use.
    pub(crate) default_dashboard: bool,
    pub(crate) workers: BTreeMap<String, Process>,
    pub(crate) coordinator: Option<Process>,
    started: usize,
}

impl Cluster {
    /// Returns a cluster without processes, with a folder as its object store.
    pub(crate) fn new() -> Cluster {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::folder(&dir.path().join("store"));
        Cluster {
            dir,
            hosts: None,
            store,
            env: Vec::new(),
            port: free_port(),
            lost_after: 10.0,
            coordinator_flags: Vec::new(),
            default_dashboard: false,
            workers: BTreeMap::new(),
            coordinator: None,
            started: 0,
        }
    }

    /// Starts a cluster with a coordinator and one worker for each name. Each worker has one thread.
    pub(crate) fn start(workers: &[&str]) -> Cluster {
        let mut cluster = Cluster::new();
        cluster.start_all(workers);
        cluster
    }

    /// Starts the coordinator and one worker for each name. Each worker has one thread.
    pub(crate) fn start_all(&mut self, workers: &[&str]) {
        self.start_coordinator();
        for name in workers {
            self.start_worker(name, &["--threads", "1"]);
        }
    }

    /// Sets the options for coordinators that are started later.
    pub(crate) fn set_coordinator_flags(&mut self, flags: &[&str]) {
        self.coordinator_flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    }

    /// Starts a process that writes its output to a file.
    pub(crate) fn spawn(&mut self, mut command: Command) -> Process {
        self.started += 1;
        let log = self.dir.path().join(format!("log-{}", self.started));
        let file = File::create(&log).unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        command.envs(self.env.iter().cloned());
        let child = command.spawn().unwrap();
        Process { child, log }
    }

    /// Returns a command that runs the program on the given host.
    fn program(&self, host: &str) -> Command {
        let Some(hosts) = &self.hosts else {
            return hatebeam();
        };
        let mut command = hosts.command(host);
        command.arg(env!("CARGO_BIN_EXE_hatebeam-under-test"));
        program::isolate(&mut command);
        command
    }

    fn coordinator_command(&self, port: u16) -> Command {
        let mut command = self.program(COORDINATOR);
        command.arg("coordinator");
        self.store.configure(&mut command);
        let flags = &self.coordinator_flags;
        if !self.default_dashboard && !flags.iter().any(|flag| flag == "--dashboard") {
            command.args(["--dashboard", "none"]);
        }
        command.args(flags);
        match &self.hosts {
            None => command.args(["--listen", &format!("127.0.0.1:{port}")]),
            Some(_) => command.args(["--insecure-bind", "--listen", &format!("0.0.0.0:{port}")]),
        };
        command.args(["--lost-after", &self.lost_after.to_string()]);
        command
    }

    /// Starts a coordinator and waits until it listens.
    pub(crate) fn start_coordinator(&mut self) {
        let command = self.coordinator_command(self.port);
        let coordinator = self.spawn(command);
        coordinator.wait_for_log("listening on");
        self.coordinator = Some(coordinator);
    }

    /// Starts another coordinator with the same store. Returns the process and its port.
    pub(crate) fn start_second_coordinator(&mut self) -> (Process, u16) {
        let port = free_port();
        let command = self.coordinator_command(port);
        (self.spawn(command), port)
    }

    pub(crate) fn coordinator(&mut self) -> &mut Process {
        self.coordinator.as_mut().unwrap()
    }

    /// Kills the coordinator and starts another one at the same address.
    pub(crate) fn restart_coordinator(&mut self) {
        self.coordinator().kill();
        self.start_coordinator();
    }

    pub(crate) fn start_worker(&mut self, name: &str, flags: &[&str]) {
        let dir = self.dir.path().join(format!("{name}-{}", self.started));
        let mut command = self.program(name);
        command.arg("worker");
        self.store.configure(&mut command);
        command.args(["--name", name, "--dir"]).arg(&dir);
        command.args(["--coordinator", &self.uri()]).args(flags);
        if let Some(hosts) = &self.hosts {
            let address = format!("{}:7801", hosts.address(name));
            command.args(["--insecure-bind", "--listen", &address]);
        }
        let worker = self.spawn(command);
        self.workers.insert(name.to_owned(), worker);
    }

    pub(crate) fn kill_worker(&mut self, name: &str) {
        self.workers.remove(name).unwrap().kill();
    }

    pub(crate) fn uri(&self) -> String {
        let hosts = self.hosts.as_ref();
        let host = hosts.map_or("127.0.0.1".to_owned(), |hosts| hosts.address(COORDINATOR));
        format!("http://{host}:{}", self.port)
    }

    /// Runs a client command and waits until it exits.
    pub(crate) fn client(&self, args: &[&str]) -> Output {
        let mut command = self.program(COORDINATOR);
        command.args(args).args(["--coordinator", &self.uri()]);
        command.output().unwrap()
    }

    #[track_caller]
    pub(crate) fn submit(&self, args: &[&str]) -> Value {
        let output = self.client(&[&["submit", "--json"], args].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    #[track_caller]
    pub(crate) fn submit_name(&self, args: &[&str]) -> String {
        self.submit(args)["run"].as_str().unwrap().to_owned()
    }

    /// Returns the status of the only run, or `None` if there is no run or the coordinator does not answer.
    pub(crate) fn status(&self) -> Option<Value> {
        let output = self.client(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        status["runs"].get(0).cloned()
    }

    /// Returns the status of each worker.
    pub(crate) fn worker_status(&self) -> Vec<Value> {
        let output = self.client(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["workers"].as_array().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn wait_for_depth(&self, depth: u64) {
        let is_there = |run: Value| run["depth"].as_u64() >= Some(depth);
        wait_until(
            || self.status().is_some_and(is_there),
            || format!("depth {depth} is not committed: {}", self.logs()),
        );
    }

    /// Returns the folder of a run. The store must be a folder.
    pub(crate) fn run_folder(&self, run: &str) -> PathBuf {
        Path::new(&self.store.location).join("runs").join(run)
    }

    /// Returns the manifest of a run. The store must be a folder.
    pub(crate) fn manifest(&self, run: &str) -> Value {
        let manifest = fs::read(self.run_folder(run).join("manifest.json")).unwrap();
        serde_json::from_slice(&manifest).unwrap()
    }

    /// Returns the lists of tables that the manifest of a run names.
    pub(crate) fn lists_of_tables(&self, run: &str) -> Vec<Value> {
        let (folder, manifest) = (self.run_folder(run), self.manifest(run));
        let depths = manifest["depths"].as_array().unwrap().iter();
        let keys = depths.filter_map(|depth| depth["tables"]["key"].as_str());
        let read = |key| serde_json::from_slice(&fs::read(folder.join(key)).unwrap()).unwrap();
        keys.map(read).collect()
    }

    /// Asserts that the folder of a run contains exactly the tables (files with the wells of one shard at one depth) that
    /// the manifest references.
    #[track_caller]
    pub(crate) fn assert_no_unreferenced_tables(&self, run: &str) {
        let folder = self.run_folder(run);
        let mut named = BTreeSet::new();
        for list in self.lists_of_tables(run) {
            let keys = list["tables"].as_array().unwrap().iter();
            named.extend(keys.map(|table| folder.join(table["key"].as_str().unwrap())));
        }
        // The coordinator deletes unreferenced tables only after the manifest records the end of the run, so they may
        // remain for a short time.
        let patience = Instant::now() + Duration::from_secs(30);
        let mut found = tables_in(&folder);
        while found != named && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(100));
            found = tables_in(&folder);
        }
        assert_eq!(found, named);
    }

    pub(crate) fn logs(&self) -> String {
        let all = self.coordinator.iter().chain(self.workers.values());
        all.map(Process::log).collect::<Vec<_>>().join("\n\n")
    }

    #[track_caller]
    pub(crate) fn watch(&self) -> RunOutput {
        let output = self.client(&["watch", "--json", "--quiet"]);
        let run = RunOutput::parse(&output);
        assert!(
            output.status.success(),
            "{}\n{}\n{:?}",
            String::from_utf8_lossy(&output.stderr),
            self.logs(),
            run.end
        );
        run
    }
}

/// JSON output of a run: an object for each depth, and an object for the end.
#[derive(Debug)]
pub(crate) struct RunOutput {
    pub(crate) depths: BTreeMap<u64, Value>,
    pub(crate) end: Value,
}

impl RunOutput {
    pub(crate) fn parse(output: &Output) -> RunOutput {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let mut lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let end = lines.pop().unwrap_or_default();
        let depth = |line: Value| (line["depth"].as_u64().unwrap(), line);
        RunOutput {
            depths: lines.into_iter().map(depth).collect(),
            end,
        }
    }

    /// Runs a search in one process with the state folder `dir`.
    pub(crate) fn of_one_process(args: &[&str], dir: &Path) -> RunOutput {
        let mut command = hatebeam();
        command.args(["run", "--json", "--quiet", "--state"]);
        let output = command.arg(dir).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        RunOutput::parse(&output)
    }

    /// Asserts that two runs have the same digests and results. Times and costs may differ.
    #[track_caller]
    pub(crate) fn assert_same(&self, expected: &RunOutput) {
        assert!(!expected.depths.is_empty());
        for (depth, expected) in &expected.depths {
            let found = self.depths.get(depth);
            let found = found.unwrap_or_else(|| panic!("no depth {depth}: {:?}", self.end));
            for key in [
                "digest",
                "wells",
                "best_lines",
                "best_eval",
                "median_eval",
                "worst_eval",
                "children",
            ] {
                assert_eq!(found[key], expected[key], "{key} of depth {depth}");
            }
        }
        for key in ["best_lines", "pieces", "replay", "depth"] {
            assert_eq!(self.end[key], expected.end[key], "{key}");
        }
    }
}

/// Returns the paths of the tables in a run's folder. Ignores folders that are deleted during the call.
fn tables_in(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let depths = entries(&folder.join("frontier"));
    depths.iter().flat_map(|depth| entries(depth)).collect()
}
