//! Payment to several recipients. Source: protocol.md 3.4.

use super::{
    super::{
        BytesError, Rule, SchemaError, Transaction, TransactionBuilder, TransactionContext,
        decode::WireReader,
        read::{JsonReader, amount, describe},
        schema::{self, SchemaResult},
    },
    Asset, Payment, TENTH, TransactionType, own,
    schema_parts::{self, reference},
};
use crate::protocol::Arktoshi;
use serde_json::{Value, json};

/// Bytes of a payment on the wire.
const PAYMENT: usize = 29;
const AMOUNT: Rule = Rule::Amount { min: 1, max: Arktoshi::MAX.value() };

pub(crate) struct Type;

impl Transaction {
    /// Pays several recipients at once. The transaction itself has the amount 0.
    pub fn multi_payment(payments: Vec<Payment>) -> TransactionBuilder {
        TransactionBuilder::new(Asset::MultiPayment { payments })
    }
}

impl TransactionType for Type {
    fn static_fee(&self) -> Arktoshi {
        TENTH
    }

    fn addon_bytes(&self) -> u64 {
        500
    }

    fn has_vendor_field(&self) -> bool {
        true
    }

    fn write(&self, asset: &Asset, out: &mut Vec<u8>) {
        own!(asset is Asset::MultiPayment { payments });
        out.reserve(PAYMENT * payments.len());
        out.extend(u16::try_from(payments.len()).expect("more payments than a count can say").to_le_bytes());
        for payment in payments {
            out.extend(payment.amount.value().to_le_bytes());
            out.extend(payment.recipient.as_bytes());
        }
    }

    fn read(&self, wire: &mut WireReader<'_>) -> Result<Asset, BytesError> {
        let count = u16::from_le_bytes(wire.array("asset.payments")?);
        wire.require("asset.payments", PAYMENT * usize::from(count))?;
        let payment = |_| Ok(Payment { amount: wire.amount("asset.payments.amount")?, recipient: wire.recipient()? });
        let payments = (0..count).map(payment).collect::<Result<_, BytesError>>()?;
        Ok(Asset::MultiPayment { payments })
    }

    fn to_json(&self, asset: &Asset) -> Option<Value> {
        own!(asset is Asset::MultiPayment { payments });
        let payment = |payment: &Payment| json!({ "amount": payment.amount, "recipientId": payment.recipient });
        Some(json!({ "payments": payments.iter().map(payment).collect::<Vec<_>>() }))
    }

    fn read_json(&self, json: &mut JsonReader<'_>, _: u8, _: Arktoshi) -> Result<Asset, SchemaError> {
        let list = json.members.object("", "asset")?.list("asset", "payments")?;
        schema::payments(list.len(), json.context.milestone.multi_payment_limit)?;
        let payments = list.iter().enumerate().map(|(index, found)| payment(json, index, found));
        Ok(Asset::MultiPayment { payments: payments.collect::<Result<_, _>>()? })
    }

    fn check(&self, asset: &Asset, context: &TransactionContext<'_>) -> SchemaResult {
        own!(asset is Asset::MultiPayment { payments });
        schema::payments(payments.len(), context.milestone.multi_payment_limit)?;
        match payments.iter().position(|payment| payment.amount == Arktoshi::ZERO) {
            Some(index) => Err(SchemaError::new(format!("asset.payments[{index}].amount"), "\"0\"", AMOUNT)),
            None => Ok(()),
        }
    }

    fn asset_members(&self) -> &'static [&'static str] {
        &["payments"]
    }

    fn published(&self) -> Vec<(&'static str, Value)> {
        let amount = json!({"bignumber": {"minimum": 1}});
        let payment = json!({"amount": amount, "recipientId": reference("address")});
        let payments = schema_parts::object(&["amount", "recipientId"], payment);
        let shape = json!({
            "type": "array", "minItems": 2, "additionalItems": false, "uniqueItems": false, "items": payments,
        });
        vec![schema_parts::vendor_field(), schema_parts::asset("payments", shape)]
    }
}

fn payment(json: &mut JsonReader<'_>, index: usize, found: &Value) -> Result<Payment, SchemaError> {
    let path = format!("asset.payments[{index}]");
    let payment = found.as_object().ok_or_else(|| SchemaError::new(&path, describe(found), Rule::Object))?;
    let member = |key: &str| {
        payment.get(key).ok_or_else(|| SchemaError::new(format!("{path}.{key}"), "missing", Rule::Required))
    };
    let amount = payment_amount(&format!("{path}.amount"), member("amount")?, json.lax())?;
    let recipient = json.recipient(&format!("{path}.recipientId"), member("recipientId")?, true)?;
    Ok(Payment { amount, recipient })
}

fn payment_amount(path: &str, found: &Value, lax: bool) -> Result<Arktoshi, SchemaError> {
    match amount(path, found, lax) {
        Ok(amount) if amount.value() >= 1 => Ok(amount),
        _ => Err(SchemaError::new(path, describe(found), AMOUNT)),
    }
}
