//! The cache of statement texts. A statement is written as tokens, which are the key of its text. The text of a known
//! statement is therefore not generated again.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use super::ddl::{quote_ident, text_literal};
use super::dialect::Dialect;
use super::statement::Bind;
use crate::table::{Table, Type};
use crate::value::ValueRef;

/// The kind of a token. Tokens of one kind differ by the address and length of their text.
#[derive(Clone, Copy)]
enum TokenKind {
    Sql,
    Name,
    Literal,
    Columns,
    Bind,
    Number,
}

/// The tokens of a statement and its parameters. Also the text, if it is not cached yet.
pub(super) struct StatementWriter<'q> {
    tokens: Vec<usize>,
    text: Option<String>,
    binds: Vec<Bind<'q>>,
    has_uuids: bool,
}

impl<'q> StatementWriter<'q> {
    fn new(text: Option<String>, has_uuids: bool) -> Self {
        Self {
            has_uuids,
            tokens: Vec::with_capacity(96),
            text,
            binds: Vec::with_capacity(12),
        }
    }

    fn token(&mut self, kind: TokenKind, text: &'static str) {
        self.tokens.push(text.as_ptr().addr());
        self.tokens.push((text.len() << 3) | kind as usize);
    }

    /// Writes SQL keywords or punctuation.
    pub(super) fn sql(&mut self, words: &'static str) -> &mut Self {
        self.token(TokenKind::Sql, words);
        if let Some(text) = &mut self.text {
            text.push_str(words);
        }
        self
    }

    /// Writes a name, quoted.
    pub(super) fn name(&mut self, name: &'static str) -> &mut Self {
        self.token(TokenKind::Name, name);
        if let Some(text) = &mut self.text {
            text.push_str(&quote_ident(name));
        }
        self
    }

    /// Writes a value of an index predicate as a literal.
    pub(super) fn literal(&mut self, literal: &'static str) -> &mut Self {
        self.token(TokenKind::Literal, literal);
        if let Some(text) = &mut self.text {
            text.push_str(&text_literal(literal));
        }
        self
    }

    /// Writes the columns of a table, each with the qualifier.
    pub(super) fn columns(&mut self, table: &Table, qualifier: &'static str) -> &mut Self {
        self.token(TokenKind::Columns, table.name);
        self.token(TokenKind::Sql, qualifier);
        if let Some(text) = &mut self.text {
            for (at, column) in table.columns.iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" });
                text.push_str(qualifier);
                text.push_str(&quote_ident(column.name));
            }
        }
        self
    }

    /// Writes a number as part of the text.
    pub(super) fn number(&mut self, number: u32) -> &mut Self {
        self.tokens.push(TokenKind::Number as usize);
        self.tokens.push(number as usize);
        if let Some(text) = &mut self.text {
            let _ = write!(text, "{number}");
        }
        self
    }

    /// Returns the type in the database of a column with the described type.
    pub(super) const fn stored_type(&self, described: Type) -> Type {
        match described {
            Type::Uuid if !self.has_uuids => Type::Text,
            other => other,
        }
    }

    /// Writes a placeholder and binds its parameter.
    fn bind(&mut self, bind: Bind<'q>) -> &mut Self {
        self.tokens.push(TokenKind::Bind as usize);
        self.binds.push(bind);
        if let Some(text) = &mut self.text {
            let _ = write!(text, "${}", self.binds.len());
        }
        self
    }

    /// Writes a placeholder for a value of a column with the described type.
    pub(super) fn value(&mut self, described: Type, value: ValueRef<'q>) -> &mut Self {
        self.bind(Bind::One(self.stored_type(described), value))
    }

    /// Writes a placeholder for a text that was generated with the statement.
    pub(super) fn text_value(&mut self, described: Type, text: String) -> &mut Self {
        self.bind(Bind::Generated(self.stored_type(described), text))
    }

    /// Writes a placeholder for an array of values of a column with the described type.
    pub(super) fn array(&mut self, described: Type, values: Vec<ValueRef<'q>>) -> &mut Self {
        self.bind(Bind::Array(self.stored_type(described), values))
    }

    /// Writes a placeholder for an array whose type the database cannot infer.
    pub(super) fn cast_array(&mut self, described: Type, values: Vec<ValueRef<'q>>) -> &mut Self {
        let cast = Dialect::array_cast(self.stored_type(described));
        self.array(described, values).sql(cast)
    }

    /// Writes the parts, joined by a separator.
    pub(super) fn join_parts<T>(
        &mut self,
        parts: impl IntoIterator<Item = T>,
        separator: &'static str,
        mut write: impl FnMut(&mut Self, T),
    ) -> &mut Self {
        for (at, part) in parts.into_iter().enumerate() {
            if at > 0 {
                self.sql(separator);
            }
            write(self, part);
        }
        self
    }
}

/// Hashes words by multiplication. The keys come from this program and not from its users, so they need no protection
/// against collisions.
#[derive(Default)]
struct WordHasher(u64);

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_ne_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Maximum number of texts, more than a program has. Above it the cache is cleared.
const MAX_TEXTS: usize = 4_096;

/// Maximum size of all texts and their tokens, in bytes. Above it the cache is cleared.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Maximum length of a cached text, in bytes. Longer statements are generated and prepared for each use, because their
/// values cost more than that.
pub(crate) const MAX_CACHED_TEXT: usize = 16 * 1024;

