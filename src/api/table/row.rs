//! The rows of a resource: one for each member. A row has the value, its shape, the rule of its parameter, its comparison and its
//! dialect. Answers, their description, filters and orders follow from the rows.

use super::{
    dialect::{Dialect, DialectSet},
    field::{Cell, Missing, Test},
    frame::Frame,
    json::{MemberWriter, Object},
    parameter::{Parameter, both},
    rule::{Bound, Rule},
    shape::{self, NamedSchemas, SchemaSource, Shape},
};
use serde_json::Value;

/// The value of a member.
pub(crate) type CellOf<R> = for<'r> fn(&'r R, &Frame<'r>) -> Cell<'r>;

/// Writes the value of a member, or nothing if the resource has none.
pub(crate) type Writer<R> = fn(&R, &Frame<'_>, MemberWriter<'_, '_>);

/// One member of a resource: a row of its table.
pub(crate) struct Member<R: 'static> {
    pub name: &'static str,
    pub spoken: DialectSet,
    /// The shape of the value. `None` for a member that only filters and orders.
    pub shape: Option<Shape>,
    /// True if a resource may lack the member.
    pub is_optional: bool,
    pub value: CellOf<R>,
    pub written: MemberEncoding<R>,
    /// The rules of a parameter of this name: in a list's query, and in a search. `None` if there is no such parameter.
    pub rules: Option<(Rule, Rule)>,
    /// The dialects that have the parameter.
    pub asked: DialectSet,
    pub test: Test,
    pub missing: Missing,
}

/// The way in which a member is written.
pub(crate) enum MemberEncoding<R: 'static> {
    /// By its value and its shape.
    Plainly,
    By(Writer<R>),
    /// As an object with a table of its own.
    Members(&'static [Member<R>]),
}

impl<R> Clone for Member<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Member<R> {}

impl<R> Clone for MemberEncoding<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for MemberEncoding<R> {}

impl<R> Member<R> {
    /// A member that every resource has.
    pub const fn new(name: &'static str, shape: Shape, value: CellOf<R>) -> Self {
        Self {
            name,
            spoken: DialectSet::Always,
            shape: Some(shape),
            is_optional: false,
            value,
            written: MemberEncoding::Plainly,
            rules: None,
            asked: DialectSet::Always,
            test: Test::Equal,
            missing: Missing::Last,
        }
    }

    /// A member that not every resource has.
    pub const fn some(name: &'static str, shape: Shape, value: CellOf<R>) -> Self {
        Self { is_optional: true, ..Self::new(name, shape, value) }
    }

    /// A hidden member, which only filters and orders resources.
    pub const fn hidden(name: &'static str, value: CellOf<R>) -> Self {
        Self { shape: None, ..Self::new(name, Shape::Any, value) }
    }

    /// A member that is only shown, with a writer of its own. A resource may lack it.
    pub const fn some_by(name: &'static str, shape: Shape, write: Writer<R>) -> Self {
        Self { is_optional: true, ..Self::by(name, shape, write) }
    }

    /// A member that is only shown, with a writer of its own.
    pub const fn by(name: &'static str, shape: Shape, write: Writer<R>) -> Self {
        Self::new(name, shape, |_, _| Cell::Missing).written(write)
    }

    /// An object with a table of its own.
    pub const fn nested(name: &'static str, table: &'static [Self]) -> Self {
        Self { written: MemberEncoding::Members(table), ..Self::new(name, Shape::Any, |_, _| Cell::Missing) }
    }

    /// The same, with a writer of its own. Comparisons still use the value.
    pub const fn written(self, write: Writer<R>) -> Self {
        Self { written: MemberEncoding::By(write), ..self }
    }

    /// The same under another name.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// The same, in another shape.
    pub const fn shaped(self, shape: Shape) -> Self {
        Self { shape: Some(shape), ..self }
    }

    /// The same, of one dialect.
    pub const fn only(self, spoken: DialectSet) -> Self {
        Self { spoken, ..self }
    }

    /// The same, with a parameter of this rule.
    pub const fn asked(self, rule: Rule) -> Self {
        Self { rules: Some((rule, rule)), ..self }
    }

    /// The same, with a parameter of numbers within this bound: one number in a list's query, a range in a search.
    pub const fn within(self, bound: Bound) -> Self {
        Self { rules: Some((Rule::Quantity(bound), Rule::Range(bound))), ..self }
    }

    /// The same, with a parameter of numbers from 0.
    pub const fn ranged(self) -> Self {
        self.within(Bound::Least(0))
    }

    /// The same, with a parameter of this rule that matches a part of the text.
    pub const fn asked_in_part(self, rule: Rule) -> Self {
        self.asked(rule).tested(Test::Contains)
    }

    /// The same, with the parameter in the published specification only.
    pub const fn if_documented(self) -> Self {
        Self { asked: DialectSet::DOCUMENTED, ..self }
    }

    /// The same, with this comparison.
    pub const fn tested(self, test: Test) -> Self {
        Self { test, ..self }
    }

