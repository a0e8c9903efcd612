//! Reading a transaction from JSON, as a node does with submitted ones. Source: protocol.md 3.6, 3.7.
//!
//! Members are checked in the reference's order, so the first error is the one that it would name. An error of the encoding (a
//! checksum, hex of odd length) is reported after all rules have passed. The signatures are joined and split again as on the wire,
//! because their lengths decide their kind.

mod members;

pub(super) use members::{Members, address_looks, amount, checked, describe, optional_uri, text_of, texts, whole};

use super::{
    BytesError, Kind, Rule, SchemaError, SignedTransaction, Transaction, TransactionContext, TransactionError,
    TransactionId, Version, decode::group_name, encode, schema, split,
};
use crate::protocol::{Address, Nonce, PublicKey, Timestamp, keys};
use serde_json::Value;

impl SignedTransaction {
    /// The transaction a JSON object describes. Unknown members are ignored, a wrong id is replaced.
    ///
    /// ```
    /// use dposlab::protocol::{Height, Milestones, SignedTransaction, transaction::TransactionContext};
    ///
    /// let (milestones, genesis) = (Milestones::testnet(), Default::default());
    /// let context = TransactionContext::new(23, milestones.at(Height(2)), &genesis);
    /// let error = SignedTransaction::from_json(&serde_json::json!({ "type": 0, "fee": "0" }), &context).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "transaction member `fee` is \"0\", allowed is a whole number, as number or decimal text, \
    ///      from 1 to 9223372036854775807"
    /// );
    /// ```
    ///
    /// # Errors
    /// The first member at fault, with the value found and the values allowed, or the error of the bytes
    /// made of the JSON.
    pub fn from_json(json: &Value, context: &TransactionContext<'_>) -> Result<Self, TransactionError> {
        let kind = kind_of(json)?;
        let mut reader = JsonReader { members: Members::of(json)?, kind, context, deferred: None };
        let (mut transaction, tail) = reader.read()?;
        if let Some(error) = reader.deferred {
            return Err(error);
        }
        let version = transaction.version.number();
        if version == 1 && kind.numbers().0 != 1 {
            return Err(BytesError::NoVersionOne(kind).into());
        }
        let mut bytes = encode::body(&transaction);
        let body = bytes.len();
        bytes.extend(tail);
        if kind == Kind::Ipfs {
            // A multihash with a wrong length takes bytes from the signature or gives bytes to it.
            return Self::from_bytes(&bytes, context);
        }
        let tail = split::split(&bytes[body..], version, body)?;
        transaction.signature = tail.signature.map(<[u8]>::to_vec);
        transaction.second_signature = tail.second_signature.map(<[u8]>::to_vec);
        transaction.signatures = tail.signatures;
        if !context.supports(version) {
            return Err(TransactionError::Version { version });
        }
        Self::from_encoding(transaction, &bytes).admit(context)
    }
}

impl SignedTransaction {
    /// The first test of a submitted batch, looser than [`Self::from_json`]: whether the object fits the schema of *any* type. This
    /// matters only for multipayments: while their payments are within the limit, the reference accepts them as any core type whose schema
    /// they happen to fit. Errors of the encoding are not checked.
    pub fn check_shape(json: &Value, context: &TransactionContext<'_>) -> Result<(), TransactionError> {
        let own = kind_of(json)?;
        let fits = |kind| JsonReader { members: Members::of(json)?, kind, context, deferred: None }.read().map(|_| ());
        let payments = json.get("asset").and_then(|asset| asset.get("payments")).and_then(Value::as_array);
        let within_limit = payments.is_some_and(|list| list.len() <= context.milestone.multi_payment_limit);
        match fits(own) {
            Err(_)
                if own == Kind::MultiPayment
                    && within_limit
                    && Kind::ALL.into_iter().any(|k| k.is_core() && fits(k).is_ok()) =>
            {
                Ok(())
            }
            other => Ok(other?),
        }
    }
}

/// The kind `typeGroup` and `type` name; a missing group is 1.
fn kind_of(json: &Value) -> Result<Kind, TransactionError> {
    let number = json.get("type");
    let group = json.get("typeGroup");
    let known = || {
        let group = group.map_or(Some(1), whole)?;
        Kind::from_numbers(u32::try_from(group).ok()?, u16::try_from(whole(number?)?).ok()?)
    };
    known().ok_or_else(|| TransactionError::UnknownType {
        group: match group {
            None => group_name(1),
            Some(found) if whole(found) == Some(1) => group_name(1),
            Some(found) => describe(found),
        },
        number: number.map_or("undefined".to_owned(), describe),
    })
}

