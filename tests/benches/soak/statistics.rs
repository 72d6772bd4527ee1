//! The response times of requests, by class.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::class::Class;

/// The requests of one class since the last report.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfClass {
    /// Response times in microseconds.
    times: Vec<u32>,
    pub(crate) errors: usize,
    first_error: Option<String>,
}

/// The requests of all classes since the last report.
#[derive(Debug, Default)]
pub(crate) struct Statistics(Mutex<[OfClass; Class::ALL.len()]>);

impl Statistics {
    fn lock(&self) -> MutexGuard<'_, [OfClass; Class::ALL.len()]> {
        self.0.lock().unwrap()
    }

    pub(crate) fn add(&self, class: Class, took: Duration, outcome: Result<(), String>) {
        let mut all = self.lock();
        let of_class = &mut all[class as usize];
        match outcome {
            Ok(()) => {
                let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
                of_class.times.push(micros);
            }
            Err(error) => {
                of_class.errors += 1;
                of_class.first_error.get_or_insert(error);
            }
        }
    }

    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> [OfClass; Class::ALL.len()] {
        let mut taken = std::mem::take(&mut *self.lock());
        for of_class in &mut taken {
            of_class.times.sort_unstable();
        }
        taken
    }
}

impl OfClass {
    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// Returns the time in milliseconds within which `percent` percent of the requests were answered.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let at = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(at).map_or(0.0, |us| f64::from(*us) / 1e3)
    }
}

/// Returns one line with the number of requests of each class, and the 50th and 99th percentile in milliseconds.
pub(crate) fn line(of: &[OfClass; Class::ALL.len()]) -> String {
    let part = |class: &Class| {
        let of_class = &of[*class as usize];
        let (p50, p99) = (of_class.percentile(50), of_class.percentile(99));
        let name = class.name();
        let mut part = format!("{name} {} {p50:.1}/{p99:.1} ms", of_class.count());
        if of_class.errors > 0 {
            let first = of_class.first_error.as_deref().unwrap_or_default();
            part.push_str(&format!(" ({} ERRORS, first {first})", of_class.errors));
        }
        part
    };
    Class::ALL.iter().map(part).collect::<Vec<_>>().join(" | ")
}