type ByTokens = HashMap<Box<[usize]>, Arc<str>, BuildHasherDefault<WordHasher>>;

/// The cached texts and their size.
#[derive(Default)]
struct TextCache {
    by_tokens: ByTokens,
    bytes: usize,
}

impl TextCache {
    fn insert(&mut self, tokens: Vec<usize>, text: &Arc<str>) {
        if text.len() > MAX_CACHED_TEXT {
            return;
        }
        let bytes = text.len() + size_of_val(tokens.as_slice());
        if self.by_tokens.len() >= MAX_TEXTS || self.bytes + bytes > MAX_BYTES {
            *self = Self::default();
        }
        // Another unit may have inserted the same text since the lookup.
        if self.by_tokens.insert(tokens.into(), text.clone()).is_none() {
            self.bytes += bytes;
        }
    }
}

/// A cache of statement texts, by their tokens. The units of a store share it.
#[derive(Default)]
pub struct StatementCache {
    texts: RwLock<TextCache>,
    has_uuids: bool,
}

impl std::fmt::Debug for StatementCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("StatementCache")
            .field("texts", &texts.by_tokens.len())
            .field("has_uuids", &self.has_uuids)
            .finish()
    }
}

impl StatementCache {
    /// Creates the cache for a database that stores UUIDs as such if `has_uuids` is `true`, see
    /// [`has_uuids`](super::postgres::has_uuids). The default is a cache for a database that stores them as text.
    #[must_use]
    pub fn with_uuids(has_uuids: bool) -> Self {
        Self {
            has_uuids,
            ..Self::default()
        }
    }

    /// Returns the text and the parameters of the statement that `write` writes.
    pub(super) fn of<'q>(
        &self,
        write: impl Fn(&mut StatementWriter<'q>),
    ) -> (Arc<str>, Vec<Bind<'q>>) {
        let mut writer = StatementWriter::new(None, self.has_uuids);
        write(&mut writer);
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.by_tokens.get(writer.tokens.as_slice()) {
            return (text.clone(), writer.binds);
        }
        drop(texts);
        let mut writer = StatementWriter::new(Some(String::new()), self.has_uuids);
        write(&mut writer);
        let text: Arc<str> = writer.text.unwrap_or_default().into();
        let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
        texts.insert(writer.tokens, &text);
        (text, writer.binds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(texts: &StatementCache, name: &'static str, number: i64) -> (Arc<str>, usize) {
        let (text, binds) = texts.of(|w| {
            w.sql("SELECT ")
                .name(name)
                .sql(" = ")
                .value(Type::Int, ValueRef::Int(number));
        });
        (text, binds.len())
    }

    #[test]
    fn statements_that_differ_only_in_their_parameters_share_one_text() {
        let texts = StatementCache::default();
        let (first, binds) = statement(&texts, "a\"b", 1);
        assert_eq!((&*first, binds), ("SELECT \"a\"\"b\" = $1", 1));
        let (second, _) = statement(&texts, "a\"b", 2);
        assert!(Arc::ptr_eq(&first, &second));
        let (other, _) = statement(&texts, "b", 2);
        assert_eq!(&*other, "SELECT \"b\" = $1");
    }

    #[test]
    fn names_words_and_literals_of_the_same_text_are_distinct_tokens() {
        const WORD: &str = "x";
        let texts = StatementCache::default();
        let of = |write: fn(&mut StatementWriter<'_>)| texts.of(|w| write(w)).0;
        assert_eq!(
            &*of(|w| {
                w.sql(WORD);
            }),
            "x"
        );
        assert_eq!(
            &*of(|w| {
                w.name(WORD);
            }),
            "\"x\""
        );
        assert_eq!(
            &*of(|w| {
                w.literal(WORD);
            }),
            "'x'"
        );
    }

    /// Returns the text of a list of values.
    fn list(texts: &StatementCache, length: usize) -> Arc<str> {
        let list = texts.of(|w| {
            w.join_parts(0..length, ", ", |w, _| {
                w.value(Type::Int, ValueRef::Null);
            });
        });
        list.0
    }

    #[test]
    fn the_cache_is_bounded_in_texts_and_in_bytes() {
        let texts = StatementCache::default();
        for number in 0..=u32::try_from(MAX_TEXTS).unwrap() {
            texts.of(|w| {
                w.number(number);
            });
        }
        assert!(texts.texts.read().unwrap().by_tokens.len() <= MAX_TEXTS);
        let texts = StatementCache::default();
        for length in 1..2_000 {
            list(&texts, length);
            let kept = texts.texts.read().unwrap();
            let sizes = kept.by_tokens.iter();
            let size = sizes.map(|(tokens, text)| size_of_val(&**tokens) + text.len());
            let size: usize = size.sum();
            assert!(size == kept.bytes && size <= MAX_BYTES, "{length}: {size}");
        }
    }

    #[test]
    fn a_very_long_text_is_not_cached() {
        let texts = StatementCache::default();
        assert!(Arc::ptr_eq(&list(&texts, 100), &list(&texts, 100)));
        assert!(!Arc::ptr_eq(&list(&texts, 10_000), &list(&texts, 10_000)));
        assert_eq!(texts.texts.read().unwrap().by_tokens.len(), 1);
    }
}