/// One pass over the members of a transaction.
pub(super) struct JsonReader<'a> {
    pub members: Members<'a>,
    kind: Kind,
    pub context: &'a TransactionContext<'a>,
    /// The first error that the reference meets only when it makes the bytes.
    deferred: Option<TransactionError>,
}

impl<'a> JsonReader<'a> {
    /// The transaction without signatures, and the bytes of all signatures.
    fn read(&mut self) -> Result<(Transaction, Vec<u8>), SchemaError> {
        let members = self.members;
        let id = self.id()?;
        let version = self.version()?;
        let network = self.network()?;
        let timestamp = members.number("timestamp", u64::from(u32::MAX))?;
        let nonce = members.amount("nonce", self.lax())?;
        self.type_group()?;
        let amount = members.amount("amount", self.lax())?;
        let genesis = || id.is_some_and(|id| self.context.genesis_ids.contains(&id));
        amount.map_or(Ok(()), |amount| schema::amount(self.kind, amount, genesis))?;
        let fee = members.amount("fee", self.lax())?;
        fee.map_or(Ok(()), |fee| schema::common_fee(self.kind, fee, genesis))?;
        let sender = members.key("senderPublicKey")?;
        let tail = self.signatures()?;
        self.payment_limit()?;
        let vendor_field = if self.kind.has_vendor_field() { self.vendor_field()? } else { None };
        let asset = self.kind.module().read_json(self, version, amount.unwrap_or_default())?;
        self.presence()?;
        let required = |path| SchemaError::new(path, "missing", Rule::Required);
        let sender: PublicKey = sender.ok_or_else(|| required("senderPublicKey"))?;
        let fee = fee.ok_or_else(|| required("fee"))?;
        amount.ok_or_else(|| required("amount"))?;
        let version = match version {
            1 => Version::One(Timestamp(timestamp.ok_or_else(|| required("timestamp"))? as u32)),
            _ => Version::Two(Nonce(nonce.ok_or_else(|| required("nonce"))?.value())),
        };
        let (signature, second_signature, signatures) = (None, None, Vec::new());
        let transaction =
            Transaction { network, version, sender, fee, vendor_field, asset, signature, second_signature, signatures };
        Ok((transaction, tail))
    }

    /// Returns true in the reference's dialect.
    pub fn lax(&self) -> bool {
        self.context.dialect == super::Dialect::Reference
    }

    fn id(&self) -> Result<Option<TransactionId>, SchemaError> {
        match self.members.get("id") {
            None | Some(Value::Null) => Ok(None),
            Some(_) => Ok(self.members.hex("", "id")?.map(TransactionId)),
        }
    }

    /// 1 if missing.
    fn version(&self) -> Result<u8, SchemaError> {
        match self.members.get("version") {
            None => Ok(1),
            Some(found) => match whole(found) {
                Some(number @ 1..=2) => Ok(number as u8),
                _ => Err(SchemaError::new("version", describe(found), Rule::OneOf("1 or 2"))),
            },
        }
    }

    fn network(&self) -> Result<u8, SchemaError> {
        let allowed = self.context.network;
        match self.members.get("network") {
            None => Ok(allowed),
            Some(found) if whole(found) == Some(u64::from(allowed)) => Ok(allowed),
            Some(found) => Err(SchemaError::new("network", describe(found), Rule::Network(allowed))),
        }
    }

    fn type_group(&self) -> Result<(), SchemaError> {
        self.members.number("typeGroup", u64::from(u32::MAX)).map(|_| ())
    }

    /// The bytes of signature, second signature and signatures, one after the other.
    fn signatures(&mut self) -> Result<Vec<u8>, SchemaError> {
        let signature = self.signature("signature")?;
        let second = self.signature("secondSignature")?;
        if self.kind == Kind::SecondSignature
            && let Some(found) = self.members.get("secondSignature")
        {
            return Err(SchemaError::new("secondSignature", describe(found), Rule::Absent));
        }
        let alias = self.signature("signSignature")?;
        let mut tail = Vec::with_capacity(128);
        self.append(&mut tail, "signature", signature);
        self.append(&mut tail, "secondSignature", second.or(alias));
        for text in self.indexed_signatures()? {
            self.append(&mut tail, "signatures", Some(text));
        }
        Ok(tail)
    }

