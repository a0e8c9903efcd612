//! Orders and searches of every list, held against what its own rows say: all rows are read, put in order and searched here,
//! by the contract's words alone. Source: api.md 3, 4.2.

use crate::support::{ask, get, of_json};
use dposlab::api::ApiContext;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use warp::http::Method;

/// A list: where it is, where it is searched, and what it is ordered and searched by.
struct List {
    path: &'static str,
    search: &'static str,
    /// The member that no two rows share.
    key: &'static str,
    fields: &'static [Field],
}

/// A field by its name in requests, and where a row has it.
struct Field {
    name: &'static str,
    pointer: &'static str,
    like: Like,
    ordered: bool,
    /// The way of searching it: not at all, by GET, or by POST.
    searched: Searched,
}

#[derive(Clone, Copy, PartialEq)]
enum Like {
    /// Nothing counts as 0.
    Number,
    /// A number that may be missing.
    Rank,
    Text,
    Flag,
    /// There only if it is true.
    Mark,
    /// All that a block moves: reward, fees and amounts.
    Whole,
}

#[derive(Clone, Copy, PartialEq)]
enum Searched {
    No,
    Exact,
    Range,
    Part,
}

use Like::{Flag, Mark, Number, Rank, Text, Whole};
use Searched::{Exact, No, Part, Range};

const fn field(name: &'static str, pointer: &'static str, like: Like, ordered: bool, searched: Searched) -> Field {
    Field { name, pointer, like, ordered, searched }
}

const LISTS: [List; 7] = [
    List {
        path: "/api/blocks",
        search: "/api/blocks/search",
        key: "id",
        fields: &[
            field("height", "/height", Number, true, Range),
            field("numberOfTransactions", "/transactions", Number, true, Range),
            field("reward", "/forged/reward", Number, true, Range),
            field("timestamp", "/timestamp/epoch", Number, true, Range),
            field("totalAmount", "/forged", Whole, true, Range),
            field("totalFee", "/forged/fee", Number, true, Range),
            field("version", "/version", Number, true, Exact),
            field("id", "/id", Text, false, Exact),
            field("previousBlock", "/previous", Text, false, Exact),
            field("generatorPublicKey", "/generator/publicKey", Text, false, Exact),
        ],
    },
    List {
        path: "/api/transactions",
        search: "/api/transactions/search",
        key: "id",
        fields: &[
            field("amount", "/amount", Number, true, Range),
            field("fee", "/fee", Number, true, Range),
            field("timestamp", "/timestamp/epoch", Number, false, Range),
            field("typeGroup", "/typeGroup", Number, true, Exact),
            field("vendorField", "/vendorField", Text, true, Part),
            field("version", "/version", Number, true, Exact),
            field("blockId", "/blockId", Text, false, Exact),
            field("senderPublicKey", "/senderPublicKey", Text, false, Exact),
        ],
    },
    List {
        path: "/api/wallets",
        search: "/api/wallets/search",
        key: "address",
        fields: &[
            field("address", "/address", Text, true, Exact),
            field("balance", "/balance", Number, true, Range),
            field("resigned", "/attributes/delegate/resigned", Mark, true, No),
            field("lockedBalance", "/lockedBalance", Number, true, Range),
            field("nonce", "/nonce", Number, true, No),
            field("publicKey", "/publicKey", Text, true, Exact),
            field("secondPublicKey", "/secondPublicKey", Text, true, Exact),
            field("username", "/username", Text, true, Exact),
            field("vote", "/vote", Text, true, Exact),
            field("voteBalance", "/attributes/delegate/voteBalance", Number, true, Range),
        ],
    },
    List {
        path: "/api/delegates",
        search: "/api/delegates/search",
        key: "publicKey",
        fields: &[
            field("forgedFees", "/forged/fees", Number, true, Range),
            field("forgedRewards", "/forged/rewards", Number, true, Range),
            field("forgedTotal", "/forged/total", Number, true, Range),
            field("producedBlocks", "/blocks/produced", Number, true, Range),
            field("publicKey", "/publicKey", Text, true, Exact),
            field("rank", "/rank", Rank, true, No),
            field("username", "/username", Text, true, Part),
            field("voteBalance", "/votes", Number, true, Range),
            field("votes", "/votes", Number, true, No),
            field("address", "/address", Text, false, Exact),
        ],
    },
    List {
        path: "/api/locks",
        search: "/api/locks/search",
        key: "lockId",
        fields: &[
            field("amount", "/amount", Number, true, Range),
            field("expirationType", "/expirationType", Number, true, Exact),
            field("expirationValue", "/expirationValue", Number, true, Range),
            field("isExpired", "/isExpired", Flag, true, Exact),
            field("lockId", "/lockId", Text, true, Exact),
            field("recipientId", "/recipientId", Text, true, Exact),
            field("secretHash", "/secretHash", Text, true, Exact),
            field("senderPublicKey", "/senderPublicKey", Text, true, Exact),
            field("timestamp", "/timestamp/epoch", Number, true, Range),
            field("vendorField", "/vendorField", Text, true, No),
        ],
    },
    List {
        path: "/api/businesses",
        search: "/api/businesses/search",
        key: "address",
        fields: &[
            field("address", "/address", Text, true, Exact),
            field("isResigned", "/isResigned", Flag, true, Exact),
            field("name", "/name", Text, true, Part),
            field("publicKey", "/publicKey", Text, true, Exact),
            field("repository", "/repository", Text, true, Part),
            field("vat", "/vat", Text, true, Exact),
            field("website", "/website", Text, true, Part),
        ],
    },
    List {
        path: "/api/bridgechains",
        search: "/api/bridgechains/search",
        key: "genesisHash",
        fields: &[
            field("address", "/address", Text, true, Exact),
            field("bridgechainRepository", "/bridgechainRepository", Text, true, Part),
            field("genesisHash", "/genesisHash", Text, true, Exact),
            field("isResigned", "/isResigned", Flag, true, Exact),
            field("name", "/name", Text, true, Part),
            field("publicKey", "/publicKey", Text, true, Exact),
        ],
    },
];

