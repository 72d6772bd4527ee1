//! Rounds of asking: bare hyper first, then everything else, so that what disturbs the machine disturbs all of a round.

use crate::bare;
use crate::harness::load::{Sample, Target};
use crate::plan::Plan;

/// What the rounds showed of one target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    cpu_us: Vec<f64>,
    /// Processor time of a request by that of bare hyper in the same round.
    by_bare: Vec<f64>,
    per_second: Vec<f64>,
}

/// The best round and the one in the middle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) best: f64,
    pub(crate) median: f64,
}

impl Measured {
    fn add(&mut self, sample: Sample, bare: Sample) {
        self.cpu_us.push(sample.cpu_us);
        // A round too short for the clock of the kernel says nothing.
        let by_bare = if bare.cpu_us > 0.0 {
            sample.cpu_us / bare.cpu_us
        } else {
            0.0
        };
        self.by_bare.push(by_bare);
        self.per_second.push(sample.per_second);
    }

    /// Microseconds of processor time for a request.
    pub(crate) fn cpu_us(&self) -> Best {
        smallest(&self.cpu_us)
    }

    pub(crate) fn by_bare(&self) -> Best {
        smallest(&self.by_bare)
    }

    /// Requests answered in a second, in the best round.
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

/// Measures bare hyper and the targets, in as many rounds as planned. Bare hyper comes first in the answer.
pub(crate) fn measure(plan: &Plan, targets: &[Target]) -> Vec<Measured> {
    let (bare_process, bare) = bare::start();
    let mut measured = vec![Measured::default(); targets.len() + 1];
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
