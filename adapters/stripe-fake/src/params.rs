//! The parameters of a request: a tree that is decoded from a form or a query. Parameters are strict: unknown ones, and
//! values of another type, are refused.

use std::collections::BTreeMap;

use crate::envelope::Refusal;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Param {
    Text(String),
    /// The members of an object, or the elements of an array by their index.
    Members(BTreeMap<String, Param>),
}

/// The parameters of a request, or the members of one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Params {
    /// The name of the parameter with these members. Empty for the request itself.
    path: String,
    members: BTreeMap<String, Param>,
}

fn invalid(param: &str, kind: &str) -> Refusal {
    Refusal::parameter(param, format!("Invalid {kind}"))
}

/// Splits `a[b][c]` into its names.
fn names(name: &str) -> Option<Vec<&str>> {
    let (first, rest) = name.split_at(name.find('[').unwrap_or(name.len()));
    let mut names = vec![first];
    let mut rest = rest;
    while !rest.is_empty() {
        let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
        names.push(inner);
        rest = after;
    }
    (!first.is_empty()).then_some(names)
}

fn insert(members: &mut BTreeMap<String, Param>, names: &[&str], value: String) -> Option<()> {
    let (first, rest) = names.split_first()?;
    let name = match *first {
        "" => members.len().to_string(),
        name => name.to_owned(),
    };
    if rest.is_empty() {
        let earlier = members.insert(name, Param::Text(value));
        return earlier.is_none().then_some(());
    }
    let entry = members.entry(name);
    match entry.or_insert_with(|| Param::Members(BTreeMap::new())) {
        Param::Members(inner) => insert(inner, rest, value),
        Param::Text(_) => None,
    }
}

impl Params {
    /// Decodes a form or a query.
    ///
    /// # Errors
    /// A refusal if a name is malformed or occurs more than once.
    pub(crate) fn decode(encoded: &[u8]) -> Result<Self, Refusal> {
        let pairs: Vec<(String, String)> = serde_urlencoded::from_bytes(encoded)
            .map_err(|_| Refusal::state("Invalid form").not_kept())?;
        let mut members = BTreeMap::new();
        for (name, value) in pairs {
            let inserted = names(&name).and_then(|names| insert(&mut members, &names, value));
            inserted.ok_or_else(|| invalid(&name, "hash"))?;
        }
        Ok(Self {
            path: String::new(),
            members,
        })
    }

    /// Refuses parameters that are not in the list. Every request may have `expand`.
    pub(crate) fn only(&self, allowed: &[&str]) -> Result<(), Refusal> {
        let is_allowed = |name: &&String| {
            allowed.contains(&name.as_str()) || self.path.is_empty() && *name == "expand"
        };
        match self.members.keys().find(|name| !is_allowed(name)) {
            None => Ok(()),
            Some(name) => {
                let param = self.full(name);
                let message = format!("Received unknown parameter: {param}");
                Err(Refusal::parameter(&param, message).code("parameter_unknown"))
            }
        }
    }

    #[cfg(feature = "contract")]
    pub(crate) const fn members(&self) -> &BTreeMap<String, Param> {
        &self.members
    }

    /// Returns the full name of a member.
    pub(crate) fn full(&self, name: &str) -> String {
        if self.path.is_empty() {
            return name.to_owned();
        }
        format!("{}[{name}]", self.path)
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.members.get(name) {
            None => Ok(None),
            Some(Param::Text(text)) => Ok(Some(text)),
            Some(Param::Members(_)) => Err(invalid(&self.full(name), "string")),
        }
    }