/// The value by which a row is ordered. The order of the variants says nothing, for one field has values of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i128),
    Flag(bool),
    /// Its code units.
    Text(Vec<u16>),
}

impl Field {
    fn of(&self, row: &Value) -> Option<Key> {
        let value = row.pointer(self.pointer);
        match self.like {
            Number => Some(Key::Number(value.map_or(0, number))),
            Whole => value.map(|forged| Key::Number(number(&forged["total"]) + number(&forged["amount"]))),
            Rank => value.map(|value| Key::Number(number(value))),
            Flag => Some(Key::Flag(value == Some(&json!(true)))),
            Mark => (value == Some(&json!(true))).then_some(Key::Flag(true)),
            Text => value.and_then(Value::as_str).map(|text| Key::Text(text.encode_utf16().collect())),
        }
    }
}

/// Every order and search of every list.
pub fn check(context: &ApiContext) {
    for list in &LISTS {
        let rows = all(|paging| get(context, &format!("{}?{paging}", list.path)).body);
        let keys: BTreeSet<String> = rows.iter().map(|row| row[list.key].to_string()).collect();
        assert!(list.key == "genesisHash" || keys.len() == rows.len(), "{} shows a row twice", list.path);
        for field in list.fields {
            if field.ordered {
                check_order(context, list, field, &rows);
            }
            for (asked, passes) in searches(field, &rows) {
                // Rows of a search have a shape of their own.
                let wanted: Vec<&Value> = rows.iter().filter(|row| passes(row)).map(|row| &row[list.key]).collect();
                let body = Value::Object(Map::from_iter([(field.name.to_owned(), asked)]));
                let found = search(context, list.search, &body);
                assert_eq!(keys_of(&found, list.key), wanted, "{} {body}", list.search);
                check_by_get(context, list, field, &body[field.name], &wanted);
            }
        }
    }
    check_addresses(context);
}