    fn signature(&self, key: &'static str) -> Result<Option<&'a str>, SchemaError> {
        let Some(text) = self.members.text("", key)? else { return Ok(None) };
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Ok(Some(text));
        }
        Err(SchemaError::new(key, format!("{:?}", keys::shorten(text)), Rule::Pattern("^[a-zA-Z0-9]+$")))
    }

    fn append(&mut self, tail: &mut Vec<u8>, field: &'static str, text: Option<&str>) {
        let Some(text) = text else { return };
        let start = tail.len();
        tail.resize(start + text.len() / 2, 0);
        if !keys::decode_hex_into(text, &mut tail[start..]) {
            self.defer(BytesError::Hex { field, found: keys::shorten(text) }.into());
        }
    }

    fn indexed_signatures(&self) -> Result<Vec<&'a str>, SchemaError> {
        let Some(found) = self.members.get("signatures") else {
            let needed = self.kind == Kind::MultiSignature && self.version()? == 2;
            let missing = SchemaError::new("signatures", "missing", Rule::Required);
            return if needed { Err(missing) } else { Ok(Vec::new()) };
        };
        let list = found.as_array().ok_or_else(|| SchemaError::new("signatures", describe(found), Rule::Array))?;
        let (min, max) = self.signature_counts();
        schema::items("signatures", list.len(), min, max)?;
        let text = |(index, item): (usize, &'a Value)| {
            let path = format!("signatures[{index}]");
            let text = text_of(&path, item)?;
            match text.len() == 130 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                true => Ok(text),
                false => Err(SchemaError::of_text(path, text, Rule::Hex { digits: 130 })),
            }
        };
        let texts = list.iter().enumerate().map(text).collect::<Result<Vec<_>, _>>()?;
        schema::indexed_signatures(&texts)?;
        Ok(texts)
    }

    /// The bounds of the number of signatures; a registration has its own bounds.
    fn signature_counts(&self) -> (usize, usize) {
        let asset = || self.members.get("asset")?.get("multiSignature");
        match asset().filter(|_| self.kind == Kind::MultiSignature) {
            None => (1, 16),
            Some(asset) => {
                let min = asset.get("min").and_then(whole).map_or(1, |min| min.clamp(1, 16));
                let keys = asset.get("publicKeys").and_then(Value::as_array).map_or(16, Vec::len);
                (min as usize, keys.min(16))
            }
        }
    }

    /// Too many payments are an error of the type member, before the asset is checked.
    fn payment_limit(&self) -> Result<(), SchemaError> {
        if self.kind != Kind::MultiPayment {
            return Ok(());
        }
        let list = self.members.get("asset").and_then(|asset| asset.get("payments")).and_then(Value::as_array);
        match list.map_or(2, Vec::len) {
            count @ 2.. => schema::payments(count, self.context.milestone.multi_payment_limit),
            _ => Ok(()),
        }
    }

    fn vendor_field(&self) -> Result<Option<String>, SchemaError> {
        match self.members.get("vendorField") {
            None | Some(Value::Null) => Ok(None),
            Some(_) => {
                let text = self.members.text("", "vendorField")?.unwrap_or_default();
                schema::vendor_field(text, self.context.milestone.vendor_field_length)?;
                Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
            }
        }
    }

    /// An id, which may be null, and one or more signatures.
    fn presence(&self) -> Result<(), SchemaError> {
        let missing = |path| Err(SchemaError::new(path, "missing", Rule::Required));
        match () {
            () if self.members.get("id").is_none() => missing("id"),
            () if self.members.get("signature").or(self.members.get("signatures")).is_none() => missing("signature"),
            () => Ok(()),
        }
    }

    /// The object below a member of the asset.
    pub fn asset(&self, key: &str) -> Result<Members<'a>, SchemaError> {
        self.members.object("", "asset")?.object("asset", key)
    }

    /// Reads an address and checks its form. Errors of checksum and network are deferred until the bytes are made.
    pub fn recipient(&mut self, path: &str, found: &Value, own_network: bool) -> Result<Address, SchemaError> {
        let text = address_looks(path, found)?;
        let allowed = self.context.network;
        Ok(match text.parse::<Address>() {
            Ok(address) if own_network && address.network_byte() != allowed => {
                self.defer(BytesError::RecipientNetwork { allowed, found: address.network_byte() }.into());
                address
            }
            Ok(address) => address,
            Err(error) => {
                self.defer(TransactionError::Address(error));
                Address::from_bytes([allowed; 21])
            }
        })
    }

    /// Records an error that the reference meets only when it makes the bytes. The first one counts.
    pub fn defer(&mut self, error: TransactionError) {
        self.deferred.get_or_insert(error);
    }
}