    pub(crate) fn require(&self, name: &str) -> Result<&str, Refusal> {
        self.text(name)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| {
                let param = self.full(name);
                let message = format!("Missing required param: {param}.");
                Refusal::parameter(&param, message).code("parameter_missing")
            })
    }

    pub(crate) fn one_of<'a>(
        &'a self,
        name: &str,
        values: &[&str],
    ) -> Result<Option<&'a str>, Refusal> {
        match self.text(name)? {
            Some(text) if !values.contains(&text) => {
                let message = format!("Invalid {name}: must be one of {}", values.join(", "));
                Err(Refusal::parameter(&self.full(name), message))
            }
            text => Ok(text),
        }
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let number = text.parse().map_err(|_| {
            Refusal::parameter(&self.full(name), format!("Invalid integer: {text}"))
                .code("parameter_invalid_integer")
        })?;
        Ok(Some(number))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.text(name)? {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(invalid(&self.full(name), "boolean")),
        }
    }

    /// Returns the members of an object. An absent object has none.
    pub(crate) fn object(&self, name: &str) -> Result<Self, Refusal> {
        let members = match self.members.get(name) {
            None => BTreeMap::new(),
            Some(Param::Members(members)) => members.clone(),
            Some(Param::Text(_)) => return Err(invalid(&self.full(name), "object")),
        };
        Ok(Self {
            path: self.full(name),
            members,
        })
    }

    /// Returns the elements of an array of objects. They are numbered from 0.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Self>, Refusal> {
        let array = self.object(name)?;
        let count = array.members.len();
        let element = |index: usize| array.object(&index.to_string());
        let is_numbered = (0..count).all(|index| array.members.contains_key(&index.to_string()));
        if !is_numbered {
            return Err(invalid(&self.full(name), "array"));
        }
        (0..count).map(element).collect()
    }

    /// Returns the elements of an array of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Refusal> {
        let array = self.object(name)?;
        let elements = 0..array.members.len();
        let text = |index: usize| {
            let text = array.text(&index.to_string())?;
            text.map(str::to_owned)
                .ok_or_else(|| invalid(&self.full(name), "array"))
        };
        elements.map(text).collect()
    }

    /// Returns the pairs of an object with any names, for example `metadata`.
    pub(crate) fn pairs(&self, name: &str) -> Result<Vec<(String, String)>, Refusal> {
        let object = self.object(name)?;
        let pair = |key: &String| {
            Ok((
                key.clone(),
                object.text(key)?.unwrap_or_default().to_owned(),
            ))
        };
        object.members.keys().map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_names_and_both_forms_of_arrays_are_decoded() {
        let encoded = b"a=1&m[x]=y+z&lines[1][amount]=5&lines[0][amount]=-4&expand[]=p&expand[]=q";
        let params = Params::decode(encoded).ok().unwrap();
        assert_eq!(params.integer("a").ok().unwrap(), Some(1));
        let pairs = params.pairs("m").ok().unwrap();
        assert_eq!(pairs, [("x".to_owned(), "y z".to_owned())]);
        let lines = params.objects("lines").ok().unwrap();
        let amounts = lines
            .iter()
            .map(|line| line.integer("amount").ok().unwrap());
        assert_eq!(amounts.collect::<Vec<_>>(), [Some(-4), Some(5)]);
        assert_eq!(params.texts("expand").ok().unwrap(), ["p", "q"]);
    }

    #[test]
    fn malformed_and_repeated_names_are_refused() {
        for encoded in ["a[b=1", "=1", "a=1&a=2", "a=1&a[b]=2", "[a]=1", "a[b]c=1"] {
            assert!(Params::decode(encoded.as_bytes()).is_err(), "{encoded}");
        }
    }

    #[test]
    fn values_of_another_type_are_refused() {
        let params = Params::decode(b"n=x&o[a]=1&l[1]=x").ok().unwrap();
        assert!(params.integer("n").is_err());
        assert!(params.flag("n").is_err());
        assert!(params.text("o").is_err());
        assert!(params.object("n").is_err());
        assert!(params.objects("l").is_err());
        assert!(params.texts("l").is_err());
        assert!(params.only(&["n", "o"]).is_err());
    }
}
