//! A name server on the loopback interface, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{CNAME, NS, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;

/// The time to live of the records, in seconds.
const TTL: u32 = 3600;

/// A name server on a UDP port of the loopback interface. It knows only the names that are added to it. Dropping it
/// stops it.
#[derive(Debug)]
pub struct LoopbackDns {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Zone {
    records: BTreeMap<String, Vec<RData>>,
    failing_names: BTreeSet<String>,
    silent: BTreeSet<String>,
}

impl LoopbackDns {
    /// Starts the server.
    ///
    /// # Errors
    /// The error of the operating system if no port is available.
    pub async fn start() -> io::Result<Self> {
        let socket = UdpSocket::bind((IpAddr::from([127, 0, 0, 1]), 0)).await?;
        let address = socket.local_addr()?;
        let zone = Arc::new(Mutex::new(Zone::default()));
        let task = tokio::spawn(serve(socket, Arc::clone(&zone))).abort_handle();
        Ok(Self {
            address,
            zone,
            task,
        })
    }

    /// Returns the address on which the server listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a CNAME record: the name becomes an alias of the target.
    pub fn add_cname(&self, name: &str, target: &str) {
        if let Ok(target) = Name::from_ascii(target) {
            self.add(name, RData::CNAME(CNAME(target)));
        }
    }

    /// Adds a TXT record with these parts to a name.
    pub fn add_txt(&self, name: &str, parts: &[&str]) {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        self.add(name, RData::TXT(TXT::new(parts)));
    }

    /// Adds an A or AAAA record to a name.
    pub fn add_address(&self, name: &str, address: IpAddr) {
        self.add(name, RData::from(address));
    }

    /// Adds an NS record for the root zone, as if this server were recursive.
    pub fn add_root_server(&self, name: &str) {
        if let Ok(name) = Name::from_ascii(name) {
            self.add("", RData::NS(NS(name)));
        }
    }

    /// Removes all records of a name.
    pub fn remove(&self, name: &str) {
        self.zone().records.remove(name);
    }

    /// Responds to queries for the name with `SERVFAIL` from now on.
    pub fn fail(&self, name: &str) {
        self.zone().failing_names.insert(name.to_owned());
    }

    /// Ignores queries for the name from now on.
    pub fn ignore(&self, name: &str) {
        self.zone().silent.insert(name.to_owned());
    }

    fn add(&self, name: &str, data: RData) {
        let mut zone = self.zone();
        zone.records.entry(name.to_owned()).or_default().push(data);
    }

    fn zone(&self) -> MutexGuard<'_, Zone> {
        self.zone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LoopbackDns {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, zone: Arc<Mutex<Zone>>) {
    let mut buffer = [0; 4096];
    while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
        let answer = {
            let zone = zone.lock().unwrap_or_else(PoisonError::into_inner);
            zone.answer(&buffer[..length])
        };
        if let Some(answer) = answer {
            // The client may have closed its socket.
            let _ = socket.send_to(&answer, client).await;
        }
    }
}

fn key_of(name: &Name) -> String {
    let text = name.to_ascii().to_ascii_lowercase();
    text.trim_end_matches('.').to_owned()
}

impl Zone {
    /// Returns the response to a query; `None` for messages that are not queries and for names that are ignored.
    fn answer(&self, request: &[u8]) -> Option<Vec<u8>> {
        let request = Message::from_vec(request).ok()?;
        let query = request.queries.first()?;
        let name = key_of(query.name());
        if self.silent.contains(&name) {
            return None;
        }
        let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
        answer.add_query(query.clone());
        answer.metadata.recursion_available = true;
        answer.metadata.response_code = if self.failing_names.contains(&name) {
            ResponseCode::ServFail
        } else if self.records.contains_key(&name) {
            answer.add_answers(self.chain(query));
            ResponseCode::NoError
        } else {
            ResponseCode::NXDomain
        };
        answer.to_vec().ok()
    }

    /// Returns the records that answer the query. The CNAME records on the way are first.
    fn chain(&self, query: &Query) -> Vec<Record> {
        let (mut name, kind) = (query.name().clone(), query.query_type());
        let mut chain = Vec::new();
        // Longer than any chain in a test. The limit also ends cycles.
        for _ in 0..16 {
            let known = self
                .records
                .get(&key_of(&name))
                .cloned()
                .unwrap_or_default();
            let record = |data: &RData| Record::from_rdata(name.clone(), TTL, data.clone());
            let alias = known.iter().find_map(|data| match data {
                RData::CNAME(target) if kind != RecordType::CNAME => Some((data, target.0.clone())),
                _ => None,
            });
            let Some((data, target)) = alias else {
                let wanted = known.iter().filter(|data| data.record_type() == kind);
                chain.extend(wanted.map(record));
                break;
            };
            chain.push(record(data));
            name = target;
        }
        chain
    }
}
