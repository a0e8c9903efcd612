//! Submission of transactions: request checks, decoding, signatures, the pool, and one answer about all. Source: api.md
//! 5.

use crate::{
    actors::{PoolError, Submission},
    api::{
        http::{ApiError, Reply},
        lab::submissions::SubmissionLine,
        table::{
            Call, DialectSet, Outcome, Shape,
            json::{Object, write_value},
            shape,
        },
    },
    protocol::{
        SignedTransaction, Timestamp, TransactionId,
        transaction::{BytesError, Kind, TransactionContext, TransactionError},
    },
};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};

/// The shape of the answer. `errors` is null, or left out in the other dialect, if there are none.
pub(crate) const SHAPE: Shape = Shape::Members(&[
    (
        "data",
        Shape::Members(&[
            ("accept", Shape::List(&shape::HASH), true),
            ("broadcast", Shape::List(&shape::HASH), true),
            ("excess", Shape::List(&shape::HASH), true),
            ("invalid", Shape::List(&Shape::Text), true),
        ]),
        true,
    ),
    ("errors", Shape::Either(&[Shape::Null, Shape::Map(&Shape::List(&ERROR))]), false),
]);

const ERROR: Shape = Shape::Members(&[("type", Shape::Text, true), ("message", Shape::Text, true)]);

/// The end of the reference's message about an item that fits no schema.
const NO_SCHEMA: &str = "should match some schema in anyOf";

/// `POST /api/transactions`.
pub(crate) async fn submit(call: Call<'_>) -> Outcome {
    let (at, node, height) = (call.context.view.now(), call.context.view.node(), call.head.height());
    let keep = |id: Option<&str>, refusal: Option<(Option<&'static str>, String)>| {
        let id = id.map(str::to_owned);
        call.context.submissions.add(SubmissionLine { at, node, height, id, refusal });
    };
    let batch = decode_all(&call).inspect_err(|why| keep(None, Some((None, why.to_string()))))?;
    let submission = if batch.transactions.is_empty() {
        Submission::default()
    } else {
        call.context.live.submit(call.context.view.node(), batch.transactions.into()).await?
    };
    let refused = all_refused(&submission, batch.refused, &batch.sent_as);
    submission.accept.iter().for_each(|id| keep(Some(&id.to_string()), None));
    for id in submission.excess.iter().filter(|id| !submission.accept.contains(id)) {
        let why = "its sender has as many pending transactions as the node keeps".to_owned();
        keep(Some(&id.to_string()), Some((Some("excess"), why)));
    }
    for (id, Refusal { code, message }) in &refused {
        keep(Some(id), Some((Some(code), message.clone())));
    }
    Ok(Reply::json(write(&call, &submission, &refused)))
}

/// The items of a request.
#[derive(Default)]
struct Batch {
    transactions: Vec<Arc<SignedTransaction>>,
    /// Items that are refused before the pool sees them, by the id they were sent with.
    refused: IndexMap<String, Refusal>,
    /// For each transaction with an invalid signature, the id that it was sent with.
    sent_as: BTreeMap<TransactionId, String>,
}

/// The reason why a transaction is invalid.
#[derive(Serialize)]
struct Refusal {
    #[serde(rename = "type")]
    code: &'static str,
    message: String,
}

/// The error of an item.
enum ItemError {
    /// It fits no transaction's schema, so the whole request is refused.
    Request(String),
    /// Only this item is refused.
    Item(Refusal),
}

