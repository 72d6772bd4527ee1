//! One page of the objects of a bucket. Its memory depends neither on the size of the bucket nor on the metadata of the
//! objects.

use std::collections::BTreeMap;

use crate::object::ObjectInfo;

/// Maximum number of objects and folders in a page.
pub(crate) const MAX_LIST: usize = 1_000;

/// Maximum memory of a page while it is built and sent, in bytes. A page of objects with long metadata has fewer
/// objects.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// Memory of an item while a page is built and sent, without its texts, in bytes.
const ITEM_BYTES: usize = 2 * 1024;
/// Number of copies of an item's texts while a page is built and sent.
const COPIES: usize = 4;

/// The query of a list of objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListQuery {
    /// The prefix of the listed keys.
    pub(crate) prefix: String,
    /// Only keys that sort after this key are listed.
    pub(crate) after: String,
    /// Keys that contain the delimiter after the prefix are grouped into folders. If it is empty, there are no folders.
    pub(crate) delimiter: String,
    /// Maximum number of objects and folders, at most [`MAX_LIST`].
    pub(crate) limit: usize,
}

/// One page of a list of objects and folders.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPage {
    /// The objects, ordered by key.
    pub(crate) objects: Vec<ObjectInfo>,
    /// The folders, each ending with the delimiter.
    pub(crate) folders: Vec<String>,
    /// The key after which the next page starts; `None` on the last page.
    pub(crate) next: Option<String>,
}

/// Collects a page from objects in any order.
#[derive(Debug)]
pub(crate) struct PageCollector {
    query: ListQuery,
    /// Objects by key and folders by name, in byte order.
    items: BTreeMap<String, Item>,
    /// The name of the first item that does not fit on the page.
    end: Option<String>,
    /// The memory of the items, in bytes.
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug)]
enum Item {
    Object(ObjectInfo),
    Folder { last_key: String },
}

impl Item {
    /// Returns the memory of the item in bytes.
    fn bytes(&self) -> usize {
        let texts = match self {
            Self::Object(info) => 2 * info.key.len() + info.metadata_bytes(),
            Self::Folder { last_key } => 2 * last_key.len(),
        };
        ITEM_BYTES + COPIES * texts
    }
}

impl PageCollector {
    pub(crate) fn new(mut query: ListQuery) -> Self {
        query.limit = query.limit.min(MAX_LIST);
        Self {
            query,
            items: BTreeMap::new(),
            end: None,
            bytes: 0,
            max_bytes: MAX_PAGE_BYTES,
        }
    }

    /// Returns the memory of the page in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds an object if it belongs on the page, and drops the items that no longer fit.
    pub(crate) fn add(&mut self, info: ObjectInfo) {
        let query = &self.query;
        if !info.key.starts_with(&query.prefix) || info.key <= query.after {
            return;
        }
        match folder_of(&info.key, query) {
            None => self.insert(info.key.clone(), Item::Object(info)),
            Some(folder) => {
                let last_key = match self.items.get(&folder) {
                    Some(Item::Folder { last_key }) => info.key.max(last_key.clone()),
                    _ => info.key,
                };
                self.insert(folder, Item::Folder { last_key });
            }
        }
        while self.is_too_large()
            && let Some((name, dropped)) = self.items.pop_last()
        {
            self.bytes -= dropped.bytes();
            self.end = Some(name);
        }
    }

    /// Returns whether the last item must be dropped. One item always stays, even if it is too large.
    fn is_too_large(&self) -> bool {
        self.items.len() > self.query.limit || self.bytes > self.max_bytes && self.items.len() > 1
    }

    fn insert(&mut self, name: String, item: Item) {
        if self.end.as_ref().is_some_and(|end| name >= *end) {
            return;
        }
        self.bytes += item.bytes();
        if let Some(replaced) = self.items.insert(name, item) {
            self.bytes -= replaced.bytes();
        }
    }

    /// Returns the page of all added objects.
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
            page.next = self.end.is_some().then_some(last_key);
        }
        page
    }
}

/// Returns the part of a key up to and including the delimiter; `None` if the key is not in a folder.
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

    fn page(keys: &[String], query: &ListQuery, max_bytes: usize) -> ObjectPage {
        let mut collector = PageCollector {
            max_bytes,
            ..PageCollector::new(query.clone())
        };
        for key in keys {
            let info = ObjectInfo::new(key, ObjectMetadata::default(), Timestamp::EPOCH);
            collector.add(info.unwrap());
            assert!(collector.items.len() <= query.limit, "the page is bounded");
        }
        let held: usize = collector.items.values().map(Item::bytes).sum();
        assert_eq!(collector.bytes(), held);
        collector.finish()
    }

    proptest! {
        #[test]
        fn pages_together_have_each_object_and_folder_once(
            keys in proptest::collection::btree_set("[ab/]{1,5}", 0..40),
            prefix in "[ab/]{0,1}",
            delimiter in "/?",
            limit in 1_usize..5,
            max_bytes in 0..5 * ITEM_BYTES,
        ) {
            let keys: Vec<String> = keys.into_iter().rev().collect();
            let mut query = ListQuery { prefix, delimiter, limit, after: String::new() };
            let (mut objects, mut folders) = (Vec::new(), Vec::new());
            loop {
                let page = page(&keys, &query, max_bytes);
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
