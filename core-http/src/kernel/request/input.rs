//! The input of a handler: typed path parameters, query and body.

use std::borrow::Cow;
use std::marker::PhantomData;

use core_domain::kernel::{Error, Reason, Result, TextValue};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use super::body::Body;

/// Path parameters, query and body, validated and typed. `()` stands for none.
#[derive(Clone, Debug)]
pub struct Input<P = (), Q = (), B = ()> {
    /// The path parameters in their order, such as `(PlatformId,)`.
    pub path: P,
    /// The query, a struct that implements `Deserialize` and `JsonSchema`.
    pub query: Q,
    /// The body, a struct that implements `Deserialize` and `JsonSchema`.
    pub body: B,
}

/// A request body that contains only a reason.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ReasonBody {
    /// The reason for the request, for people and the audit log; `null` for none.
    pub reason: Option<Reason>,
}

/// Like [`Input`], with the body unread and of any size.
#[derive(Debug)]
pub struct RawInput<P = (), Q = ()> {
    /// The path parameters in their order.
    pub path: P,
    /// The validated query.
    pub query: Q,
    /// The unread body.
    pub body: Body,
}

/// The parameters of a path: a tuple of typed ids, validated texts or words of a fixed set.
///
/// A segment that is not a value of its type is reported as `NOT_FOUND`, because no record can have it.
pub trait PathParams: Sized + Send + Sync + Clone + 'static {
    /// The number of parameters, which must be equal to that of the path.
    const COUNT: usize;

    /// Parses the decoded path segments; `None` if one is invalid.
    fn parse(segments: &[String]) -> Option<Self>;

    /// Returns the schemas of the parameters, in their order.
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

/// A path parameter that the handler parses itself. It is used for a name that the caller chooses: an invalid one is
/// then reported as `VALIDATION_ERROR` instead of `NOT_FOUND`.
#[derive(Clone, Debug)]
pub struct Unparsed<T>(String, PhantomData<fn() -> T>);

impl<T: TextValue> Unparsed<T> {
    /// Parses the parameter, which has this name in errors.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the text is not a value of the type.
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