fn decode_all(call: &Call<'_>) -> Result<Batch, ApiError> {
    let tree = call.context.view.tree();
    let context = tree.transaction_context(call.head.height());
    let mut batch = Batch::default();
    let now = call.context.view.now().seconds();
    let mut sent = Vec::new();
    for item in items(&call.body, tree.rules().pool.max_transactions_per_request)? {
        let decoded = decode(item, &context).map_err(|error| error.or_from_future(item, now));
        match decoded.and_then(|transaction| check_sent_time(item, transaction, now)) {
            Ok(transaction) => {
                batch.transactions.push(Arc::new(transaction));
                sent.push(item);
            }
            Err(ItemError::Request(message)) => return Err(ApiError::Unprocessable(message)),
            Err(ItemError::Item(refusal)) => {
                batch.refused.entry(sent_id(item)).or_insert(refusal);
            }
        }
    }
    // The API's threads verify the signatures, so that the pool, which is one actor, need not.
    let crypto = tree.config().crypto;
    SignedTransaction::verify_all(&batch.transactions, crypto);
    let unverified = batch.transactions.iter().zip(sent).filter(|(transaction, _)| !transaction.verified(crypto));
    batch.sent_as = unverified.map(|(transaction, item)| (transaction.id(), sent_id(item))).collect();
    Ok(batch)
}

/// The items of the body, if it has the right shape.
fn items(body: &Value, limit: usize) -> Result<&[Value], ApiError> {
    let refuse = |message: &str| Err(ApiError::unprocessable(message));
    let Some(object) = body.as_object() else { return refuse("should be object") };
    let Some(list) = object.get("transactions") else { return refuse("should have required property 'transactions'") };
    match list.as_array() {
        None => refuse("should be array"),
        Some(list) if list.is_empty() => refuse("should NOT have fewer than 1 items"),
        Some(list) if list.len() > limit => refuse(&format!("should NOT have more than {limit} items")),
        Some(list) => Ok(list),
    }
}

fn decode(item: &Value, context: &TransactionContext<'_>) -> Result<SignedTransaction, ItemError> {
    let error = match SignedTransaction::from_json(item, context) {
        Ok(transaction) => return Ok(transaction),
        Err(error) => error,
    };
    let refuse = |code, message| Err(ItemError::Item(Refusal { code, message }));
    match &error {
        TransactionError::Schema(schema) if passes_the_batch(item, &schema.path) => {
            refuse("ERR_TRANSACTION_SCHEMA", error.reference_text())
        }
        TransactionError::Schema(schema) => Err(ItemError::Request(format!("{},{NO_SCHEMA}", schema.reference_text()))),
        TransactionError::UnknownType { .. } if item.get("type").is_none() => {
            Err(ItemError::Request(format!("data should have required property '.type',{NO_SCHEMA}")))
        }
        TransactionError::UnknownType { .. } => match as_core_type(item, context) {
            Some(kind) => {
                refuse("ERR_UNSUPPORTED", format!("Invalidating transaction of unsupported type '{}'", kind.name()))
            }
            None => Err(ItemError::Request(format!("should pass \"transactionType\" keyword validation,{NO_SCHEMA}"))),
        },
        // The pool checks the recipient of a transfer before it serialises the transfer. It does not for other types.
        TransactionError::Bytes(BytesError::RecipientNetwork { allowed, .. }) if is_core_type(item, 0) => {
            let recipient = item.get("recipientId").and_then(Value::as_str).unwrap_or_default();
            Err(ItemError::Item(
                PoolError::InvalidRecipient { address: recipient.to_owned(), network: *allowed }.into(),
            ))
        }
        _ => refuse("ERR_UNKNOWN", error.reference_text()),
    }
}

/// Refuses a transaction of version 2 or later if its `timestamp` is more than an hour ahead. The timestamp is no part of such a
/// transaction, but counts all the same.
fn check_sent_time(
    item: &Value,
    transaction: SignedTransaction,
    now: Timestamp,
) -> Result<SignedTransaction, ItemError> {
    if let Some(sent) = sent_time(item).filter(|_| transaction.nonce().is_some()) {
        PoolError::check_timestamp(transaction.id(), sent, now).map_err(|error| ItemError::Item(error.into()))?;
    }
    Ok(transaction)
}

fn sent_time(item: &Value) -> Option<Timestamp> {
    let sent = item.get("timestamp").and_then(Value::as_u64);
    sent.and_then(|sent| u32::try_from(sent).ok()).map(Timestamp)
}

