//! Wire bytes into a transaction. Source: protocol.md 3.8.
//!
//! Strictly read, only what encoding would give is accepted, so the bytes are kept as they came. The reference is
//! laxer; its dialect takes the same path, forgives at four places and encodes anew.

use super::{
    Asset, BytesError, Dialect, Expiration, Kind, Payment, SignedTransaction, Transaction, TransactionContext,
    TransactionError, TransactionId, Version, Vote, schema, signed::Standing, split,
};
use crate::protocol::{Address, Arktoshi, Nonce, PublicKey, Timestamp};
use indexmap::IndexMap;

impl SignedTransaction {
    /// The transaction of exactly these bytes.
    ///
    /// # Errors
    /// Names the field and byte at fault, the version not in force, or the rule of the schema that is broken. Never
    /// panics, and allocates only for what the bytes really hold.
    pub fn from_bytes(bytes: &[u8], context: &TransactionContext<'_>) -> Result<Self, TransactionError> {
        let lax = context.dialect == Dialect::Reference;
        let mut reader = Reader { bytes, at: 0, lax };
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
        if lax { Self::new(transaction) } else { Self::from_encoding(transaction, bytes.into(), body) }.admit(context)
    }

    /// The last steps, shared with JSON: what exceptions say about the id, the schema, and the type's being in force.
    pub(super) fn admit(self, context: &TransactionContext<'_>) -> Result<Self, TransactionError> {
        debug_assert_eq!(SignedTransaction::new(self.transaction().clone()).bytes(), self.bytes());
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

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    lax: bool,
}

impl<'a> Reader<'a> {
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
        Ok(self.rest_of_body(version, network)?)
    }

