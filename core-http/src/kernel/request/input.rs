//! What a handler is given of the request.

use std::borrow::Cow;
use std::marker::PhantomData;

use core_domain::kernel::{Error, Reason, Result, TextValue};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::body::Body;

/// Path parameters, query and body, checked and typed. `()` stands for none.
#[derive(Clone, Debug)]
pub struct Input<P = (), Q = (), B = ()> {
    /// The path parameters, in their order: `(PlatformId,)`.
    pub path: P,
    /// The query: a struct with `Deserialize` and `JsonSchema`.
    pub query: Q,
    /// The body: a struct with `Deserialize` and `JsonSchema`.
    pub body: B,
}

/// The body of requests that take nothing but a reason.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ReasonBody {
    /// Why, in the caller's words.
    pub reason: Option<Reason>,
}

/// As [`Input`], with the body as it comes in, unread and of any size.
#[derive(Debug)]
pub struct RawInput<P = (), Q = ()> {
    /// The path parameters, in their order.
    pub path: P,
    /// The query.
    pub query: Q,
    /// The body.
    pub body: Body,
}

/// The parameters of a path: a tuple of typed ids, validated texts or closed words.
///
/// A text that is not of its type is "not found": there can be no such thing.
pub trait PathParams: Sized + Send + Sync + Clone + 'static {
    /// How many there are; must be as many as the path names.
    const COUNT: usize;

    /// Reads them from the decoded path segments.
    fn parse(segments: &[String]) -> Option<Self>;

    /// The schema of each.
    fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema>;
}

impl PathParams for () {
    const COUNT: usize = 0;

    fn parse(_: &[String]) -> Option<Self> {
        Some(())
    }

    fn schemas(_: &mut SchemaGenerator) -> Vec<Schema> {
        Vec::new()
    }
}

macro_rules! path_params {
    ($count:literal: $($name:ident $index:tt),+) => {
        impl<$($name: TextValue + JsonSchema + Clone + Send + Sync + 'static),+> PathParams for ($($name,)+) {
            const COUNT: usize = $count;

            fn parse(segments: &[String]) -> Option<Self> {
                Some(($($name::from_text(segments.get($index)?)?,)+))
            }

            fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema> {
                vec![$(generator.subschema_for::<$name>()),+]
            }
        }
    };
}
path_params!(1: A 0);
path_params!(2: A 0, B 1);
path_params!(3: A 0, B 1, C 2);
path_params!(4: A 0, B 1, C 2, D 3);

/// A path parameter that the handler parses: for a name that is chosen by the caller, so that a bad one is a mistake in
/// the request and not a thing that is missing.
#[derive(Clone, Debug)]
pub struct Unparsed<T>(String, PhantomData<fn() -> T>);

impl<T: TextValue> Unparsed<T> {
    /// The value.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` names the parameter.
    pub fn parse(self, parameter: &str) -> Result<T> {
        let invalid = || Error::invalid(parameter, "pattern", "does not have the expected form");
        T::from_text(&self.0).ok_or_else(invalid)
    }
}

impl<T> TextValue for Unparsed<T> {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned(), PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Unparsed<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
