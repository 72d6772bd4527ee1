//! The parts of a stack, in the order in which they are made.

use super::shape::{ResourceDefinition, StackDefinition};
use crate::kernel::Environment;
use crate::registry::ResourceType;
use crate::stacks::{PartBinding, PartId, PartName, Script, StackPart, parts_of_app};

impl StackDefinition {
    /// What is made in an environment: stores, those of apps included, then workers, each after those it is bound to, then
    /// pages. What else apps are made of comes after the features, see [`StackDefinition::parts_of_apps`].
    #[must_use]
    pub fn parts(&self, environment: Environment) -> Vec<StackPart> {
        let there = |resource: &&ResourceDefinition| {
            resource.environment.is_none_or(|only| only == environment)
        };
        let resources: Vec<_> = self.resources.iter().filter(there).collect();
        let of_kind = |wanted: fn(ResourceType) -> bool| {
            let chosen = resources.iter().copied();
            chosen.filter(move |resource| wanted(resource.resource_type))
        };
        let stores = of_kind(ResourceType::is_store).map(|store| self.part(store));
        let databases = self
            .all_of_apps()
            .filter(|part| part.id.resource_type.is_store());
        let (mut workers, in_circles) = in_order(&self.workers());
        workers.extend(in_circles);
        let workers = workers.into_iter().filter(|worker| there(worker));
        let pages = of_kind(|resource_type| resource_type == ResourceType::Pages);
        let answering = workers.chain(pages).map(|resource| self.part(resource));
        stores.chain(databases).chain(answering).collect()
    }

    /// The workers and pages of apps, in order.
    #[must_use]
    pub fn parts_of_apps(&self) -> Vec<StackPart> {
        let parts = self.all_of_apps();
        parts
            .filter(|part| !part.id.resource_type.is_store())
            .collect()
    }

    fn all_of_apps(&self) -> impl Iterator<Item = StackPart> {
        let apps = self.apps.iter();
        apps.flat_map(|app| parts_of_app(&app.name, app.app_type, app.with_database))
    }

    pub(super) fn workers(&self) -> Vec<&ResourceDefinition> {
        let resources = self.resources.iter();
        let workers = resources.filter(|r| r.resource_type == ResourceType::Worker);
        workers.collect()
    }

    fn part(&self, resource: &ResourceDefinition) -> StackPart {
        let bindings = resource.bindings.iter().map(|binding| PartBinding {
            name: binding.name.clone(),
            target: self.target(&binding.resource),
        });
        let script = resource.main_module.as_ref().map(|main_module| Script {
            main_module: main_module.clone(),
            modules: resource.modules.clone(),
        });
        StackPart {
            id: id_of(resource),
            bindings: bindings.collect(),
            vars: resource.vars.clone(),
            script,
        }
    }

    /// What a binding leads to: a resource, or else the database of an app.
    fn target(&self, name: &PartName) -> PartId {
        let mut resources = self.resources.iter();
        let resource = resources.find(|resource| resource.name == *name);
        resource.map_or_else(
            || PartId {
                resource_type: ResourceType::D1,
                name: name.clone(),
                of_app: true,
            },
            id_of,
        )
    }
}

fn id_of(resource: &ResourceDefinition) -> PartId {
    PartId {
        resource_type: resource.resource_type,
        name: resource.name.clone(),
        of_app: false,
    }
}

/// The workers, each after those it is bound to; and those for which there is no order, because their bindings lead in
/// circles.
pub(super) fn in_order<'d>(
    workers: &[&'d ResourceDefinition],
) -> (Vec<&'d ResourceDefinition>, Vec<&'d ResourceDefinition>) {
    let (mut ordered, mut left) = (Vec::new(), workers.to_vec());
    loop {
        let waits = |worker: &ResourceDefinition| {
            let mut bindings = worker.bindings.iter();
            bindings.any(|binding| left.iter().any(|other| other.name == binding.resource))
        };
        let Some(next) = left.iter().position(|worker| !waits(worker)) else {
            return (ordered, left);
        };
        ordered.push(left.remove(next));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::super::checks::issues_of;
    use super::*;
    use crate::kernel::{JsonText, strategy};

    #[test]
    fn stores_come_first_and_each_worker_after_those_it_is_bound_to() {
        let bound = |to: &[&str]| {
            let bindings = to.iter().enumerate();
            let bindings =
                bindings.map(|(at, to)| json!({ "name": format!("B{at}"), "resource": to }));
            bindings.collect::<Vec<_>>()
        };
        let definition = json!({
            "resources": [
                { "name": "site", "type": "pages", "bindings": bound(&["front"]) },
                { "name": "front", "type": "worker", "bindings": bound(&["back", "shop-db"]) },
                { "name": "back", "type": "worker", "bindings": bound(&["db"]) },
                { "name": "db", "type": "d1" },
                { "name": "only-dev", "type": "kv", "environment": "dev" },
            ],
            "apps": [{ "name": "shop", "type": "fullstack", "withDatabase": true }],
        });
        let definition = StackDefinition::parse(&JsonText::of(&definition)).unwrap();
        let names = |parts: Vec<StackPart>| -> Vec<String> {
            parts.iter().map(|part| part.id.name.to_string()).collect()
        };
        let made = names(definition.parts(Environment::Prod));
        assert_eq!(made, ["db", "shop-db", "back", "front", "site"]);
        assert_eq!(names(definition.parts_of_apps()), ["shop-svc", "shop"]);
        let in_dev = names(definition.parts(Environment::Dev));
        assert_eq!(in_dev[..3], ["db", "only-dev", "shop-db"]);
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_made_in_an_order_in_which_bindings_lead_to_what_is_there(
            definition in strategy::from_schema::<StackDefinition>()
                .prop_filter("is accepted", |made| issues_of(made).is_empty()),
            environment in prop::sample::select(Environment::ALL),
        ) {
            let parts = definition.parts(environment).into_iter();
            let mut made = BTreeSet::new();
            for part in parts.chain(definition.parts_of_apps()) {
                for binding in &part.bindings {
                    prop_assert!(made.contains(&binding.target), "{:?}", part);
                }
                prop_assert!(made.insert(part.id));
            }
        }
    }
}
