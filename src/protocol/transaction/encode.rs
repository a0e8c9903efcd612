//! Encoding a transaction: the wire bytes, and the different bytes that version 1 signs. Source: protocol.md 3.2 to 3.4.

use super::{Asset, Transaction, Version};
use crate::protocol::crypto::sha256;
use indexmap::IndexMap;

/// A size in bytes that most transactions do not exceed.
const USUAL: usize = 256;

/// The wire bytes.
pub(super) fn bytes(transaction: &Transaction) -> Vec<u8> {
    let mut bytes = body(transaction);
    for signature in [&transaction.signature, &transaction.second_signature].into_iter().flatten() {
        bytes.extend_from_slice(signature);
    }
    for signature in &transaction.signatures {
        bytes.extend(signature.to_bytes());
    }
    bytes
}

/// The wire bytes before the signatures, with room for these.
pub(super) fn body(transaction: &Transaction) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    let out = &mut bytes;
    let (group, number) = transaction.kind().numbers();
    out.extend([0xff, transaction.version.number(), transaction.network]);
    match transaction.version {
        Version::One(timestamp) => {
            out.push(u8::try_from(number).expect("type numbers are small"));
            out.extend(timestamp.0.to_le_bytes());
        }
        Version::Two(nonce) => {
            out.extend(group.to_le_bytes());
            out.extend(number.to_le_bytes());
            out.extend(nonce.0.to_le_bytes());
        }
    }
    out.extend(transaction.sender.as_bytes());
    out.extend(transaction.fee.value().to_le_bytes());
    text(out, transaction.vendor_field.as_deref());
    transaction.kind().module().write(&transaction.asset, out);
    bytes
}

pub(super) fn ports(out: &mut Vec<u8>, ports: &IndexMap<String, u16>) {
    out.push(count(ports.len()));
    for (name, port) in ports {
        text(out, Some(name));
        out.extend(port.to_le_bytes());
    }
}

pub(super) fn list(out: &mut Vec<u8>, items: &[String]) {
    out.push(count(items.len()));
    items.iter().for_each(|item| text(out, Some(item)));
}

pub(super) fn texts<const N: usize>(out: &mut Vec<u8>, values: [Option<&String>; N]) {
    values.into_iter().for_each(|value| text(out, value.map(String::as_str)));
}

/// Writes one byte of length and the text. No text has length 0.
pub(super) fn text(out: &mut Vec<u8>, value: Option<&str>) {
    let value = value.unwrap_or_default();
    out.push(count(value.len()));
    out.extend(value.as_bytes());
}

pub(super) fn count(length: usize) -> u8 {
    u8::try_from(length).expect("longer than a length of one byte can say")
}

impl Transaction {
    /// The digest each of `signatures` is over: the transaction without any signature.
    pub fn hash_for_signatures(&self) -> [u8; 32] {
        self.hash(false, false, false)
    }

    /// The digest `signature` is over; `signatures` are part of it.
    pub fn hash_for_signature(&self) -> [u8; 32] {
        self.hash(false, false, true)
    }

    /// The digest `second_signature` is over; everything else is part of it.
    pub fn hash_for_second_signature(&self) -> [u8; 32] {
        self.hash(true, false, true)
    }

    fn hash(&self, signature: bool, second: bool, signatures: bool) -> [u8; 32] {
        if let Version::One(_) = self.version {
            return self.version_one_hash(signature, second);
        }
        let mut bytes = body(self);
        if signature {
            bytes.extend(self.signature.iter().flatten());
        }
        if second {
            bytes.extend(self.second_signature.iter().flatten());
        }
        if signatures {
            bytes.extend(self.signatures.iter().flat_map(|signature| signature.to_bytes()));
        }
        sha256(&bytes)
    }

    /// SHA256 of the version 1 signing bytes.
    pub(super) fn version_one_hash(&self, signature: bool, second: bool) -> [u8; 32] {
        let mut bytes = self.version_one_bytes();
        if signature {
            bytes.extend(self.signature.iter().flatten());
        }
        if second {
            bytes.extend(self.second_signature.iter().flatten());
        }
        sha256(&bytes)
    }

    /// The bytes that version 1 signs, which differ from those it sends. Source: protocol.md 3.3.
    fn version_one_bytes(&self) -> Vec<u8> {
        let Version::One(timestamp) = self.version else { unreachable!("only called for version 1") };
        let (_, number) = self.kind().numbers();
        let mut out = Vec::with_capacity(320);
        out.push(u8::try_from(number).expect("type numbers are small"));
        out.extend(timestamp.0.to_le_bytes());
        out.extend(self.sender.as_bytes());
        match (&self.asset, self.asset.recipient()) {
            (Asset::Vote(_), _) => out.extend(self.sender.address(self.network).as_bytes()),
            (_, Some(recipient)) => out.extend(recipient.as_bytes()),
            (_, None) => out.extend([0; 21]),
        }
        let vendor_field = self.vendor_field.as_deref().unwrap_or_default().as_bytes();
        out.extend(vendor_field);
        out.extend(std::iter::repeat_n(0, 64usize.saturating_sub(vendor_field.len())));
        out.extend(self.asset.amount().value().to_le_bytes());
        out.extend(self.fee.value().to_le_bytes());
        self.kind().module().write_signed_in_version_one(&self.asset, &mut out);
        out
    }
}
