//! Filters and orders of a resource's rows. Source: api.md 3, 4.2.

use super::{dialect::Dialect, field::Cell, frame::Frame, parameter::Parameters, row::Member, rule::ParameterValue};

/// True if a resource passes all filters of the request. A parameter without a row of its name is no filter. A
/// parameter whose value is elsewhere counts as passed.
pub(crate) fn matches<R>(table: &[Member<R>], parameters: &Parameters, row: &R, frame: &Frame<'_>) -> bool {
    has_all(table, parameters, row, frame) != Some(false)
}

/// The same, but `None` if the result depends on a value that this form of the resource lacks.
pub(crate) fn has_all<R>(table: &[Member<R>], parameters: &Parameters, row: &R, frame: &Frame<'_>) -> Option<bool> {
    let mut is_told = true;
    for (name, given) in parameters.iter() {
        let Some(member) = find_filter(table, name, frame.dialect) else { continue };
        match (member.value)(row, frame) {
            Cell::Elsewhere => is_told = false,
            cell if !cell.passes(given, member.test) => return Some(false),
            _ => {}
        }
    }
    is_told.then_some(true)
}

/// True if the request has a filter, which is a parameter with a row.
pub(crate) fn filters<R>(table: &[Member<R>], parameters: &Parameters, dialect: Dialect) -> bool {
    parameters.iter().any(|(name, given)| {
        !matches!(given, ParameterValue::Range { from: None, to: None }) && find_filter(table, name, dialect).is_some()
    })
}

/// The value of a member that is a number. `None` for another value.
pub(crate) fn number<R>(table: &[Member<R>], name: &str, row: &R, frame: &Frame<'_>) -> Option<i128> {
    match (find(table, name, frame.dialect)?.value)(row, frame) {
        Cell::Number(number) => Some(number),
        _ => None,
    }
}

/// Sorts by a member; equal rows keep their order.
pub(crate) fn sort<R: Clone>(
    table: &[Member<R>],
    (name, descending): (&str, bool),
    rows: Vec<R>,
    frame: &Frame<'_>,
) -> Vec<R> {
    let Some(member) = find(table, name, frame.dialect) else { return rows };
    // A cell may cost a hash and an encoding, so each is made once.
    let cell = |row| {
        let cell = (member.value)(row, frame);
        (cell.plain().unwrap_or(cell), row)
    };
    let mut cells: Vec<_> = rows.iter().map(cell).collect();
    cells.sort_by(|(one, _), (other, _)| one.order(other, descending, member.missing));
    cells.into_iter().map(|(_, row)| row.clone()).collect()
}

fn find<'t, R>(table: &'t [Member<R>], name: &str, dialect: Dialect) -> Option<&'t Member<R>> {
    table.iter().find(|member| member.name == name && member.spoken.holds(dialect))
}

fn find_filter<'t, R>(table: &'t [Member<R>], name: &str, dialect: Dialect) -> Option<&'t Member<R>> {
    find(table, name, dialect).filter(|member| member.rules.is_some())
}
