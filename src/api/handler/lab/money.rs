//! Coin and accounts for tests: `POST /lab/faucet` and `POST /lab/accounts`.

use super::goal::refused;
use crate::{
    api::{
        http::ApiError,
        lab::funds::{Fresh, Funds},
        table::{Call, Member, Outcome, Shape, shape},
    },
    protocol::{Address, Arktoshi, TransactionId, transaction::Payment},
};
use serde_json::{Map, Value, json};

/// The ids of the transactions that pay.
pub(crate) const PAID: &[Member<Vec<TransactionId>>] =
    &[Member::by("transactions", Shape::List(&shape::HASH), |ids, _, slot| slot.put(ids))];

/// New accounts, and the ids of the transactions that pay them.
pub(crate) const OPENED: &[Member<(Vec<NewAccount>, Vec<TransactionId>)>] = &[
    Member::by("accounts", Shape::List(&Shape::Table(&ACCOUNT)), |(fresh, _), frame, slot| {
        slot.rows(ACCOUNT, fresh, frame);
    }),
    Member::by("transactions", Shape::List(&shape::HASH), |(_, ids), _, slot| slot.put(ids)),
];

/// A new account and its balance.
type NewAccount = (Fresh, Arktoshi);

const ACCOUNT: &[Member<NewAccount>] = &[
    Member::new("address", shape::ADDRESS, |(fresh, _), _| fresh.address.into()),
    Member::new("publicKey", shape::KEY, |(fresh, _), _| (*fresh.keys.public()).into()),
    Member::new("passphrase", Shape::Text, |(fresh, _), _| (&*fresh.passphrase).into()),
    Member::new("balance", shape::AMOUNT, |(_, balance), _| (*balance).into()),
];

/// The largest number of payments or accounts in one request.
const AT_ONCE: u32 = 1_000;

/// `POST /lab/faucet {"recipient":..,"amount":..}`, or a list of such objects.
pub(crate) async fn faucet(call: Call<'_>) -> Outcome {
    let payments = read_payments(&call.body, network_byte(&call))?;
    let ids = funds(&call)?.pay((&call.context.view, &call.context.live), payments).await?;
    Ok(call.show_row(PAID, &ids))
}

/// `POST /lab/accounts {"count":..,"balance":..}`.
pub(crate) async fn accounts(call: Call<'_>) -> Outcome {
    let (count, balance) = read_accounts(&call.body)?;
    let (fresh, ids) = funds(&call)?.open((&call.context.view, &call.context.live), count, balance).await?;
    let accounts = fresh.into_iter().map(|fresh| (fresh, balance)).collect();
    Ok(call.show_row(OPENED, &(accounts, ids)))
}

/// The schema of the faucet's body, for the description of the API.
pub(crate) fn faucet_schema() -> Value {
    let recipient = json!({"type": "string", "pattern": "^[1-9A-HJ-NP-Za-km-z]{34}$"});
    let one = shape::object([("recipient", recipient, true), ("amount", amount_schema(), true)]);
    json!({"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": AT_ONCE}]})
}

/// The schema of the body that asks for accounts.
pub(crate) fn accounts_schema() -> Value {
    let count = json!({"type": "integer", "minimum": 1, "maximum": AT_ONCE});
    shape::object([("count", count, true), ("balance", amount_schema(), true)])
}

fn amount_schema() -> Value {
    let number = json!({"type": "integer", "minimum": 1, "maximum": Arktoshi::MAX.value()});
    json!({"anyOf": [number, {"type": "string", "pattern": "^[1-9][0-9]{0,18}$"}]})
}

/// The accounts that pay.
pub(crate) fn funds<'c>(call: &Call<'c>) -> Result<&'c Funds, ApiError> {
    let none = || ApiError::Conflict("this API has no funded accounts".to_owned());
    call.context.funds.as_deref().ok_or_else(none)
}

fn read_payments(body: &Value, byte: u8) -> Result<Vec<Payment>, ApiError> {
    match body {
        Value::Array(list) if (1..=AT_ONCE as usize).contains(&list.len()) => {
            list.iter().enumerate().map(|(at, one)| read_payment(one, &format!("[{at}]."), byte)).collect()
        }
        Value::Array(list) => {
            Err(ApiError::Unprocessable(format!("the body has {} payments, allowed are 1 to {AT_ONCE}", list.len())))
        }
        one => Ok(vec![read_payment(one, "", byte)?]),
    }
}

