//! The keyring of builds without the feature `keyring`: it stores nothing.

pub(super) fn read(_account: &str) -> Option<String> {
    None
}

pub(super) fn write(_account: &str, _text: &str) -> bool {
    false
}

pub(super) fn delete(_account: &str) -> bool {
    false
}
