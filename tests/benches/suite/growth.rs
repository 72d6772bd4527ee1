//! Measures how the cost of requests grows with the number of records.

use crate::fill::Fill;
use crate::harness::backend::{Backend, Place};
use crate::plan::Plan;
use crate::report::Report;
use crate::requests::{ServerConfig, get_one, page_of_20};
use crate::rounds;

pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    for backend in &plan.backends {
        let place = Place::new(*backend);
        let mut filled = 0;
        for rows in &plan.rows {
            let (location, added) = (place.location.clone(), filled..*rows);
            Fill {
                location,
                rows: added,
            }
            .in_child();
            filled = *rows;
            measure_at(plan, report, *backend, &place, *rows);
        }
    }
}

fn measure_at(plan: &Plan, report: &mut Report, backend: Backend, place: &Place, rows: u32) {
    let served = ServerConfig {
        location: place.location.clone(),
        platforms: rows,
        session_cache: true,
    };
    let installation = served.start_filled();
    let targets = [get_one(&installation, rows), page_of_20(&installation)];
    let measured = rounds::measure(plan, &targets);
    report.growth_point("GET one", backend, rows, measured[1].by_bare().best);
    report.growth_point("page of 20", backend, rows, measured[2].by_bare().best);
    installation.process.end();
}
