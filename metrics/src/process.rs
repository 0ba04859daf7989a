//! Metrics of the process itself, read from `/proc`. On systems other than Linux, most of them are always 0.

use crate::{ProcessMetrics, Registry};
use hatebeam_host::{memory_in_use, memory_limit};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of ticks per second in the times that `/proc` reports. It is 100 on every processor that Rust supports,
/// independent of the kernel's timer frequency.
const TICKS: f64 = 100.0;

/// The program that runs in a process: the labels of `hatebeam_build_info`.
#[derive(Clone, Debug)]
pub struct Build {
    /// Version of the program.
    pub version: &'static str,
    /// Search fingerprint of the program, which differs between programs that would find different frontiers.
    pub search: String,
    /// Kind of the process, such as `worker`.
    pub process: &'static str,
}

/// Registers and updates the metrics of this process.
pub fn watch_process(registry: &Registry, build: Build) {
    let metrics = ProcessMetrics::register(registry);
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    let started = started.map_or(0.0, |since| since.as_secs_f64());
    metrics.started.set_f64((started * 1e3).round() / 1e3);
    metrics.build.set(vec![
        ("version", build.version.to_owned()),
        ("search", build.search),
        ("process", build.process.to_owned()),
    ]);
    metrics.memory_limit.set(memory_limit().unwrap_or(0));
    registry.before_scrape(move || {
        metrics.memory.set(memory_in_use().unwrap_or(0));
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        metrics.cpu.set(cpu_seconds(&stat).unwrap_or(0.0));
        let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        // One of the open files is the directory that is being listed.
        metrics.open_fds.set(open.saturating_sub(1) as u64);
    });
}

/// Returns the sum of the times spent in user mode and in the kernel, which are fields 14 and 15 of `/proc/self/stat`.
/// The fields are counted from the last closing parenthesis, which ends field 2. This field is the program's name, and
/// may contain parentheses and spaces.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_parsed() {
        let stat = "77 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        for bad in [
            "",
            "1 (x",
            "1 (x) S 1",
            "1 (x) S 1 2 3 4 5 6 7 8 9 10 many 1",
        ] {
            assert_eq!(cpu_seconds(bad), None, "{bad}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn process_metrics_are_exported() {
        let registry = Registry::default();
        let build = Build {
            version: "1.2.3",
            search: "f00d".to_owned(),
            process: "run",
        };
        watch_process(&registry, build);
        let text = registry.text().unwrap();
        assert!(
            text.contains(
                "hatebeam_build_info{version=\"1.2.3\",search=\"f00d\",process=\"run\"} 1.0\n"
            ),
            "{text}"
        );
        for name in [
            "hatebeam_process_resident_memory_bytes",
            "hatebeam_process_open_fds",
            "hatebeam_process_memory_limit_bytes",
        ] {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let value: f64 = line.unwrap().trim().parse().unwrap();
            assert!(value > 2.0, "{name} {value}");
        }
    }
}
