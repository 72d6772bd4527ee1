//! The metrics of the process, of the tokio runtime, and of the build.

use core_http::kernel::metrics::{Definition, Metrics, Sample};
use tokio::runtime::Handle;

const BUILD: Definition<1> = Definition {
    name: "core_build_info",
    help: "The version of the suite. The value is always 1.",
    labels: ["version"],
};

const WORKER_THREADS: Definition<0> = Definition {
    name: "core_runtime_workers",
    help: "Threads of the tokio runtime that run tasks.",
    labels: [],
};

const TASKS: Definition<0> = Definition {
    name: "core_runtime_tasks",
    help: "Tasks of the tokio runtime that have not ended.",
    labels: [],
};

const GLOBAL_QUEUE: Definition<0> = Definition {
    name: "core_runtime_global_queue_depth",
    help: "Tasks in the global queue of the tokio runtime, which wait for a thread.",
    labels: [],
};

/// Registers the metrics of the build, of the current tokio runtime, and on Linux of the process.
pub(crate) fn register_process(metrics: &Metrics) {
    metrics.observe_gauge(&BUILD, || {
        vec![Sample::new([env!("CARGO_PKG_VERSION")], 1.0)]
    });
    if let Ok(runtime) = Handle::try_current() {
        register_runtime(metrics, &runtime);
    }
    #[cfg(target_os = "linux")]
    linux::register(metrics);
}

fn register_runtime(metrics: &Metrics, runtime: &Handle) {
    let known = runtime.metrics();
    metrics.observe_gauge(&WORKER_THREADS, move || {
        vec![Sample::new([], known.num_workers() as f64)]
    });
    let known = runtime.metrics();
    metrics.observe_gauge(&TASKS, move || {
        vec![Sample::new([], known.num_alive_tasks() as f64)]
    });
    let known = runtime.metrics();
    metrics.observe_gauge(&GLOBAL_QUEUE, move || {
        vec![Sample::new([], known.global_queue_depth() as f64)]
    });
}

/// The metrics of the process, with the names that clients of Prometheus use. A value that cannot be read is not shown.
#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use super::{Definition, Metrics, Sample};

    const CPU: Definition<0> = Definition {
        name: "process_cpu_seconds_total",
        help: "CPU time that the process has used.",
        labels: [],
    };

    const MEMORY: Definition<0> = Definition {
        name: "process_resident_memory_bytes",
        help: "Memory of the process that is in RAM.",
        labels: [],
    };

    const OPEN_FDS: Definition<0> = Definition {
        name: "process_open_fds",
        help: "Open file descriptors of the process.",
        labels: [],
    };

    const MAX_FDS: Definition<0> = Definition {
        name: "process_max_fds",
        help: "Maximum number of open file descriptors of the process.",
        labels: [],
    };

    const THREADS: Definition<0> = Definition {
        name: "process_threads",
        help: "Threads of the process.",
        labels: [],
    };

    const START: Definition<0> = Definition {
        name: "process_start_time_seconds",
        help: "Unix time at which the process started.",
        labels: [],
    };

    /// Clock ticks per second in files of `/proc`. It is part of the interface of the kernel, and 100 on every
    /// architecture of this program.
    const TICKS_PER_SECOND: f64 = 100.0;

    /// Registers the metrics of the process, which are read when the metrics are rendered.
    pub(super) fn register(metrics: &Metrics) {
        metrics.observe_counter(&CPU, || samples(cpu_seconds()));
        metrics.observe_gauge(&MEMORY, || samples(memory_bytes()));
        metrics.observe_gauge(&OPEN_FDS, || samples(open_fds()));
        metrics.observe_gauge(&MAX_FDS, || samples(max_fds()));
        metrics.observe_gauge(&THREADS, || samples(status("Threads:")));
        metrics.observe_gauge(&START, || samples(start_seconds()));
    }

    fn samples(value: Option<f64>) -> Vec<Sample<0>> {
        value
            .map(|value| Sample::new([], value))
            .into_iter()
            .collect()
    }

    /// Returns a field of `/proc/self/stat`, counted from 1 as in the manual. The name of the program, the second
    /// field, can contain spaces.
    fn stat(field: usize) -> Option<f64> {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        let (_, after_name) = text.rsplit_once(')')?;
        let value = after_name
            .split_ascii_whitespace()
            .nth(field.checked_sub(3)?)?;
        value.parse().ok()
    }

    /// Returns a field of `/proc/self/status`.
    fn status(name: &str) -> Option<f64> {
        let text = fs::read_to_string("/proc/self/status").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    }

    fn cpu_seconds() -> Option<f64> {
        Some((stat(14)? + stat(15)?) / TICKS_PER_SECOND)
    }

    fn memory_bytes() -> Option<f64> {
        // The unit of the file is KiB.
        Some(status("VmRSS:")? * 1024.0)
    }

    fn open_fds() -> Option<f64> {
        let opened = fs::read_dir("/proc/self/fd").ok()?.count();
        // The folder itself is open while it is read.
        Some(opened.saturating_sub(1) as f64)
    }

    fn max_fds() -> Option<f64> {
        let text = fs::read_to_string("/proc/self/limits").ok()?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))?;
        // Without a limit, the value is a word and the gauge is not shown.
        line.split_ascii_whitespace().next()?.parse().ok()
    }

    fn start_seconds() -> Option<f64> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let boot = text.lines().find_map(|line| line.strip_prefix("btime "))?;
        let boot: f64 = boot.trim().parse().ok()?;
        Some(boot + stat(22)? / TICKS_PER_SECOND)
    }
}
