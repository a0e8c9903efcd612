//! The rows of a resource: one for each member that it shows.

use super::{
    dialect::{Dialect, Spoken},
    frame::Frame,
    json::{MemberWriter, Object},
    shape::{self, Named, Shape},
};
use serde_json::Value;

/// One member of a shown resource: a row of its table.
pub struct Member<R> {
    pub name: &'static str,
    pub spoken: Spoken,
    /// The shape of the value.
    pub shape: Shape,
    /// True if a resource may have none.
    pub is_optional: bool,
    /// Writes the value, or nothing if the resource has none.
    pub write: fn(&R, &Frame<'_>, MemberWriter<'_, '_>),
}

impl<R> Member<R> {
    /// A member of both dialects.
    pub const fn new(name: &'static str, shape: Shape, write: fn(&R, &Frame<'_>, MemberWriter<'_, '_>)) -> Self {
        Self { name, spoken: Spoken::Always, shape, is_optional: false, write }
    }

    /// A member of both dialects that not every resource has.
    pub const fn some(name: &'static str, shape: Shape, write: fn(&R, &Frame<'_>, MemberWriter<'_, '_>)) -> Self {
        Self { is_optional: true, ..Self::new(name, shape, write) }
    }

    /// A member of some dialects only.
    pub const fn only(
        name: &'static str,
        spoken: Spoken,
        shape: Shape,
        write: fn(&R, &Frame<'_>, MemberWriter<'_, '_>),
    ) -> Self {
        Self { spoken, ..Self::new(name, shape, write) }
    }

    /// A member of some dialects only that not every resource has.
    pub const fn only_some(
        name: &'static str,
        spoken: Spoken,
        shape: Shape,
        write: fn(&R, &Frame<'_>, MemberWriter<'_, '_>),
    ) -> Self {
        Self { spoken, ..Self::some(name, shape, write) }
    }
}

/// Writes a resource as an object.
pub fn write_members<R>(out: &mut Vec<u8>, table: &[Member<R>], row: &R, frame: &Frame<'_>) {
    let mut object = Object::open(out);
    for member in table.iter().filter(|member| member.spoken.holds(frame.dialect)) {
        (member.write)(row, frame, object.member(member.name));
    }
    object.close();
}

/// The schema of what a table writes.
pub fn of_table<R>(table: &[Member<R>], dialect: Dialect, named: &mut Named) -> Value {
    let members = table.iter().filter(|member| member.spoken.holds(dialect));
    shape::object(members.map(|member| (member.name, member.shape, !member.is_optional)), dialect, named)
}

impl MemberWriter<'_, '_> {
    /// A nested resource with a table of its own.
    pub fn members<R>(self, table: &[Member<R>], row: &R, frame: &Frame<'_>) {
        self.value_with(|out| write_members(out, table, row, frame));
    }
}
