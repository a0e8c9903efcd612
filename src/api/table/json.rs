//! Writing JSON straight into the answer, member by member.

use serde::Serialize;
use std::{fmt::Display, io::Write};

/// An object being written.
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    /// Begins an object.
    pub fn open(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// The place of the next member.
    pub fn member<'s>(&'s mut self, name: &'s str) -> MemberWriter<'s, 'o> {
        MemberWriter { object: self, name }
    }

    /// Ends the object.
    pub fn close(self) {
        self.out.push(b'}');
    }

    fn key(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        write_value(self.out, name);
        self.out.push(b':');
        self.out
    }
}

/// The place of one member in an object; dropped unused, the member is left out.
pub(crate) struct MemberWriter<'s, 'o> {
    object: &'s mut Object<'o>,
    name: &'s str,
}

impl MemberWriter<'_, '_> {
    /// Any value.
    pub fn put(self, value: &(impl Serialize + ?Sized)) {
        write_value(self.object.key(self.name), value);
    }

    /// The value if there is one.
    pub fn put_some(self, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(&value);
        }
    }

    /// A text without characters that JSON escapes, such as a number, a key or an id.
    pub fn text(self, value: impl Display) {
        write!(self.object.key(self.name), "\"{value}\"").expect("a vector takes all");
    }

    /// A number as it prints, of any width.
    pub fn number(self, value: impl Display) {
        write!(self.object.key(self.name), "{value}").expect("a vector takes all");
    }

    /// A nested object.
    pub fn object(self, fill: impl FnOnce(&mut Object<'_>)) {
        let mut object = Object::open(self.object.key(self.name));
        fill(&mut object);
        object.close();
    }

    /// Appends the one value that `write` writes.
    pub fn value_with(self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.object.key(self.name));
    }

    /// A list; `write` writes one element.
    pub fn list<T>(self, items: impl IntoIterator<Item = T>, write: impl FnMut(&mut Vec<u8>, T)) {
        write_list(self.object.key(self.name), items, write);
    }
}

/// Writes a list.
pub(crate) fn write_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

/// `{"data":…}`.
pub(crate) fn data(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    out.extend_from_slice(br#"{"data":"#);
    write(&mut out);
    out.push(b'}');
    out
}

/// `{"data":{…}}`.
pub(crate) fn data_object(fill: impl FnOnce(&mut Object<'_>)) -> Vec<u8> {
    data(|out| {
        let mut object = Object::open(out);
        fill(&mut object);
        object.close();
    })
}

/// Writes one value.
pub(crate) fn write_value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("what the API shows has text keys, and a vector takes all");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_slots_leave_no_trace() {
        let out = data_object(|object| {
            object.member("a").put_some(None::<u8>);
            object.member("b").text(7);
            object.member("c").put_some(None::<&str>);
            object.member("d").object(|inner| inner.member("\"").put("\n"));
            object.member("e").list([1, 2], |out, item| write_value(out, &item));
        });
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"data":{"b":"7","d":{"\"":"\n"},"e":[1,2]}}"#);
    }
}