/// The same by GET, where that takes the parameter.
fn check_by_get(context: &ApiContext, list: &List, field: &Field, asked: &Value, wanted: &[&Value]) {
    let shown = asked.as_str().map_or_else(|| asked.to_string(), |text| text.replace(' ', "%20"));
    // A type without its group is another question, and ranges are asked for by POST.
    if asked.is_object() || !shown.is_ascii() {
        return;
    }
    let target = format!("{}?{}={shown}", list.path, field.name);
    let answered = get(context, &target);
    if answered.status == 422 {
        let message = answered.body["message"].as_str().unwrap_or_default();
        assert!(message.contains("is not allowed") || message.contains("must"), "{target}: {}", answered.body);
        return;
    }
    let found = all(|paging| get(context, &format!("{target}&{paging}")).body);
    assert_eq!(keys_of(&found, list.key), wanted, "{target}");
}

/// In both directions by the field, with what has none at the end, and among equals in one order.
fn check_order(context: &ApiContext, list: &List, field: &Field, rows: &[Value]) {
    let ordered = |direction: &str| {
        let order = format!("orderBy={}:{direction}", field.name);
        all(|paging| get(context, &format!("{}?{order}&{paging}", list.path)).body)
    };
    let what = format!("{} by {}", list.path, field.name);
    let (up, down) = (ordered("asc"), ordered("desc"));
    for (found, is_up) in [(&up, true), (&down, false)] {
        let keys: Vec<Option<Key>> = found.iter().map(|row| field.of(row)).collect();
        let values = keys.iter().take_while(|key| key.is_some()).count();
        assert!(keys[values..].iter().all(Option::is_none), "{what}: what has none is not last: {keys:?}");
        let in_order = |one: &Option<Key>, other: &Option<Key>| if is_up { one <= other } else { one >= other };
        assert!(keys[..values].is_sorted_by(in_order), "{what}, ascending: {is_up}: {keys:?}");
        let as_set = |rows: &[Value]| rows.iter().map(Value::to_string).collect::<BTreeSet<_>>();
        assert_eq!((found.len(), as_set(found)), (rows.len(), as_set(rows)), "{what}: other rows");
    }
    // Rows that are equal in the field stand in one order, whatever the direction; blocks turn as a whole.
    let of = |rows: &[Value], key: &Option<Key>| {
        let equal = rows.iter().filter(|row| field.of(row) == *key);
        equal.map(|row| row[list.key].to_string()).collect::<Vec<_>>()
    };
    for key in rows.iter().map(|row| field.of(row)).collect::<BTreeSet<_>>() {
        let (up, mut down) = (of(&up, &key), of(&down, &key));
        if list.path == "/api/blocks" {
            down.reverse();
        }
        assert_eq!(up, down, "{what}: equals at {key:?}");
    }
}

type Passes = Box<dyn Fn(&Value) -> bool>;

/// Searches and what each must find: by values that rows have, and by their neighbours.
fn searches(field: &'static Field, rows: &[Value]) -> Vec<(Value, Passes)> {
    let of = |row: &Value| field.of(row);
    let known: Vec<Key> = rows.iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect();
    // The first, the last and those between, as many as a test has time for.
    let step = known.len().div_ceil(4).max(1);
    let some: Vec<Key> = known.iter().step_by(step).chain(known.last()).cloned().collect();
    let mut all: Vec<(Value, Passes)> = Vec::new();
    for key in some {
        match (&key, field.searched) {
            (_, No) => {}
            (Key::Number(value), Range) => {
                let value = *value;
                for (from, to) in [(Some(value), None), (None, Some(value)), (Some(value - 1), Some(value + 1))] {
                    let ends = [("from", from), ("to", to)];
                    let ends = ends.into_iter().filter_map(|(name, end)| Some((name.to_owned(), json!(end? as i64))));
                    let is_within = move |row: &Value| match field.of(row) {
                        Some(Key::Number(found)) => {
                            from.is_none_or(|from| found >= from) && to.is_none_or(|to| found <= to)
                        }
                        _ => false,
                    };
                    // Only balances may be asked for below 0.
                    if field.name == "balance" || from.is_none_or(|from| from >= 1) {
                        all.push((Value::Object(ends.collect()), Box::new(is_within)));
                    }
                }
            }
            (Key::Text(units), Part) => {
                let text = String::from_utf16(units).expect("it came as a text");
                let part: String = text.chars().skip(text.chars().count() / 3).take(4).collect();
                // Names begin and end with a letter or a digit.
                if part.len() < 3 || part.chars().any(|c| !c.is_alphanumeric()) {
                    continue;
                }
                let looked_for = part.clone();
                let holds = move |row: &Value| {
                    row.pointer(field.pointer).and_then(Value::as_str).is_some_and(|text| text.contains(&looked_for))
                };
                all.push((json!(part), Box::new(holds)));
            }
            (Key::Text(units), _) => {
                let wanted = key.clone();
                let text = String::from_utf16(units).expect("it came as a text");
                all.push((json!(text), Box::new(move |row| field.of(row).as_ref() == Some(&wanted))));
            }
            (Key::Number(value), _) => {
                let (asked, wanted) = (json!(*value as i64), key.clone());
                all.push((asked, Box::new(move |row| field.of(row).as_ref() == Some(&wanted))));
            }
            (Key::Flag(value), _) => {
                let (asked, wanted) = (json!(value), key.clone());
                all.push((asked, Box::new(move |row| field.of(row).as_ref() == Some(&wanted))));
            }
        }
    }
    all
}

