//! A client that sends requests for one user after the other, and records the acknowledged writes.

use std::net::SocketAddr;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::class::Class;
use crate::harness::http::{Connection, request};
use crate::harness::installation::{IAM, Installation, Person, credentials};
use crate::ledger::Ledger;

/// The addresses of the server, and its users.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) gateway: SocketAddr,
    iam: SocketAddr,
    pub(crate) people: Vec<Person>,
    /// Credentials of users that only sign in. They are separate, because each user's oldest sessions end when there
    /// are too many.
    visitors: Vec<Value>,
    site: Vec<u8>,
}

impl World {
    pub(crate) fn sign_up(installation: &Installation, people: usize) -> Self {
        let sign_up = |name: String| installation.sign_up(&name, IAM);
        let visitors = (0..people).map(|number| format!("visitor-{number}"));
        let visitors: Vec<String> = visitors.collect();
        for visitor in &visitors {
            sign_up(visitor.clone());
        }
        Self {
            gateway: installation.gateway,
            iam: installation.iam,
            people: (0..people)
                .map(|number| sign_up(format!("person-{number}")))
                .collect(),
            visitors: visitors.iter().map(|name| credentials(name)).collect(),
            site: site(),
        }
    }

    /// Returns the same users at a restarted server.
    pub(crate) fn moved_to(&self, installation: &Installation) -> Self {
        Self {
            gateway: installation.gateway,
            iam: installation.iam,
            people: self.people.clone(),
            visitors: self.visitors.clone(),
            site: self.site.clone(),
        }
    }
}

/// Returns a small site.
fn site() -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let content = b"<h1>live</h1>";
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    archive
        .append_data(&mut header, "index.html", content.as_slice())
        .unwrap();
    archive.into_inner().unwrap().finish().unwrap()
}

/// A client with its connections.
pub(crate) struct Client {
    world: Arc<World>,
    ledger: Arc<Ledger>,
    gateway: Connection,
    iam: Connection,
    /// The entity that it created last. No other client changes this entity.
    own: Option<(usize, String)>,
}

impl Client {
    pub(crate) async fn open(world: &Arc<World>, ledger: &Arc<Ledger>) -> std::io::Result<Self> {
        Ok(Self {
            gateway: Connection::open(world.gateway).await?,
            iam: Connection::open(world.iam).await?,
            world: Arc::clone(world),
            ledger: Arc::clone(ledger),
            own: None,
        })
    }

    /// Sends a request of the class. An error contains the response of the server.
    pub(crate) async fn perform(&mut self, class: Class, number: u64) -> Result<(), String> {
        let count = self.world.people.len() as u64;
        let person = usize::try_from(number % count).unwrap();
        match class {
            Class::Read => self.read(person, number / count).await,
            Class::Write => self.write(person, number).await,
            Class::SignIn => self.sign_in(person).await,
            Class::Job => self.job(person).await,
            Class::Deploy => self.deploy(person).await,
        }
    }

    async fn read(&mut self, person: usize, which: u64) -> Result<(), String> {
        let world = Arc::clone(&self.world);
        let person = &world.people[person];
        let path = match which % 4 {
            0 => person.at("/entities?limit=20"),
            1 => person.at("/resources"),
            2 => {
                let request = person.request("GET", "/api/auth/get-session", None);
                return ask(&mut self.iam, &request).await.map(drop);
            }
            _ => person.at(""),
        };
        let request = person.request("GET", &path, None);
        ask(&mut self.gateway, &request).await.map(drop)
    }

    /// Renames the client's own entity if it has one, otherwise creates one.
    async fn write(&mut self, person: usize, number: u64) -> Result<(), String> {
        let world = Arc::clone(&self.world);
        let name = format!("Name {number}");
        if let Some((owner, path)) = self.own.take() {
            let body = json!({ "name": name });
            let request = world.people[owner].request("PATCH", &path, Some(&body));
            let changed = ask(&mut self.gateway, &request).await;
            match &changed {
                Ok(_) => self.ledger.entity(owner, &path, &name),
                Err(_) => self.ledger.forget(owner, &path),
            }
            return changed.map(drop);
        }
        let owner = &world.people[person];
        let body = json!({ "name": name, "slug": format!("entity-{number}"), "type": "tenant" });
        let request = owner.request("POST", &owner.at("/entities"), Some(&body));
        let entity = ask(&mut self.gateway, &request).await?;
        let path = owner.at(&format!("/entities/{}", entity["id"].as_str().unwrap()));
        self.ledger.entity(person, &path, &name);
        self.own = Some((person, path));
        Ok(())
    }

    pub(crate) async fn sign_in(&mut self, visitor: usize) -> Result<(), String> {
        let headers = [("content-type", "application/json")];
        let body = self.world.visitors[visitor].to_string();
        let request = request("POST", "/api/auth/sign-in/email", &headers, body.as_bytes());
        ask(&mut self.iam, &request).await.map(drop)
    }

    async fn job(&mut self, person: usize) -> Result<(), String> {
        let owner = &self.world.people[person];
        let body = json!({
            "platformId": owner.platform,
            "planTier": "starter",
            "billingEmail": "bills@example.org",
        });
        let request = owner.request("POST", "/api/v1/provisioning/platform", Some(&body));
        let queued = ask(&mut self.gateway, &request).await?;
        let id = queued["jobId"].as_str().unwrap().to_owned();
        self.ledger.job(person, id);
        Ok(())
    }

    async fn deploy(&mut self, person: usize) -> Result<(), String> {
        let owner = &self.world.people[person];
        let path = format!("/api/v1/cli/platforms/{}/deploy", owner.platform);
        let bearer = format!("Bearer {}", owner.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/octet-stream"),
        ];
        let request = request("POST", &path, &headers, &self.world.site);
        let accepted = ask(&mut self.gateway, &request).await?;
        let id = accepted["deploymentId"].as_str().unwrap().to_owned();
        self.ledger.deployment(person, id);
        Ok(())
    }
}

/// Sends a request. Returns the body of a successful response.
async fn ask(connection: &mut Connection, request: &[u8]) -> Result<Value, String> {
    let answer = connection.ask(request).await;
    let (status, body) = answer.map_err(|error| error.to_string())?;
    if (200..300).contains(&status) {
        return Ok(serde_json::from_slice(body).unwrap_or_default());
    }
    Err(format!("{status}: {}", String::from_utf8_lossy(body)))
}
