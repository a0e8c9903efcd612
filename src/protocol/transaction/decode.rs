//! Decoding a transaction from wire bytes. Source: protocol.md 3.8.
//!
//! The strict reader accepts only bytes that encoding would give, so it keeps the bytes received. The reference is
//! laxer. Its dialect takes the same path, tolerates deviations at four places and encodes anew.

use super::{
    Asset, BytesError, Dialect, Kind, SignedTransaction, Transaction, TransactionContext, TransactionError, Version,
    schema, signed::Standing, split,
};
use crate::protocol::{Address, Arktoshi, Nonce, PublicKey, Timestamp};

impl SignedTransaction {
    /// The transaction of exactly these bytes.
    ///
    /// # Errors
    /// Names the field and byte at fault, the version not in force, or the rule of the schema that is broken. Never
    /// panics, and allocates only for what the bytes really hold.
    pub fn from_bytes(bytes: &[u8], context: &TransactionContext<'_>) -> Result<Self, TransactionError> {
        let lax = context.dialect == Dialect::Reference;
        let mut reader = WireReader { bytes, at: 0, lax, version: 2, network: context.network };
        let mut transaction = reader.body(context)?;
        let body = reader.at;
        let tail = split::split(&bytes[body..], transaction.version.number(), body)?;
        transaction.signature = tail.signature.map(<[u8]>::to_vec);
        transaction.second_signature = tail.second_signature.map(<[u8]>::to_vec);
        transaction.signatures = tail.signatures;
        let version = transaction.version.number();
        if !context.supports(version) {
            return Err(TransactionError::Version { version });
        }
        if lax { Self::new(transaction) } else { Self::from_encoding(transaction, bytes) }.admit(context)
    }

    /// The transaction that encodes to these bytes, without checking the rules.
    pub(super) fn unchecked(bytes: &[u8]) -> Result<Self, TransactionError> {
        let mut reader = WireReader { bytes, at: 0, lax: false, version: 2, network: 0 };
        reader.marker("marker", 0xff, "0xff")?;
        reader.version = reader.byte("version")?;
        reader.network = reader.byte("network")?;
        let mut transaction = reader.rest_of_body()?;
        let body = reader.at;
        let tail = split::split(&bytes[body..], transaction.version.number(), body)?;
        transaction.signature = tail.signature.map(<[u8]>::to_vec);
        transaction.second_signature = tail.second_signature.map(<[u8]>::to_vec);
        transaction.signatures = tail.signatures;
        Ok(Self::from_encoding(transaction, bytes))
    }

    /// The last steps, shared with JSON: correction of the id by exceptions, the schema, and whether the type is in force.
    pub(super) fn admit(self, context: &TransactionContext<'_>) -> Result<Self, TransactionError> {
        let id = context.exceptions.transaction_id_fix_table.get(&self.id()).copied().unwrap_or(self.id());
        if context.exceptions.transactions.contains(&id) {
            return Ok(self.placed(id, Standing::Exempt));
        }
        if let Asset::MultiSignatureLegacy { .. } = self.asset() {
            return Err(BytesError::LegacyMultiSignature.into());
        }
        schema::check(self.transaction(), id, context)?;
        let standing = if context.permits(self.kind()) { Standing::Judged } else { Standing::Gated };
        Ok(self.placed(id, standing))
    }
}

/// A reader of a transaction's bytes, with its position.
pub(super) struct WireReader<'a> {
    bytes: &'a [u8],
    at: usize,
    lax: bool,
    version: u8,
    network: u8,
}

