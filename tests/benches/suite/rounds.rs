//! Measures in rounds: bare hyper first, then all targets, so that a disturbance of the machine affects a whole round.

use crate::bare;
use crate::harness::load::{Sample, Target};
use crate::plan::Plan;

/// The results of the rounds for one target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measurement {
    cpu_us: Vec<f64>,
    /// Processor time of a request relative to bare hyper in the same round.
    by_bare: Vec<f64>,
    per_second: Vec<f64>,
}

/// The best and the median round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

impl Measurement {
    fn add(&mut self, sample: Sample, bare: Sample) {
        self.cpu_us.push(sample.cpu_us);
        // A round that is too short for the kernel's clock has no result.
        let by_bare = if bare.cpu_us > 0.0 {
            sample.cpu_us / bare.cpu_us
        } else {
            0.0
        };
        self.by_bare.push(by_bare);
        self.per_second.push(sample.per_second);
    }

    /// Microseconds of processor time per request.
    pub(crate) fn cpu_us(&self) -> Best {
        smallest(&self.cpu_us)
    }

    pub(crate) fn by_bare(&self) -> Best {
        smallest(&self.by_bare)
    }

    /// Responses per second in the best round.
    pub(crate) fn per_second(&self) -> f64 {
        self.per_second.iter().copied().fold(0.0, f64::max)
    }
}

fn smallest(values: &[f64]) -> Best {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    Best {
        best: values[0],
        median: values[values.len() / 2],
    }
}

/// Measures bare hyper and the targets, in the planned number of rounds. The first result is that of bare hyper.
pub(crate) fn measure(plan: &Plan, targets: &[Target]) -> Vec<Measurement> {
    let (bare_process, bare) = bare::start();
    let mut measured = vec![Measurement::default(); targets.len() + 1];
    for _ in 0..plan.rounds {
        let reference = bare.sample(plan.times);
        measured[0].add(reference, reference);
        for (target, measured) in targets.iter().zip(&mut measured[1..]) {
            measured.add(target.sample(plan.times), reference);
        }
    }
    bare_process.end();
    measured
}
