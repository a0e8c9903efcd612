//! The types of transactions in force: numbers, static fees, schemas. Source: api.md 4.6.

use crate::{
    api::{
        http::Reply,
        resource::schema,
        table::{
            Call, Outcome, Shape,
            json::{self, Object},
            shape,
        },
    },
    protocol::{Milestone, transaction::Kind},
};

/// The shape of the numbers of all types, by group and then by the type's name.
pub(crate) const TYPES_SHAPE: Shape = Shape::Map(&Shape::Map(&Shape::Integer));
pub(crate) const FEES_SHAPE: Shape = Shape::Map(&Shape::Map(&shape::AMOUNT));
pub(crate) const SCHEMAS_SHAPE: Shape = Shape::Map(&Shape::Map(&Shape::Map(&Shape::Map(&Shape::Any))));

/// `GET /api/transactions/types`.
pub(crate) fn types(call: &Call<'_>) -> Outcome {
    Ok(by_group(call, |object, kind, _| object.member(kind.name()).put(&kind.numbers().1)))
}

/// `GET /api/transactions/fees`.
pub(crate) fn fees(call: &Call<'_>) -> Outcome {
    Ok(by_group(call, |object, kind, milestone| object.member(kind.key()).put(&milestone.fees.get(kind))))
}

/// `GET /api/transactions/schemas`.
pub(crate) fn schemas(call: &Call<'_>) -> Outcome {
    Ok(by_group(call, |object, kind, _| object.member(&kind.numbers().1.to_string()).put(&schema::of(kind))))
}

/// `{"1":{…},"2":{…}}` over the types in force.
fn by_group(call: &Call<'_>, write: impl Fn(&mut Object<'_>, Kind, &Milestone)) -> Reply {
    let milestone = call.context.view.tree().config().milestones.at(call.head.height());
    let in_force: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| is_in_force(*kind, milestone)).collect();
    Reply::json(json::data_object(|data| {
        for kinds in in_force.chunk_by(|one, other| one.numbers().0 == other.numbers().0) {
            data.member(&kinds[0].numbers().0.to_string()).object(|object| {
                kinds.iter().for_each(|kind| write(object, *kind, milestone));
            });
        }
    }))
}

/// True if a type can be used at a milestone. Source: api.md 4.6.
fn is_in_force(kind: Kind, milestone: &Milestone) -> bool {
    match kind.numbers() {
        (1, 0..=4) => true,
        (1, 8..=10) => milestone.htlc_enabled,
        _ => milestone.aip11,
    }
}