/// The steps that every transaction takes.
impl WireReader<'_> {
    fn body(&mut self, context: &TransactionContext<'_>) -> Result<Transaction, TransactionError> {
        self.marker("marker", 0xff, "0xff")?;
        let version = self.byte("version")?;
        let network = self.byte("network")?;
        if !matches!(version, 1 | 2) {
            return Err(TransactionError::Version { version });
        }
        if network != context.network {
            return Err(schema::wrong_network(network, context.network).into());
        }
        self.version = version;
        Ok(self.rest_of_body()?)
    }

    fn rest_of_body(&mut self) -> Result<Transaction, BytesError> {
        let (kind, version) = if self.is_version_one() { self.version_one()? } else { self.version_two()? };
        let sender = self.key("senderPublicKey")?;
        let fee = self.amount("fee")?;
        let vendor_field = self.vendor_field(kind)?;
        let asset = kind.module().read(self)?;
        let network = self.network;
        let (signature, second_signature, signatures) = (None, None, Vec::new());
        Ok(Transaction { network, version, sender, fee, vendor_field, asset, signature, second_signature, signatures })
    }

    fn version_one(&mut self) -> Result<(Kind, Version), BytesError> {
        let number = u16::from(self.byte("type")?);
        let timestamp = Timestamp(self.u32("timestamp")?);
        Ok((kind_of(1, number)?, Version::One(timestamp)))
    }

    fn version_two(&mut self) -> Result<(Kind, Version), BytesError> {
        let group = self.u32("typeGroup")?;
        let number = u16::from_le_bytes(self.array("type")?);
        let nonce = Nonce(self.amount("nonce")?.value());
        Ok((kind_of(group, number)?, Version::Two(nonce)))
    }

    fn vendor_field(&mut self, kind: Kind) -> Result<Option<String>, BytesError> {
        let length = usize::from(self.byte("vendorField")?);
        let bytes = self.take("vendorField", length)?;
        if length == 0 || (self.lax && !kind.has_vendor_field()) {
            return Ok(None);
        }
        if !kind.has_vendor_field() {
            return Err(BytesError::VendorField { kind, length });
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            // Each undecodable byte becomes three, so the text may outgrow its length byte.
            Err(_) if self.lax => Some(String::from_utf8_lossy(bytes).into_owned())
                .filter(|text| text.len() <= usize::from(u8::MAX))
                .map(Some)
                .ok_or(BytesError::Text { field: "vendorField", allowed: "at most 255 bytes of UTF-8" }),
            Err(_) => Err(BytesError::Text { field: "vendorField", allowed: "UTF-8" }),
        }
    }

    fn marker(&mut self, field: &'static str, expected: u8, allowed: &'static str) -> Result<(), BytesError> {
        let at = self.at;
        match self.byte(field)? {
            byte if byte == expected || self.lax => Ok(()),
            found => Err(BytesError::Byte { at, found, allowed }),
        }
    }
}

/// The readers of the types' assets. A field is the name that an error gives.
impl<'a> WireReader<'a> {
    pub fn is_version_one(&self) -> bool {
        self.version == 1
    }

    /// Returns true in the reference's dialect.
    pub fn is_lax(&self) -> bool {
        self.lax
    }

    /// The number of bytes read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The bytes read since position `start`.
    pub fn since(&self, start: usize) -> &'a [u8] {
        &self.bytes[start..self.at]
    }

    /// An address of the transaction's network. Version 1 never checked the network of a recipient.
    pub fn recipient(&mut self) -> Result<Address, BytesError> {
        let (address, allowed) = (self.address()?, self.network);
        match address.network_byte() {
            found if found != allowed && !self.is_version_one() => Err(BytesError::RecipientNetwork { allowed, found }),
            _ => Ok(address),
        }
    }

    pub fn address(&mut self) -> Result<Address, BytesError> {
        self.array("recipientId").map(Address::from_bytes)
    }

    pub fn key(&mut self, field: &'static str) -> Result<PublicKey, BytesError> {
        self.array(field).map(PublicKey::from_bytes)
    }

    /// A text. The reference writes lengths in bytes and reads characters, so only ASCII survives there.
    pub fn text(&mut self, field: &'static str) -> Result<String, BytesError> {
        let length = usize::from(self.byte(field)?);
        let text = std::str::from_utf8(self.take(field, length)?).ok().filter(|text| text.is_ascii());
        text.map(str::to_owned).ok_or(BytesError::Text { field, allowed: "ASCII" })
    }

    pub fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, BytesError> {
        Ok(Some(self.text(field)?).filter(|text| !text.is_empty()))
    }

    /// A number of texts after a count of one byte.
    pub fn texts(&mut self, field: &'static str) -> Result<Vec<String>, BytesError> {
        let count = self.byte(field)?;
        (0..count).map(|_| self.text(field)).collect()
    }

    pub fn amount(&mut self, field: &'static str) -> Result<Arktoshi, BytesError> {
        let found = u64::from_le_bytes(self.array(field)?);
        Arktoshi::new(found).ok_or(BytesError::Amount { field, found })
    }

    pub fn u32(&mut self, field: &'static str) -> Result<u32, BytesError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub fn byte(&mut self, field: &'static str) -> Result<u8, BytesError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BytesError> {
        Ok(self.take(field, N)?.try_into().expect("as many bytes as were asked for"))
    }

    pub fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], BytesError> {
        self.require(field, length)?;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    /// Fails unless `needed` bytes are left.
    pub fn require(&self, field: &'static str, needed: usize) -> Result<(), BytesError> {
        let available = self.bytes.len() - self.at;
        if needed <= available { Ok(()) } else { Err(BytesError::Truncated { field, at: self.at, needed, available }) }
    }
}

fn kind_of(group: u32, number: u16) -> Result<Kind, BytesError> {
    let unknown = || BytesError::UnknownType { group: group_name(group), number };
    Kind::from_numbers(group, number).ok_or_else(unknown)
}

/// Group 1 has a name in messages.
pub(super) fn group_name(group: u32) -> String {
    if group == 1 { "Core".to_owned() } else { group.to_string() }
}
