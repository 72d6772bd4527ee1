//! What a stack is made of: the keys of a `stackDefinition` that are known, their rules, and the order in which it is made.

mod checks;
mod parse;
mod plan;
mod shape;

pub use shape::{
    AppDefinition, BindingDefinition, FeatureDefinition, ResourceDefinition, StackDefinition,
};
