//! A name server on this machine, for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::rdata::{CNAME, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;

/// How long its answers may be kept, in seconds.
const TTL: u32 = 3600;

/// A name server on a UDP port of the loopback interface that knows the names it is told and no others. It ends when it is
/// dropped.
#[derive(Debug)]
pub struct LoopbackDns {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Zone {
    records: BTreeMap<String, Vec<RData>>,
    failing: BTreeSet<String>,
    silent: BTreeSet<String>,
}

impl LoopbackDns {
    /// Begins to answer.
    ///
    /// # Errors
    /// When there is no port.
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

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes a name another name for a name.
    pub fn add_cname(&self, name: &str, target: &str) {
        if let Ok(target) = Name::from_ascii(target) {
            self.add(name, RData::CNAME(CNAME(target)));
        }
    }

    /// Adds a text to a name, in these parts.
    pub fn add_txt(&self, name: &str, parts: &[&str]) {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        self.add(name, RData::TXT(TXT::new(parts)));
    }

    /// Adds an address to a name.
    pub fn add_address(&self, name: &str, address: IpAddr) {
        self.add(name, RData::from(address));
    }

    /// Forgets a name.
    pub fn remove(&self, name: &str) {
        self.zone().records.remove(name);
    }

    /// From now on questions about a name are answered with `SERVFAIL`.
    pub fn fail(&self, name: &str) {
        self.zone().failing.insert(name.to_owned());
    }

    /// From now on questions about a name are not answered.
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
            // A client that is gone misses nothing.
            let _ = socket.send_to(&answer, client).await;
        }
    }
}

fn key_of(name: &Name) -> String {
    let text = name.to_ascii().to_ascii_lowercase();
    text.trim_end_matches('.').to_owned()
}

impl Zone {
    /// `None` for what is no question, and for names that are not answered for.
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
        answer.metadata.response_code = if self.failing.contains(&name) {
            ResponseCode::ServFail
        } else if self.records.contains_key(&name) {
            answer.add_answers(self.chain(query));
            ResponseCode::NoError
        } else {
            ResponseCode::NXDomain
        };
        answer.to_vec().ok()
    }

    /// The records that answer the question, those of the other names for its name first.
    fn chain(&self, query: &Query) -> Vec<Record> {
        let (mut name, kind) = (query.name().clone(), query.query_type());
        let mut chain = Vec::new();
        // Longer than any chain of a test, and not endless in a circle.
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
