//! The table of workspace stacks.

use core_domain::registry::{WorkspaceStack, WorkspaceStackQuery};

use crate::codec::{Bool, Opt, Text, Time};
use crate::filter::Filter;
use crate::query::Select;
use crate::{IndexPredicate, Tabular, table};

table! {
    WorkspaceStack in "workspace_stacks" {
        id: Text,
        tenant_id: Text,
        platform_id: Text,
        name: Text,
        template_id: Opt<Text>,
        repo_name: Opt<Text>,
        status: Text,
        created_at: Time,
        updated_at: Time,
        is_default: Bool,
        version_id: Opt<Text>,
        environment: Opt<Text>,
        provision_job_id: Opt<Text>,
    }
    computed {
        default_of: Opt<Text> = |stack| stack.is_default.then(|| stack.tenant_id.to_string()),
    }
    unique {
        name: [tenant_id, name],
        default: [default_of] where [IndexPredicate::NotNull("default_of")],
    }
    index {
        [platform_id, created_at],
        [platform_id, tenant_id, created_at],
        [platform_id, tenant_id, template_id, environment, created_at],
    }
    select workspace_stacks
}

fn workspace_stacks(query: &WorkspaceStackQuery) -> Select {
    let stacks = Select::of(WorkspaceStack::TABLE).order_by_desc("created_at");
    match query {
        WorkspaceStackQuery::Listed(filter) => {
            let tenant = filter.tenant_id.as_ref();
            stacks.filter_if(tenant.map(|tenant| Filter::eq("tenant_id", tenant)))
        }
        WorkspaceStackQuery::DefaultOf(tenant) => stacks.filter(Filter::eq("default_of", tenant)),
        WorkspaceStackQuery::OfTemplate {
            tenant_id,
            template_id,
            environment,
            status,
        } => stacks
            .filter(Filter::eq("tenant_id", tenant_id))
            .filter(Filter::eq("template_id", template_id))
            .filter(Filter::eq("environment", environment))
            .filter(Filter::one_of("status", status)),
    }
}
