//! The fees paid for each type of transactions in the last days. Source: api.md 7.

use crate::{
    api::{
        http::Reply,
        resource::fee::{self, FeeRow},
        table::{
            Call, Outcome, Shape,
            json::{MemberWriter, Object},
        },
        view::{List, Spot},
    },
    protocol::transaction::Kind,
};
use std::ops::ControlFlow;

/// The number of days if the request names none.
const DAYS: i64 = 7;

const META_SHAPE: Shape = Shape::Members(&[("days", Shape::Integer, true)]);
pub(crate) const LIST_SHAPE: Shape =
    Shape::Members(&[("meta", META_SHAPE, true), ("data", Shape::List(&fee::LISTED_SHAPE), true)]);
pub(crate) const GROUPS_SHAPE: Shape =
    Shape::Members(&[("meta", META_SHAPE, true), ("data", Shape::Map(&Shape::Map(&fee::GROUPED_SHAPE)), true)]);

/// `GET /api/node/fees` as the published specification has it: a list.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let (rows, frame) = (rows(call), call.frame());
    Ok(reply(call, |slot| slot.rows(fee::LISTED, &rows, &frame)))
}

/// `GET /api/node/fees` as the reference has it: by group and type.
pub(crate) fn by_group(call: &Call<'_>) -> Outcome {
    let (rows, frame) = (rows(call), call.frame());
    let write = |groups: &mut Object<'_>| {
        for group in rows.chunk_by(|one, other| one.kind.numbers().0 == other.kind.numbers().0) {
            groups.member(&group[0].kind.numbers().0.to_string()).object(|keys| {
                for row in group {
                    keys.member(row.kind.key()).members(fee::GROUPED, row, &frame);
                }
            });
        }
    };
    Ok(reply(call, |slot| slot.object(write)))
}

fn days(call: &Call<'_>) -> i64 {
    call.parameters.number("days").unwrap_or(DAYS)
}

/// The paid fees of each type, ascending by group and type.
fn rows(call: &Call<'_>) -> Vec<FeeRow> {
    let view = &call.context.view;
    let since = i64::from(view.now().seconds().0) - days(call) * 86_400;
    let least = view.tree().rules().pool.dynamic_fees.as_ref().map_or(0, |fees| fees.min_fee_broadcast);
    let chain = call.head.chain();
    let first = Spot { height: chain.height_since(since), index: 0 };
    let paid = |kind| {
        // Reads fees from the newest back, and stops at the first one before the window.
        let mut paid = Vec::new();
        chain.listed(List::Of(kind)).fees_down(|spot, fee| {
            if spot < first {
                return ControlFlow::Break(());
            }
            paid.extend((fee >= least).then_some(fee));
            ControlFlow::Continue(())
        });
        paid
    };
    Kind::ALL.into_iter().filter_map(|kind| FeeRow::new(kind, paid(kind))).collect()
}

fn reply(call: &Call<'_>, write: impl FnOnce(MemberWriter<'_, '_>)) -> Reply {
    let mut out = Vec::with_capacity(1_024);
    let mut body = Object::open(&mut out);
    body.member("meta").object(|meta| meta.member("days").put(&days(call)));
    write(body.member("data"));
    body.close();
    Reply::json(out)
}