impl ItemError {
    /// Replaces the error of an item from the future. The reference checks the timestamp before it decodes the item, so
    /// it reports the timestamp even if the item's version is no longer supported.
    fn or_from_future(self, item: &Value, now: Timestamp) -> Self {
        let Self::Item(_) = &self else { return self };
        let (Some(sent), Ok(id)) = (sent_time(item), sent_id(item).parse()) else { return self };
        PoolError::check_timestamp(id, sent, now).map_or_else(|error| Self::Item(error.into()), |()| self)
    }
}

fn is_core_type(item: &Value, number: u64) -> bool {
    let group = item.get("typeGroup").map_or(Some(1), Value::as_u64);
    group == Some(1) && item.get("type").and_then(Value::as_u64) == Some(number)
}

impl From<PoolError> for Refusal {
    fn from(error: PoolError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

/// True if an item with a schema error passes the reference's check of the request all the same. A multipayment with a
/// wrong asset does, because it fits the schemas of types without an asset.
fn passes_the_batch(item: &Value, wrong: &str) -> bool {
    is_core_type(item, 6) && (wrong.starts_with("asset") || wrong == "vendorField")
}

/// The core type whose schema an item of an unknown type would fit if its group was 1.
fn as_core_type(item: &Value, context: &TransactionContext<'_>) -> Option<Kind> {
    let mut members: Map<String, Value> = item.as_object()?.clone();
    members.insert("typeGroup".to_owned(), 1.into());
    SignedTransaction::from_json(&Value::Object(members), context).ok().map(|transaction| transaction.kind())
}

/// The id an item was sent with. It has passed the schema of ids, so it is a text or null.
fn sent_id(item: &Value) -> String {
    item.get("id").and_then(Value::as_str).unwrap_or("null").to_owned()
}

/// The items that were refused before the pool, followed by those that the pool refused.
fn all_refused(
    submission: &Submission,
    mut refused: IndexMap<String, Refusal>,
    sent_as: &BTreeMap<TransactionId, String>,
) -> IndexMap<String, Refusal> {
    for (id, error) in &submission.errors {
        // A transaction with an invalid signature is named by the id it was sent with. Its computed id is that of
        // another transaction.
        let sent = sent_as.get(id).filter(|_| matches!(error, PoolError::NotVerified));
        let name = sent.cloned().unwrap_or_else(|| id.to_string());
        refused.entry(name).or_insert_with(|| error.clone().into());
    }
    refused
}

fn write(call: &Call<'_>, submission: &Submission, refused: &IndexMap<String, Refusal>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1_024);
    let mut answer = Object::open(&mut out);
    answer.member("data").object(|data| {
        data.member("accept").put(&submission.accept);
        data.member("broadcast").put(&submission.broadcast);
        data.member("excess").put(&submission.excess);
        data.member("invalid").list(refused.keys(), write_value);
    });
    if !refused.is_empty() {
        answer.member("errors").object(|errors| {
            for (id, refusal) in refused {
                errors.member(id).put(&[refusal]);
            }
        });
    } else if NO_ERRORS_SHOWN.holds(call.context.settings.dialect) {
        answer.member("errors").put(&Value::Null);
    }
    answer.close();
    out
}

/// The dialects that show `errors` as null when there are none. Source: api.md 4.10 row 5.
const NO_ERRORS_SHOWN: DialectSet = DialectSet::DOCUMENTED;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_shape_of_a_request_is_checked_first() {
        let message = |body: Value| items(&body, 40).unwrap_err().to_string();
        assert_eq!(message(Value::Null), "should be object");
        assert_eq!(message(json!({"transaction": []})), "should have required property 'transactions'");
        assert_eq!(message(json!({"transactions": "x"})), "should be array");
        assert_eq!(message(json!({"transactions": []})), "should NOT have fewer than 1 items");
        assert_eq!(message(json!({"transactions": vec![1; 41]})), "should NOT have more than 40 items");
        assert_eq!(items(&json!({"transactions": [1], "more": 1}), 40), Ok(&[json!(1)][..]));
    }
}
