//! The methods with which tests control a fake.

/// Implements the methods of a fake's handle that script faults and read the journal. The handle has a field `shared`
/// with the [`crate::Shared`] state, whose fields `faults` and `journal` are a [`crate::fault::FaultQueue`] and a
/// [`crate::journal::Journal`].
#[macro_export]
macro_rules! control_methods {
    ($handle:ident, $fault:ty, $request:ty, $exchange:ty) => {
        impl $handle {
            /// Adds a fault for the next matching request that has no earlier pending fault.
            pub fn inject(&self, matcher: $crate::fault::Matcher, fault: $fault) {
                self.inject_in_order([(matcher, fault)]);
            }

            /// Adds a chain of faults. Each becomes active after the previous one has matched a request.
            pub fn inject_in_order(
                &self,
                faults: impl IntoIterator<Item = ($crate::fault::Matcher, $fault)>,
            ) {
                self.shared.lock().faults.push(faults);
            }

            /// Adds the same fault for several requests.
            pub fn inject_times(
                &self,
                matcher: &$crate::fault::Matcher,
                fault: &$fault,
                times: usize,
            ) {
                for _ in 0..times {
                    self.inject(matcher.clone(), fault.clone());
                }
            }

            /// Makes each further request fail with this probability in percent. Equal seeds give equal faults.
            /// Connections are closed instead of left open.
            pub fn inject_random(&self, seed: u64, percent: u32) {
                self.shared.lock().faults.set_random(seed, percent);
            }

            /// Removes all faults.
            pub fn clear_faults(&self) {
                self.shared.lock().faults.clear();
            }

            /// Returns the number of scripted faults that have not matched a request yet.
            #[must_use]
            pub fn waiting_faults(&self) -> usize {
                self.shared.lock().faults.waiting()
            }

            /// Returns the received requests in order.
            #[must_use]
            pub fn requests(&self) -> Vec<$request> {
                self.shared.lock().journal.requests.clone()
            }

            /// Returns the complete requests and responses, if they are recorded.
            #[must_use]
            pub fn exchanges(&self) -> Vec<$exchange> {
                self.shared.lock().journal.exchanges.clone()
            }

            /// Clears the list of received requests.
            pub fn clear_requests(&self) {
                self.shared.lock().journal = $crate::journal::Journal::default();
            }
        }
    };
}
