//! Activates stacks.

use core_client::types::job::JobPlan;
use core_client::types::stack::ActivateStack;

use super::follow::report_job;
use crate::args::StacksCommand;
use crate::context::Context;
use crate::failure::{Failure, FailureKind, Result};
use crate::output::table;

/// Runs a command about stacks.
pub(crate) async fn run(context: &Context, command: StacksCommand) -> Result<()> {
    let StacksCommand::Activate {
        stack,
        stack_version,
        environment,
        entity,
        dry_run,
        no_wait,
    } = command;
    let client = context.client()?;
    let platform_id = context.platform(&client).await?;
    let stack_version = match stack_version {
        Some(version) => version,
        None => client
            .get_stack_template(&stack)
            .await?
            .latest_version
            .ok_or_else(|| {
                Failure::new(
                    FailureKind::NotFound,
                    format!("The stack {stack} has no published version."),
                )
            })?,
    };
    let activation = ActivateStack {
        platform_id,
        stack_id: stack,
        stack_version,
        environment,
        entity_id: entity,
    };
    if dry_run {
        let plan = client.plan_stack_activation(&activation).await?;
        return context.output.result(&plan, format_plan);
    }
    let job = client.activate_stack(&activation).await?;
    if no_wait {
        return context
            .output
            .result(&job, |job| format!("{} {}", job.job_id, job.status));
    }
    report_job(context, &client, &job.job_id).await
}

fn format_plan(plan: &JobPlan) -> String {
    let steps: Vec<_> = plan.steps.iter().map(|step| step.name.as_str()).collect();
    let rows: Vec<_> = plan
        .resources
        .iter()
        .map(|resource| {
            let name = resource
                .cf_name
                .clone()
                .unwrap_or_else(|| "(generated)".to_owned());
            vec![
                resource.action.clone(),
                resource.resource_type.clone(),
                name,
            ]
        })
        .collect();
    let resources = table(&["ACTION", "TYPE", "NAME"], &rows);
    format!(
        "Nothing was changed. The job {} would have {} steps: {}\nand {} resources:\n{resources}",
        plan.kind,
        steps.len(),
        steps.join(", "),
        plan.total_resources,
    )
}