    /// The same, with this place in an order for rows without a value.
    pub const fn missing(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }

    fn write(&self, row: &R, frame: &Frame<'_>, slot: MemberWriter<'_, '_>) {
        match (self.written, self.shape) {
            (_, None) => {}
            (MemberEncoding::By(write), Some(_)) => write(row, frame, slot),
            (MemberEncoding::Members(table), Some(_)) => slot.members(table, row, frame),
            (MemberEncoding::Plainly, Some(shape)) => (self.value)(row, frame).write(shape.told(frame.dialect), slot),
        }
    }

    /// The name, the schema, and true if every resource has the member.
    fn described(&self, dialect: Dialect, named: &mut NamedSchemas) -> Option<(&'static str, Value, bool)> {
        let shape = self.shape?.told(dialect);
        let schema = match self.written {
            MemberEncoding::Members(table) => table.schema(dialect, named),
            MemberEncoding::Plainly | MemberEncoding::By(_) => shape.schema(dialect, named),
        };
        Some((self.name, schema, !self.is_optional || shape.is_nullable()))
    }
}

/// A table of `N` rows, in which the given rows replace those of the same names.
///
/// # Panics
/// The table has no row of such a name.
pub(crate) const fn with<R, const N: usize, const M: usize>(
    table: &[Member<R>],
    others: [Member<R>; M],
) -> [Member<R>; N] {
    let (mut made, mut at) = ([table[0]; N], 0);
    made.copy_from_slice(table);
    while at < M {
        made[index(table, others[at].name)] = others[at];
        at += 1;
    }
    made
}

/// The parameters of a list's query that filter by these members, in the order of their checks.
///
/// # Panics
/// The table has no such row, or the row has no parameter.
pub(crate) const fn filters<R, const N: usize>(table: &[Member<R>], names: [&'static str; N]) -> [Parameter; N] {
    parameters(table, names, false)
}

/// The parameters of a search that filter by these members, in the order of their checks.
///
/// # Panics
/// The table has no such row, or the row has no parameter.
pub(crate) const fn searched<R, const N: usize>(table: &[Member<R>], names: [&'static str; N]) -> [Parameter; N] {
    parameters(table, names, true)
}

/// The parameter that orders a list by one of these members.
///
/// # Panics
/// The table has no such row.
pub(crate) const fn ordered<R>(table: &[Member<R>], names: &'static [&'static str]) -> [Parameter; 1] {
    let mut at = 0;
    while at < names.len() {
        index(table, names[at]);
        at += 1;
    }
    [both("orderBy", Rule::Order(names))]
}

const fn parameters<R, const N: usize>(
    table: &[Member<R>],
    names: [&'static str; N],
    is_search: bool,
) -> [Parameter; N] {
    let mut parameters = [both("", Rule::Boolean); N];
    let mut at = 0;
    while at < N {
        let Member { name, rules: Some((in_list, in_search)), asked: spoken, .. } = table[index(table, names[at])]
        else {
            panic!("a parameter without a rule")
        };
        let rule = if is_search { in_search } else { in_list };
        parameters[at] = Parameter { name, rule, spoken, is_required: false };
        at += 1;
    }
    parameters
}

const fn index<R>(table: &[Member<R>], name: &str) -> usize {
    let mut index = 0;
    while index < table.len() {
        if is_same(table[index].name.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    panic!("a name that the table does not have")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([first, one @ ..], [second, other @ ..]) => *first == *second && is_same(one, other),
        _ => false,
    }
}

/// Writes a resource as an object.
pub(crate) fn write_members<R>(out: &mut Vec<u8>, table: &[Member<R>], row: &R, frame: &Frame<'_>) {
    let mut object = Object::open(out);
    for member in table.iter().filter(|member| member.spoken.holds(frame.dialect)) {
        member.write(row, frame, object.member(member.name));
    }
    object.close();
}

/// The schema of the objects that a table writes.
impl<R> SchemaSource for &[Member<R>] {
    fn schema(&self, dialect: Dialect, named: &mut NamedSchemas) -> Value {
        let members = self.iter().filter(|member| member.spoken.holds(dialect));
        shape::object(members.filter_map(|member| member.described(dialect, named)))
    }
}

impl MemberWriter<'_, '_> {
    /// A nested resource with a table of its own.
    pub fn members<R>(self, table: &[Member<R>], row: &R, frame: &Frame<'_>) {
        self.value_with(|out| write_members(out, table, row, frame));
    }

    /// A nested resource with a table of its own, or nothing for `None`.
    pub fn some_members<R>(self, table: &[Member<R>], row: Option<&R>, frame: &Frame<'_>) {
        if let Some(row) = row {
            self.members(table, row, frame);
        }
    }

    /// A list of nested resources with a table of their own.
    pub fn rows<'r, R: 'static>(self, table: &[Member<R>], rows: impl IntoIterator<Item = &'r R>, frame: &Frame<'_>) {
        self.list(rows, |out, row| write_members(out, table, row, frame));
    }
}