fn read_payment(one: &Value, at: &str, byte: u8) -> Result<Payment, ApiError> {
    let members = members(one, at, ["recipient", "amount"])?;
    let recipient = read_address(&members["recipient"], &format!("{at}recipient"), byte)?;
    Ok(Payment { amount: read_amount(&members["amount"], &format!("{at}amount"))?, recipient })
}

/// Reads an address of this network.
///
/// # Errors
/// The value is not an address of this network.
pub(crate) fn read_recipient(value: &Value, key: &str, call: &Call<'_>) -> Result<Address, ApiError> {
    read_address(value, key, network_byte(call))
}

fn network_byte(call: &Call<'_>) -> u8 {
    call.context.view.tree().config().network.pub_key_hash
}

fn read_address(value: &Value, key: &str, byte: u8) -> Result<Address, ApiError> {
    let address = value.as_str().and_then(|text| text.parse().ok());
    address
        .filter(|address: &Address| address.network_byte() == byte)
        .ok_or_else(|| refused(key, value, &format!("an address of this network, whose byte is {byte}")))
}

fn read_accounts(body: &Value) -> Result<(u32, Arktoshi), ApiError> {
    let members = members(body, "", ["count", "balance"])?;
    let count = members["count"].as_u64().and_then(|count| u32::try_from(count).ok());
    let count = count.filter(|count| (1..=AT_ONCE).contains(count));
    let allowed = || format!("a whole number from 1 to {AT_ONCE}");
    let count = count.ok_or_else(|| refused("count", &members["count"], &allowed()))?;
    Ok((count, read_amount(&members["balance"], "balance")?))
}

/// Reads an object that has exactly these members.
fn members<'b>(value: &'b Value, at: &str, names: [&str; 2]) -> Result<&'b Map<String, Value>, ApiError> {
    let fits =
        |members: &&Map<String, Value>| members.len() == 2 && names.iter().all(|name| members.contains_key(*name));
    let [first, second] = names;
    let key = if at.is_empty() { "(the body)" } else { at.trim_end_matches('.') };
    let allowed = format!("an object of '{first}' and '{second}'");
    value.as_object().filter(fits).ok_or_else(|| refused(key, value, &allowed))
}

/// Reads an amount: a number, or a text of digits.
fn read_amount(value: &Value, key: &str) -> Result<Arktoshi, ApiError> {
    let number = match value {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Value::Number(number) => number.as_u64(),
        _ => None,
    };
    let amount = number.and_then(Arktoshi::new).filter(|amount| *amount > Arktoshi::ZERO);
    let allowed = format!("arktoshi from 1 to {}, as a number or as a text of digits", Arktoshi::MAX);
    amount.ok_or_else(|| refused(key, value, &allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        let recipient = "ATGRRfTAomMSw7k2nyePRbFiBmvNro4EoF";
        let read = |body: Value| read_payments(&body, 23).map_err(|why| why.to_string());
        let good = json!({"recipient": recipient, "amount": "5"});
        assert_eq!(read(good.clone()).expect("it is allowed")[0].amount.value(), 5);
        assert_eq!(read(json!([good, good])).expect("it is allowed").len(), 2);
        let wrong = |body: Value, part: &str| {
            let why = read(body).expect_err("it is refused");
            assert!(why.contains(part), "{why}");
        };
        wrong(json!([]), "the body has 0 payments, allowed are 1 to 1000");
        wrong(json!(3), "key '(the body)': found 3, allowed is an object of 'recipient' and 'amount'");
        wrong(json!({"recipient": recipient}), "allowed is an object of 'recipient' and 'amount'");
        wrong(json!([good, {"recipient": recipient, "amount": 1, "fee": 1}]), "key '[1]': found");
        wrong(json!({"recipient": "A", "amount": 1}), "key 'recipient': found \"A\", allowed is an address");
        for amount in
            [json!(0), json!("0"), json!(-1), json!(1.5), json!("1.5"), json!(""), json!("9223372036854775808")]
        {
            wrong(json!({"recipient": recipient, "amount": amount}), "key 'amount': found");
        }
        let accounts = |body: Value| read_accounts(&body).map_err(|why| why.to_string());
        assert_eq!(accounts(json!({"count": 2, "balance": 7})), Ok((2, Arktoshi::new(7).expect("an amount"))));
        let why = accounts(json!({"count": 1_001, "balance": 7})).expect_err("it is refused");
        assert_eq!(why, "key 'count': found 1001, allowed is a whole number from 1 to 1000");
    }
}
