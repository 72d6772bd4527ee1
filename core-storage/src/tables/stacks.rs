//! The tables of the stack registry.

use core_domain::stacks::{
    StackTemplate, StackTemplateQuery, StackVersion, StackVersionQuery, VersionStatus,
};

use crate::codec::{Bool, Json, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{Tabular, table};

table! {
    StackTemplate in "stack_templates" {
        id: Text,
        name: Text,
        display_name: Text,
        description: Text,
        icon: Opt<Text>,
        domain: Opt<Text>,
        latest_version: Opt<Text>,
        status: Text,
        created_at: Time,
        updated_at: Time,
    }
    unique { name: [name] }
    index { [created_at] }
    select stack_templates
}

fn stack_templates(query: &StackTemplateQuery) -> Select {
    let templates = Select::of(StackTemplate::TABLE).order_by_desc("created_at");
    match query {
        StackTemplateQuery::All => templates,
        StackTemplateQuery::Named(name) => templates.filter(Filter::eq("name", name)),
    }
}

table! {
    StackVersion in "stack_versions" {
        id: Text,
        template_id: Text,
        version: Text,
        stack_definition: Json,
        digest: Text,
        core_sdk_version: Text,
        status: Text,
        published_at: Time,
        created_at: Time,
    }
    computed {
        precedence: Text = |record| record.version.precedence_key(),
        pre_release: Bool = |record| record.version.is_pre_release(),
    }
    unique { version: [template_id, precedence] }
    index { [template_id, precedence] }
    select stack_versions
}

fn stack_versions(query: &StackVersionQuery) -> Select {
    let of = |template| {
        Select::of(StackVersion::TABLE)
            .filter(Filter::eq("template_id", template))
            .order_by_desc("precedence")
    };
    let active = || Filter::eq("status", &VersionStatus::Active);
    match query {
        StackVersionQuery::OfTemplate(template) => of(template),
        StackVersionQuery::Exactly(template, version) => {
            of(template).filter(Filter::eq("precedence", &version.precedence_key()))
        }
        StackVersionQuery::Active(template) => of(template).filter(active()),
        StackVersionQuery::ActiveReleases(template) => {
            of(template).filter(active().and(Filter::eq("pre_release", false)))
        }
    }
}
