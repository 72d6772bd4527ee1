//! The records created so far, as a client knows them.

/// The kinds of records that operations create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Platform,
    Entity,
    Resource,
    Stack,
    DnsRecord,
    Domain,
    Deployment,
    /// A secret of a resource. The client chooses its name.
    Secret,
    /// A configuration key. Every key exists from the start.
    ConfigKey,
}

/// A created record and its platform.
#[derive(Clone, Debug)]
pub(super) struct CreatedRecord {
    thing: RecordKind,
    pub(super) id: String,
    pub(super) platform: String,
    /// The id of the record above it in paths; `None` if it is directly below its platform.
    parent: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct CreatedRecords(Vec<CreatedRecord>);

impl CreatedRecords {
    pub(super) fn add(&mut self, thing: RecordKind, id: &str, path: &[String]) {
        self.0.push(CreatedRecord {
            thing,
            id: id.to_owned(),
            platform: path.first().map_or(id, String::as_str).to_owned(),
            parent: path.get(1).cloned(),
        });
    }

    /// Returns a record of the kind, chosen by `pick`. If there is none, returns a record that does not exist.
    pub(super) fn pick_record(&self, thing: RecordKind, pick: usize) -> CreatedRecord {
        let of_kind: Vec<&CreatedRecord> =
            self.0.iter().filter(|made| made.thing == thing).collect();
        let Some(count) = std::num::NonZero::new(of_kind.len()) else {
            return CreatedRecord {
                thing,
                id: "missing".to_owned(),
                platform: self.any_platform(pick),
                parent: None,
            };
        };
        of_kind[pick % count].clone()
    }

    fn any_platform(&self, pick: usize) -> String {
        let platforms: Vec<&CreatedRecord> = self
            .0
            .iter()
            .filter(|m| m.thing == RecordKind::Platform)
            .collect();
        match platforms.len() {
            0 => "missing".to_owned(),
            count => platforms[pick % count].id.clone(),
        }
    }

    /// Returns the id of a record of the kind, chosen by `pick`.
    pub(super) fn pick(&self, thing: RecordKind, pick: usize) -> String {
        self.pick_record(thing, pick).id
    }

    /// Returns the id of the parent of a record, and for some values of `pick` that of any record of the parent's kind.
    pub(super) fn parent_of(&self, kind: RecordKind, id: &str, pick: usize) -> String {
        let parent = self.0.iter().find(|made| made.id == id);
        match parent.and_then(|made| made.parent.clone()) {
            Some(parent) if !pick.is_multiple_of(6) => parent,
            _ => self.pick(kind, pick),
        }
    }
}
