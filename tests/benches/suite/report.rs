//! The tables and charts, on standard output and in `RESULTS.md`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::drain::DrainResult;
use crate::harness::backend::Backend;
use crate::machine;
use crate::pages::PageTimes;
use crate::plan::Plan;
use crate::queueing::QueuedJobs;
use crate::rounds::{Best, Measurement};

/// A table of text. The first row is its header.
#[derive(Debug)]
struct Table {
    title: &'static str,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(title: &'static str, head: &[&str]) -> Self {
        let head = head.iter().map(|&cell| cell.to_owned()).collect();
        Self {
            title,
            rows: vec![head],
        }
    }

    /// Adds a row and prints it.
    fn add<const COUNT: usize>(&mut self, cells: [String; COUNT]) {
        println!("{}", cells.join(" | "));
        self.rows.push(cells.to_vec());
    }

    /// Returns the table in Markdown, or an empty text if it has only a header.
    fn markdown(&self) -> String {
        if self.rows.len() == 1 {
            return String::new();
        }
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| format!(" {cell:width$} "));
            format!("|{}|\n", cells.collect::<Vec<_>>().join("|"))
        };
        let mut text = format!("## {}\n\n{}", self.title, line(&self.rows[0]));
        let dashes = widths.iter().map(|width| "-".repeat(width + 2));
        text.push_str(&format!("|{}|\n", dashes.collect::<Vec<_>>().join("|")));
        self.rows[1..]
            .iter()
            .for_each(|row| text.push_str(&line(row)));
        text.push('\n');
        text
    }
}

/// Values of a store by size.
type Curve = BTreeMap<u32, f64>;

/// The results so far.
#[derive(Debug)]
pub(crate) struct Report {
    notes: Vec<String>,
    requests: Table,
    jobs: Table,
    queueing: Table,
    starts: Table,
    pages: Table,
    billing: Table,
    /// Curves by the measured quantity, including its unit, and by store.
    growth: BTreeMap<String, BTreeMap<&'static str, Curve>>,
    memory: Table,
}