/// Several addresses at once: sender or recipient is one of them, and no row comes twice.
fn check_addresses(context: &ApiContext) {
    let rows = all(|paging| get(context, &format!("/api/transactions?{paging}")).body);
    let mut pairs: Vec<[&Value; 2]> = rows.iter().map(|row| [&row["sender"], &row["recipient"]]).collect();
    pairs.extend(rows.windows(2).map(|pair| [&pair[0]["sender"], &pair[1]["recipient"]]));
    pairs.retain(|[one, other]| one != other);
    for addresses in pairs.iter().step_by(pairs.len().div_ceil(12).max(1)) {
        let is_wanted = |row: &&Value| addresses.contains(&&row["sender"]) || addresses.contains(&&row["recipient"]);
        let wanted: Vec<&Value> = rows.iter().filter(is_wanted).map(|row| &row["id"]).collect();
        let found = search(context, "/api/transactions/search", &json!({ "addresses": addresses }));
        assert_eq!(keys_of(&found, "id"), wanted, "{addresses:?}");
    }
    let wallets = all(|paging| get(context, &format!("/api/wallets?{paging}")).body);
    for some in wallets.chunks(3).filter(|some| some.len() > 1) {
        let addresses: Vec<&Value> = some.iter().rev().map(|row| &row["address"]).collect();
        let found = search(context, "/api/wallets/search", &json!({ "addresses": addresses }));
        assert_eq!(keys_of(&found, "address"), keys_of(some, "address"), "{addresses:?}");
    }
}

fn keys_of<'r>(rows: &'r [Value], key: &str) -> Vec<&'r Value> {
    rows.iter().map(|row| &row[key]).collect()
}

/// All that a search by POST finds.
fn search(context: &ApiContext, target: &str, body: &Value) -> Vec<Value> {
    all(|paging| {
        let request = of_json(Method::POST, &format!("{target}?{paging}"));
        let answered = ask(context, &request, body.to_string().into_bytes());
        assert_eq!(answered.status, 200, "{target} {body}: {}", answered.body);
        answered.body
    })
}

/// All rows, page by page, as many as the answers say there are.
fn all(page: impl Fn(&str) -> Value) -> Vec<Value> {
    let mut rows: Vec<Value> = Vec::new();
    for number in 1.. {
        let answered = page(&format!("limit=100&page={number}"));
        let found = answered["data"].as_array().unwrap_or_else(|| panic!("a list: {answered}"));
        rows.extend(found.iter().cloned());
        let total = answered["meta"]["totalCount"].as_u64().expect("a count") as usize;
        assert!(rows.len() <= total && (rows.len() == total || !found.is_empty()), "{total} in all: {answered}");
        if rows.len() == total {
            break;
        }
    }
    rows
}

fn number(value: &Value) -> i128 {
    value.as_str().map_or_else(|| value.as_i64().map(i128::from), |text| text.parse().ok()).expect("a number")
}
