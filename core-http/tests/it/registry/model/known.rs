//! What was made so far, as whoever asks knows it.

/// What rows make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    Platform,
    Entity,
    Resource,
    Stack,
    DnsRecord,
    Domain,
    Deployment,
    /// Of a resource; whoever asks gives it its name.
    Secret,
    /// There from the beginning.
    ConfigKey,
}

/// A thing that was made, and its platform.
#[derive(Clone, Debug)]
pub(super) struct Made {
    thing: Thing,
    pub(super) id: String,
    pub(super) platform: String,
    /// The id of what it stands below in paths, if it stands below anything but its platform.
    parent: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Known(Vec<Made>);

impl Known {
    pub(super) fn add(&mut self, thing: Thing, id: &str, path: &[String]) {
        self.0.push(Made {
            thing,
            id: id.to_owned(),
            platform: path.first().map_or(id, String::as_str).to_owned(),
            parent: path.get(1).cloned(),
        });
    }

    /// A thing of the kind; one that never was when there is none.
    pub(super) fn made(&self, thing: Thing, pick: usize) -> Made {
        let of_kind: Vec<&Made> = self.0.iter().filter(|made| made.thing == thing).collect();
        let Some(count) = std::num::NonZero::new(of_kind.len()) else {
            return Made {
                thing,
                id: "missing".to_owned(),
                platform: self.any_platform(pick),
                parent: None,
            };
        };
        of_kind[pick % count].clone()
    }

    fn any_platform(&self, pick: usize) -> String {
        let platforms: Vec<&Made> = self
            .0
            .iter()
            .filter(|m| m.thing == Thing::Platform)
            .collect();
        match platforms.len() {
            0 => "missing".to_owned(),
            count => platforms[pick % count].id.clone(),
        }
    }

    /// The id of a thing of the kind.
    pub(super) fn pick(&self, thing: Thing, pick: usize) -> String {
        self.made(thing, pick).id
    }

    /// What a thing stands below, or now and then something else of that kind.
    pub(super) fn parent_of(&self, kind: Thing, id: &str, pick: usize) -> String {
        let parent = self.0.iter().find(|made| made.id == id);
        match parent.and_then(|made| made.parent.clone()) {
            Some(parent) if !pick.is_multiple_of(6) => parent,
            _ => self.pick(kind, pick),
        }
    }
}
