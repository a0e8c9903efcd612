//! What was paid for each type of transactions in the last days. Source: api.md 7.

use super::Call;
use crate::{
    api::{
        ApiError, Reply,
        json::{self, Object},
        resource::fee::{self, FeeRow},
    },
    protocol::transaction::Kind,
};
use std::collections::BTreeMap;

/// Days looked back unless told otherwise.
const DAYS: i64 = 7;

type Outcome = Result<Reply, ApiError>;

/// `GET /api/node/fees` as the published specification has it: a list.
pub fn list(call: &Call<'_>) -> Outcome {
    let (rows, frame) = (rows(call), call.frame());
    Ok(reply(call, |out| json::write_list(out, &rows, |out, row| fee::write_listed(out, row, &frame))))
}

/// `GET /api/node/fees` as the reference has it: by group and type.
pub fn by_group(call: &Call<'_>) -> Outcome {
    let (rows, frame) = (rows(call), call.frame());
    Ok(reply(call, |out| {
        let mut groups = Object::open(out);
        for group in rows.chunk_by(|one, other| one.kind.numbers().0 == other.kind.numbers().0) {
            groups.slot(&group[0].kind.numbers().0.to_string()).object(|keys| {
                for row in group {
                    keys.slot(row.kind.key()).value_with(|out| fee::write_grouped(out, row, &frame));
                }
            });
        }
        groups.close();
    }))
}

fn days(call: &Call<'_>) -> i64 {
    call.parameters.integer("days").unwrap_or(DAYS)
}

/// Ascending by group and type.
fn rows(call: &Call<'_>) -> Vec<FeeRow> {
    let view = &call.context.view;
    let since = i64::from(view.now().seconds().0) - days(call) * 86_400;
    let least = view.tree().rules().pool.dynamic_fees.as_ref().map_or(0, |fees| fees.min_fee_broadcast);
    let mut paid: BTreeMap<(u32, u16), Vec<u64>> = BTreeMap::new();
    let recent = call.head.blocks_down().take_while(|link| i64::from(link.block().header.timestamp.0) >= since);
    for transaction in recent.flat_map(|link| &link.block().transactions) {
        let fee = transaction.fee().value();
        if fee >= least {
            paid.entry(transaction.kind().numbers()).or_default().push(fee);
        }
    }
    let kinds = Kind::ALL.into_iter();
    kinds.filter_map(|kind| FeeRow::new(kind, paid.remove(&kind.numbers())?)).collect()
}

fn reply(call: &Call<'_>, write: impl FnOnce(&mut Vec<u8>)) -> Reply {
    let mut out = Vec::with_capacity(1_024);
    let mut body = Object::open(&mut out);
    body.slot("meta").object(|meta| meta.slot("days").put(&days(call)));
    body.slot("data").value_with(write);
    body.close();
    Reply::json(out)
}