    fn rest_of_body(&mut self, version: u8, network: u8) -> Result<Transaction, BytesError> {
        let (kind, version) = if version == 1 { self.version_one()? } else { self.version_two()? };
        let sender = self.key("senderPublicKey")?;
        let fee = self.amount("fee")?;
        let vendor_field = self.vendor_field(kind)?;
        let asset = match (kind, version) {
            (Kind::MultiSignature, Version::One(_)) => self.legacy_multi_signature()?,
            // Version 1 never looked at the network of a recipient.
            (_, Version::One(_)) => self.asset(kind, None)?,
            (_, Version::Two(_)) => self.asset(kind, Some(network))?,
        };
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
            // Each byte that cannot be read becomes three, so the text may outgrow its length byte.
            Err(_) if self.lax => Some(String::from_utf8_lossy(bytes).into_owned())
                .filter(|text| text.len() <= usize::from(u8::MAX))
                .map(Some)
                .ok_or(BytesError::Text { field: "vendorField", allowed: "at most 255 bytes of UTF-8" }),
            Err(_) => Err(BytesError::Text { field: "vendorField", allowed: "UTF-8" }),
        }
    }

    fn asset(&mut self, kind: Kind, network: Option<u8>) -> Result<Asset, BytesError> {
        Ok(match kind {
            Kind::Transfer => Asset::Transfer {
                amount: self.amount("amount")?,
                expiration: self.u32("expiration")?,
                recipient: self.recipient(network)?,
            },
            Kind::SecondSignature => Asset::SecondSignature { public_key: self.key("asset.signature.publicKey")? },
            Kind::DelegateRegistration => {
                Asset::DelegateRegistration { username: self.text("asset.delegate.username")? }
            }
            Kind::Vote => Asset::Vote(self.vote()?),
            Kind::MultiSignature => {
                let min = self.byte("asset.multiSignature.min")?;
                let count = self.byte("asset.multiSignature.publicKeys")?;
                Asset::MultiSignature { min, public_keys: self.keys(count)? }
            }
            Kind::Ipfs => Asset::Ipfs { multihash: self.multihash()? },
            Kind::MultiPayment => Asset::MultiPayment { payments: self.payments(network)? },
            Kind::DelegateResignation => Asset::DelegateResignation,
            Kind::HtlcLock => Asset::HtlcLock {
                amount: self.amount("amount")?,
                secret_hash: self.array("asset.lock.secretHash")?,
                expiration: self.lock_expiration()?,
                recipient: self.address()?,
            },
            Kind::HtlcClaim => Asset::HtlcClaim {
                lock: TransactionId(self.array("asset.claim.lockTransactionId")?),
                unlock_secret: self.array("asset.claim.unlockSecret")?,
            },
            Kind::HtlcRefund => {
                Asset::HtlcRefund { lock: TransactionId(self.array("asset.refund.lockTransactionId")?) }
            }
            magistrate => self.magistrate_asset(magistrate)?,
        })
    }

    fn magistrate_asset(&mut self, kind: Kind) -> Result<Asset, BytesError> {
        Ok(match kind {
            Kind::BusinessRegistration => Asset::BusinessRegistration {
                name: self.text("asset.businessRegistration.name")?,
                website: self.text("asset.businessRegistration.website")?,
                vat: self.optional_text("asset.businessRegistration.vat")?,
                repository: self.optional_text("asset.businessRegistration.repository")?,
            },
            Kind::BusinessResignation => Asset::BusinessResignation,
            Kind::BusinessUpdate => Asset::BusinessUpdate {
                name: self.optional_text("asset.businessUpdate.name")?,
                website: self.optional_text("asset.businessUpdate.website")?,
                vat: self.optional_text("asset.businessUpdate.vat")?,
                repository: self.optional_text("asset.businessUpdate.repository")?,
            },
            Kind::BridgechainRegistration => Asset::BridgechainRegistration {
                name: self.text("asset.bridgechainRegistration.name")?,
                seed_nodes: self.seed_nodes()?,
                genesis_hash: self.array("asset.bridgechainRegistration.genesisHash")?,
                repository: self.text("asset.bridgechainRegistration.bridgechainRepository")?,
                asset_repository: self.optional_text("asset.bridgechainRegistration.bridgechainAssetRepository")?,
                ports: self.ports()?,
            },
            Kind::BridgechainResignation => {
                Asset::BridgechainResignation { bridgechain: self.array("asset.bridgechainResignation.bridgechainId")? }
            }
            Kind::BridgechainUpdate => Asset::BridgechainUpdate {
                bridgechain: self.array("asset.bridgechainUpdate.bridgechainId")?,
                seed_nodes: Some(self.seed_nodes()?).filter(|nodes| !nodes.is_empty()),
                ports: Some(self.ports()?).filter(|ports| !ports.is_empty()),
                repository: self.optional_text("asset.bridgechainUpdate.bridgechainRepository")?,
                asset_repository: self.optional_text("asset.bridgechainUpdate.bridgechainAssetRepository")?,
            },
            _ => unreachable!("the core types are read before"),
        })
    }

    fn vote(&mut self) -> Result<Vote, BytesError> {
        let votes = self.byte("asset.votes")?;
        if votes != 1 {
            return Err(BytesError::Votes { votes });
        }
        let at = self.at;
        let marker = match self.byte("asset.votes")? {
            // The reference looks at the low digit alone.
            byte if self.lax => u8::from(byte & 15 == 1),
            byte => byte,
        };
        let key = self.key("asset.votes")?;
        match marker {
            1 => Ok(Vote::For(key)),
            0 => Ok(Vote::Against(key)),
            found => Err(BytesError::Byte { at, found, allowed: "0x01 for a vote or 0x00 for an unvote" }),
        }
    }

    fn legacy_multi_signature(&mut self) -> Result<Asset, BytesError> {
        let min = self.byte("asset.multiSignatureLegacy.min")?;
        let count = self.byte("asset.multiSignatureLegacy.keysgroup")?;
        let lifetime = self.byte("asset.multiSignatureLegacy.lifetime")?;
        Ok(Asset::MultiSignatureLegacy { min, lifetime, keysgroup: self.keys(count)? })
    }

    fn keys(&mut self, count: u8) -> Result<Vec<PublicKey>, BytesError> {
        self.require("asset.multiSignature.publicKeys", 33 * usize::from(count))?;
        (0..count).map(|_| self.key("asset.multiSignature.publicKeys")).collect()
    }

    fn multihash(&mut self) -> Result<Vec<u8>, BytesError> {
        let start = self.at;
        let [_, length] = self.array("asset.ipfs")?;
        self.take("asset.ipfs", usize::from(length))?;
        Ok(self.bytes[start..self.at].to_vec())
    }

    fn payments(&mut self, network: Option<u8>) -> Result<Vec<Payment>, BytesError> {
        let count = u16::from_le_bytes(self.array("asset.payments")?);
        self.require("asset.payments", 29 * usize::from(count))?;
        let payment =
            |_| Ok(Payment { amount: self.amount("asset.payments.amount")?, recipient: self.recipient(network)? });
        (0..count).map(payment).collect()
    }

    fn lock_expiration(&mut self) -> Result<Expiration, BytesError> {
        let at = self.at;
        let kind = self.byte("asset.lock.expiration.type")?;
        let value = self.u32("asset.lock.expiration.value")?;
        let allowed = "1 (epoch time) or 2 (block height)";
        Expiration::from_numbers(kind, value).ok_or(BytesError::Byte { at, found: kind, allowed })
    }

    fn seed_nodes(&mut self) -> Result<Vec<String>, BytesError> {
        let count = self.byte("seedNodes")?;
        (0..count).map(|_| self.text("seedNodes")).collect()
    }

    /// Names distinct and in the order JavaScript gives the members of an object, or encoding would not give them back.
    fn ports(&mut self) -> Result<IndexMap<String, u16>, BytesError> {
        let mut ports = IndexMap::new();
        for _ in 0..self.byte("ports")? {
            let name = self.text("ports")?;
            let port = u16::from_le_bytes(self.array("ports")?);
            if ports.insert(name.clone(), port).is_some() && !self.lax {
                return Err(BytesError::Ports { name });
            }
        }
        let read: Vec<String> = ports.keys().cloned().collect();
        schema::order_as_javascript(&mut ports);
        match read.into_iter().zip(ports.keys()).find(|(read, ordered)| read != *ordered) {
            Some((name, _)) if !self.lax => Err(BytesError::Ports { name }),
            _ => Ok(ports),
        }
    }

    fn recipient(&mut self, network: Option<u8>) -> Result<Address, BytesError> {
        let address = self.address()?;
        match (address.network_byte(), network) {
            (found, Some(allowed)) if found != allowed => Err(BytesError::RecipientNetwork { allowed, found }),
            _ => Ok(address),
        }
    }

    fn address(&mut self) -> Result<Address, BytesError> {
        self.array("recipientId").map(Address::from_bytes)
    }

    fn key(&mut self, field: &'static str) -> Result<PublicKey, BytesError> {
        self.array(field).map(PublicKey::from_bytes)
    }

    /// The reference writes lengths in bytes and reads characters, so only ASCII survives there.
    fn text(&mut self, field: &'static str) -> Result<String, BytesError> {
        let length = usize::from(self.byte(field)?);
        let text = std::str::from_utf8(self.take(field, length)?).ok().filter(|text| text.is_ascii());
        text.map(str::to_owned).ok_or(BytesError::Text { field, allowed: "ASCII" })
    }

    fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, BytesError> {
        Ok(Some(self.text(field)?).filter(|text| !text.is_empty()))
    }

    fn amount(&mut self, field: &'static str) -> Result<Arktoshi, BytesError> {
        let found = u64::from_le_bytes(self.array(field)?);
        Arktoshi::new(found).ok_or(BytesError::Amount { field, found })
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, BytesError> {
        self.array(field).map(u32::from_le_bytes)
    }

    fn marker(&mut self, field: &'static str, expected: u8, allowed: &'static str) -> Result<(), BytesError> {
        let at = self.at;
        match self.byte(field)? {
            byte if byte == expected || self.lax => Ok(()),
            found => Err(BytesError::Byte { at, found, allowed }),
        }
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, BytesError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], BytesError> {
        Ok(self.take(field, N)?.try_into().expect("as many bytes as were asked for"))
    }

    fn take(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], BytesError> {
        self.require(field, length)?;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    fn require(&self, field: &'static str, needed: usize) -> Result<(), BytesError> {
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
