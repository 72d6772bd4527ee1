//! One page of the objects of a bucket, collected in memory that does not grow with the bucket.

use std::collections::BTreeMap;

use crate::object::ObjectInfo;

/// The most objects and folders of a page.
pub(crate) const MAX_LIST: usize = 1_000;

/// The query of a list of objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    /// What the keys begin with.
    pub(crate) prefix: String,
    /// The keys come after this one.
    pub(crate) after: String,
    /// Keys that have it after the prefix are listed as one folder; none if it is empty.
    pub(crate) delimiter: String,
    /// The most objects and folders; [`MAX_LIST`] at the most.
    pub(crate) limit: usize,
}

/// The first objects and folders of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPage {
    /// The objects by their keys.
    pub(crate) objects: Vec<ObjectInfo>,
    /// The folders, with the delimiter at the end.
    pub(crate) folders: Vec<String>,
    /// The key after which the next page begins; `None` on the last page.
    pub(crate) next: Option<String>,
}

/// Collects a page from objects in any order.
#[derive(Debug)]
pub(crate) struct PageCollector {
    query: ListQuery,
    /// Each object by its key, and each folder by its name: in byte order both.
    items: BTreeMap<String, Item>,
    is_truncated: bool,
}

#[derive(Debug)]
enum Item {
    Object(ObjectInfo),
    Folder { last_key: String },
}

impl PageCollector {
    pub(crate) fn new(mut query: ListQuery) -> Self {
        query.limit = query.limit.min(MAX_LIST);
        Self {
            query,
            items: BTreeMap::new(),
            is_truncated: false,
        }
    }

    /// Takes an object in if it belongs on the page, and drops the item that no longer does.
    pub(crate) fn add(&mut self, info: ObjectInfo) {
        let query = &self.query;
        if !info.key.starts_with(&query.prefix) || info.key <= query.after {
            return;
        }
        match folder_of(&info.key, query) {
            None => drop(self.items.insert(info.key.clone(), Item::Object(info))),
            Some(folder) => {
                let last_key = match self.items.remove(&folder) {
                    Some(Item::Folder { last_key }) => last_key.max(info.key),
                    _ => info.key,
                };
                self.items.insert(folder, Item::Folder { last_key });
            }
        }
        if self.items.len() > self.query.limit {
            self.items.pop_last();
            self.is_truncated = true;
        }
    }

    /// The page of all objects that were added.
    pub(crate) fn finish(self) -> ObjectPage {
        let mut page = ObjectPage::default();
        for (name, item) in self.items {
            let last_key = match item {
                Item::Object(info) => {
                    page.objects.push(info);
                    name
                }
                Item::Folder { last_key } => {
                    page.folders.push(name);
                    last_key
                }
            };
            page.next = self.is_truncated.then_some(last_key);
        }
        page
    }
}

/// The part of a key up to the delimiter, with it.
fn folder_of(key: &str, query: &ListQuery) -> Option<String> {
    let rest = key.strip_prefix(&query.prefix)?;
    if query.delimiter.is_empty() {
        return None;
    }
    let at = rest.find(&query.delimiter)?;
    let end = query.prefix.len() + at + query.delimiter.len();
    Some(key[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::object::ObjectMetadata;

    fn page(keys: &[String], query: &ListQuery) -> ObjectPage {
        let mut collector = PageCollector::new(query.clone());
        for key in keys {
            let info = ObjectInfo::new(key, ObjectMetadata::default(), Timestamp::EPOCH);
            collector.add(info.unwrap());
            assert!(collector.items.len() <= query.limit, "the page is bounded");
        }
        collector.finish()
    }

    proptest! {
        #[test]
        fn pages_together_have_each_object_and_folder_once(
            keys in proptest::collection::btree_set("[ab/]{1,5}", 0..40),
            prefix in "[ab/]{0,1}",
            delimiter in "/?",
            limit in 1_usize..5,
        ) {
            let keys: Vec<String> = keys.into_iter().rev().collect();
            let mut query = ListQuery { prefix, delimiter, limit, after: String::new() };
            let (mut objects, mut folders) = (Vec::new(), Vec::new());
            loop {
                let page = page(&keys, &query);
                objects.extend(page.objects.into_iter().map(|info| info.key));
                folders.extend(page.folders);
                match page.next {
                    Some(next) => query.after = next,
                    None => break,
                }
            }
            let mut expected: (Vec<String>, Vec<String>) = Default::default();
            for key in keys.iter().rev().filter(|key| key.starts_with(&query.prefix)) {
                match folder_of(key, &query) {
                    None => expected.0.push(key.clone()),
                    Some(folder) => {
                        if expected.1.last() != Some(&folder) {
                            expected.1.push(folder);
                        }
                    }
                }
            }
            prop_assert_eq!((objects, folders), expected);
        }
    }
}
