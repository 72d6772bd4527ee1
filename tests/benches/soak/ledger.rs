//! The writes that the server has acknowledged, and must still show at the end.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::client::World;
use crate::harness::http::{Connection, call};
use crate::harness::installation::Person;

/// The acknowledged writes.
#[derive(Debug, Default)]
struct Entries {
    /// Names of entities, by the user's number and the path.
    entities: HashMap<(usize, String), String>,
    jobs: Vec<(usize, String)>,
    deployments: Vec<(usize, String)>,
}

/// The acknowledged writes, shared by all clients.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Entries>);

impl Ledger {
    /// Records the current name of the entity at this path.
    pub(crate) fn entity(&self, person: usize, path: &str, name: &str) {
        let key = (person, path.to_owned());
        self.0.lock().unwrap().entities.insert(key, name.to_owned());
    }

    /// Removes an entity, because it is unknown whether its last change was made.
    pub(crate) fn forget(&self, person: usize, path: &str) {
        let key = (person, path.to_owned());
        self.0.lock().unwrap().entities.remove(&key);
    }

    pub(crate) fn job(&self, person: usize, id: String) {
        self.0.lock().unwrap().jobs.push((person, id));
    }

    pub(crate) fn deployment(&self, person: usize, id: String) {
        self.0.lock().unwrap().deployments.push((person, id));
    }

    /// Waits until all jobs and deployments have ended. Returns their number, or `None` if the limit was reached.
    pub(crate) fn until_jobs_end(&self, world: &World, limit: Duration) -> Option<usize> {
        let since = Instant::now();
        let jobs = self.0.lock().unwrap().jobs.clone();
        for (person, id) in &jobs {
            let person = &world.people[*person];
            let path = format!("/api/v1/provisioning/jobs/{id}?wait=5");
            while !has_ended(world, person, &path, &["COMPLETED", "FAILED"]) {
                if since.elapsed() > limit {
                    return None;
                }
            }
        }
        let deployments = self.0.lock().unwrap().deployments.clone();
        for (person, id) in &deployments {
            let person = &world.people[*person];
            let path = deployment_path(person, id);
            let ended = ["active", "failure", "canceled"];
            while !has_ended(world, person, &format!("{path}?wait=5"), &ended) {
                if since.elapsed() > limit {
                    return None;
                }
            }
        }
        Some(jobs.len() + deployments.len())
    }

    /// Reads everything that was acknowledged. Returns the number of checks, and the differences.
    pub(crate) async fn check(&self, world: &World) -> (usize, Vec<String>) {
        let mut checks = Vec::new();
        {
            let entries = self.0.lock().unwrap();
            for ((person, path), name) in &entries.entities {
                checks.push((*person, path.clone(), "name", name.clone()));
            }
            for (person, id) in &entries.jobs {
                let path = format!("/api/v1/provisioning/jobs/{id}");
                checks.push((*person, path, "status", "COMPLETED".to_owned()));
            }
            for (person, id) in &entries.deployments {
                let path = deployment_path(&world.people[*person], id);
                checks.push((*person, path, "status", "active".to_owned()));
            }
        }
        let mut lost = Vec::new();
        let mut connection = Connection::open(world.gateway).await.unwrap();
        for (person, path, field, wanted) in &checks {
            let request = world.people[*person].request("GET", path, None);
            let (status, body) = connection.ask(&request).await.unwrap();
            let json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
            if status != 200 || json[*field] != wanted.as_str() {
                lost.push(format!(
                    "{path}: {status} {} instead of {wanted}",
                    json[*field]
                ));
            }
        }
        (checks.len(), lost)
    }
}

fn has_ended(world: &World, person: &Person, path: &str, ended: &[&str]) -> bool {
    let reply = call(world.gateway, &person.request("GET", path, None));
    ended.contains(&reply.text("status").as_str())
}

fn deployment_path(person: &Person, id: &str) -> String {
    format!("/api/v1/cli/platforms/{}/deployments/{id}", person.platform)
}
