//! A macro that implements proptest's `Arbitrary` for a type.

/// Implements proptest's `Arbitrary` for a type, from its schema or from a pattern of its text form. Does nothing
/// without the feature `proptest`.
#[cfg(any(test, feature = "proptest"))]
macro_rules! arbitrary {
    ($type:ty) => { $crate::kernel::arbitrary!(@schema [] $type); };
    (@schema [$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> proptest::arbitrary::Arbitrary for $type {
            type Parameters = ();
            type Strategy = proptest::strategy::BoxedStrategy<Self>;

            fn arbitrary_with((): ()) -> Self::Strategy {
                $crate::kernel::strategy::from_schema()
            }
        }
    };
    ($type:ty as $pattern:literal) => {
        impl proptest::arbitrary::Arbitrary for $type {
            type Parameters = ();
            type Strategy = proptest::strategy::BoxedStrategy<Self>;

            fn arbitrary_with((): ()) -> Self::Strategy {
                use proptest::strategy::Strategy;
                let read = |text: String| $crate::kernel::TextValue::from_text(&text);
                $pattern.prop_filter_map("not of the form", read).boxed()
            }
        }
    };
}

#[cfg(not(any(test, feature = "proptest")))]
macro_rules! arbitrary {
    ($type:ty) => {};
    (@schema [$($generics:tt)*] $type:ty) => {};
    ($type:ty as $pattern:literal) => {};
}
pub(crate) use arbitrary;