impl Report {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut report = Self {
            notes: Vec::new(),
            requests: Table::new(
                "Requests",
                &[
                    "request",
                    "store",
                    "CPU us, best",
                    "median",
                    "x bare hyper, best",
                    "median",
                    "goal",
                    "responses/s",
                ],
            ),
            jobs: Table::new(
                "Jobs",
                &["jobs", "store", "jobs/s", "goal", "CPU us per job"],
            ),
            queueing: Table::new(
                "Queueing jobs, one per unit of work, 32 concurrent callers",
                &["lanes", "store", "jobs/s", "goal", "runs per unit"],
            ),
            starts: Table::new(
                "Start of a job after the commit that queued it",
                &["where", "store", "p50 ms", "p95 ms", "goal p95 ms"],
            ),
            pages: Table::new(
                "Pages of 50 of long lists",
                &["list", "store", "first us", "page", "us", "x first"],
            ),
            billing: Table::new("Billing", &["what", "store", "value", "goal"]),
            growth: BTreeMap::new(),
            memory: Table::new("Memory", &["what", "store", "resident", "goal"]),
        };
        if !plan.backends.contains(&Backend::Postgres) {
            report.note("Postgres was not measured: CORE_TEST_POSTGRES_URL is not set.");
        }
        report
    }

    /// Adds a note about the measurement.
    pub(crate) fn note(&mut self, note: &str) {
        println!("{note}");
        self.notes.push(note.to_owned());
    }

    pub(crate) fn bare(&mut self, measured: &Measurement) {
        self.request_row("bare hyper", "-", measured, String::new());
    }

    pub(crate) fn request(
        &mut self,
        name: &str,
        backend: Backend,
        measured: &Measurement,
        goal: Option<f64>,
    ) {
        let goal = goal.map(|goal| format!("{goal}")).unwrap_or_default();
        self.request_row(name, backend.name(), measured, goal);
    }

    fn request_row(&mut self, name: &str, store: &str, measured: &Measurement, goal: String) {
        let (cpu, by_bare) = (measured.cpu_us(), measured.by_bare());
        let both = |best: Best, digits: usize| {
            (
                format!("{:.digits$}", best.best),
                format!("{:.digits$}", best.median),
            )
        };
        let ((cpu, cpu_median), (by_bare, by_bare_median)) = (both(cpu, 1), both(by_bare, 2));
        self.requests.add([
            name.to_owned(),
            store.to_owned(),
            cpu,
            cpu_median,
            by_bare,
            by_bare_median,
            goal,
            format!("{:.0}", measured.per_second()),
        ]);
    }

    /// Adds the cost of the server and of the library alone.
    pub(crate) fn server(&mut self, library: &Measurement, server: &Measurement, goal_us: f64) {
        let name = "gateway -> platform, session cached:";
        let goal = String::new();
        self.request_row(&format!("{name} library"), "memory", library, goal);
        let more = server.cpu_us().best - library.cpu_us().best;
        let goal = format!("+{goal_us} us, actual {more:+.1}");
        self.request_row(&format!("{name} core-server"), "memory", server, goal);
    }

    pub(crate) fn memory(&mut self, what: &str, backend: Backend, value: String, goal: &str) {
        let store = backend.name().to_owned();
        self.memory
            .add([what.to_owned(), store, value, goal.to_owned()]);
    }

    pub(crate) fn add_drain_result(
        &mut self,
        backend: Backend,
        lanes: u32,
        steps: usize,
        drained: DrainResult,
        goal: Option<f64>,
    ) {
        let steps_text = if steps == 1 { "1 step" } else { "3 steps" };
        let note = if drained.all { "" } else { " (incomplete)" };
        self.jobs.add([
            format!("{steps_text}, {lanes} lanes{note}"),
            backend.name().to_owned(),
            format!("{:.0}", drained.per_second),
            goal.map(|goal| format!("{goal}")).unwrap_or_default(),
            format!("{:.0}", drained.cpu_us),
        ]);
        if steps == 1 {
            self.curve(
                "jobs per second, by number of lanes",
                backend,
                lanes,
                drained.per_second,
            );
        }
    }

    /// Adds the result of concurrent callers that queued jobs in so many lanes; zero means one lane per job.
    pub(crate) fn add_queued_jobs(
        &mut self,
        backend: Backend,
        lanes: u32,
        queued: QueuedJobs,
        goal: Option<f64>,
    ) {
        let lanes = match lanes {
            0 => "one per job".to_owned(),
            lanes => lanes.to_string(),
        };
        self.queueing.add([
            lanes,
            backend.name().to_owned(),
            format!("{:.0}", queued.per_second),
            goal.map(|goal| format!("{goal}")).unwrap_or_default(),
            format!("{:.2}", queued.runs),
        ]);
    }

    /// Adds the start times of jobs, in sorted milliseconds.
    pub(crate) fn starts(&mut self, place: &str, backend: Backend, waits: Vec<f64>, goal: f64) {
        let percentile = |percent: usize| {
            let at = (waits.len() * percent / 100).min(waits.len() - 1);
            format!("{:.1}", waits[at])
        };
        self.starts.add([
            place.to_owned(),
            backend.name().to_owned(),
            percentile(50),
            percentile(95),
            format!("{goal}"),
        ]);
    }

    /// Adds a result of billing.
    pub(crate) fn billing(&mut self, what: &str, backend: Backend, value: f64, goal: Option<f64>) {
        self.billing.add([
            what.to_owned(),
            backend.name().to_owned(),
            format!("{value:.0}"),
            goal.map(|goal| format!("{goal}")).unwrap_or_default(),
        ]);
    }

    /// Adds a time of billing in milliseconds, which is to be below a goal.
    pub(crate) fn billing_time(&mut self, what: &str, backend: Backend, millis: f64, goal: f64) {
        self.billing.add([
            what.to_owned(),
            backend.name().to_owned(),
            format!("{millis:.2}"),
            format!("< {goal}"),
        ]);
    }

    /// Adds the times of the first page and a later page of a list.
    pub(crate) fn pages(&mut self, backend: Backend, page: u32, took: &PageTimes) {
        self.pages.add([
            took.list.clone(),
            backend.name().to_owned(),
            format!("{:.0}", took.first),
            page.to_string(),
            format!("{:.0}", took.later),
            format!("{:.2}", took.later / took.first),
        ]);
    }

    /// Adds the cost of a request at a number of rows, relative to bare hyper.
    pub(crate) fn growth_point(&mut self, name: &str, backend: Backend, rows: u32, by_bare: f64) {
        println!("{name} of {rows}, {}: {by_bare:.2}", backend.name());
        let title = format!("registry {name}, x bare hyper, by number of platforms");
        self.curve(&title, backend, rows, by_bare);
    }

    fn curve(&mut self, title: &str, backend: Backend, size: u32, value: f64) {
        let stores = self.growth.entry(title.to_owned()).or_default();
        stores
            .entry(backend.name())
            .or_default()
            .insert(size, value);
    }

    /// Prints the complete report, and writes it to the file if `write` is set.
    pub(crate) fn end(self, write: bool) {
        let mut text = "# Cost of the suite\n\nWritten by `cargo bench -p core-tests -- --write`. \
            Processor time is that of the serving process, in the best and the median round; bare hyper responds `ok` \
            in the same round.\n\n"
            .to_owned();
        for line in machine::lines().iter().chain(&self.notes) {
            text.push_str(&format!("- {line}\n"));
        }
        text.push('\n');
        for table in [
            &self.requests,
            &self.memory,
            &self.jobs,
            &self.queueing,
            &self.starts,
            &self.pages,
            &self.billing,
        ] {
            text.push_str(&table.markdown());
        }
        if !self.growth.is_empty() {
            text.push_str("## Growth\n\n");
        }
        for (title, stores) in &self.growth {
            text.push_str(&chart(title, stores));
        }
        println!("\n{text}");
        if write {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/RESULTS.md");
            std::fs::write(file, text).unwrap();
        }
    }
}

/// Returns a bar chart. The longest bar stands for the largest value.
fn chart(title: &str, stores: &BTreeMap<&'static str, Curve>) -> String {
    const LONGEST: f64 = 40.0;
    let values = stores.values().flat_map(BTreeMap::values).copied();
    let largest = values.fold(f64::EPSILON, f64::max);
    let mut text = format!("{title}\n\n```text\n");
    for (store, curve) in stores {
        for (size, value) in curve {
            let length = (value / largest * LONGEST).round();
            let bar: String = (0..40)
                .filter(|&at| f64::from(at) < length)
                .map(|_| '#')
                .collect();
            text.push_str(&format!("{store:8} {size:>9}  {value:>9.1}  {bar}\n"));
        }
    }
    text.push_str("```\n\n");
    text
}
