//! Handlers of templates.

use core_domain::kernel::Result;
use core_domain::port::UnitOfWork;
use core_domain::use_case::stacks::{self, NewTemplate, TemplateChange};

use super::shape::{CreateTemplate, Done, Made, TemplateDetail, TemplateItem, UpdateTemplate};
use crate::kernel::{Counted, Cx, Input, Output};

pub(super) async fn list(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Counted<TemplateItem>>> {
    let (templates, total) = stacks::list_templates(cx, uow).await?;
    let data = templates.into_iter().map(TemplateItem::from).collect();
    Ok(Output::new(Counted { data, total }))
}

pub(super) async fn create(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), (), CreateTemplate>,
) -> Result<Output<Made>> {
    let new = NewTemplate {
        name: input.body.name,
        display_name: input.body.display_name,
        description: input.body.description,
        icon: input.body.icon,
        domain: input.body.domain,
    };
    let template = stacks::create_template(cx, uow, new).await?;
    let id = template.id.to_string();
    Ok(Output::new(Made { id }).version(template.version()))
}

pub(super) async fn show(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(String,)>,
) -> Result<Output<TemplateDetail>> {
    let (name,) = input.path;
    let template = stacks::find_template(cx, uow, &name).await?;
    let latest_version = stacks::latest(uow, &template.id).await?.map(Into::into);
    let version = template.version();
    let detail = TemplateDetail {
        template: template.into(),
        latest_version,
    };
    Ok(Output::new(detail).version(version))
}

pub(super) async fn update(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(String,), (), UpdateTemplate>,
) -> Result<Output<Done>> {
    let (name,) = input.path;
    cx.expects(&stacks::find_template(cx, uow, &name).await?)?;
    let change = TemplateChange {
        display_name: input.body.display_name,
        description: input.body.description,
        icon: input.body.icon.into_change(),
        status: input.body.status,
    };
    let template = stacks::update_template(cx, uow, &name, change).await?;
    Ok(Output::new(Done { ok: true }).version(template.version()))
}
