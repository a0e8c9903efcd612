//! A transaction into bytes: those of the wire, and the other ones that version 1 signs. Source: protocol.md 3.2 to 3.4.

use super::{Asset, Expiration, Kind, Payment, Transaction, Version, Vote};
use crate::protocol::crypto::sha256;
use indexmap::IndexMap;

/// Bytes of most transactions at most.
const USUAL: usize = 256;
/// Bytes of a payment.
const PAYMENT: usize = 29;

/// The wire bytes before the signatures, with room for these.
pub(super) fn body(transaction: &Transaction) -> Vec<u8> {
    let payments = match &transaction.asset {
        Asset::MultiPayment { payments } => payments.len(),
        _ => 0,
    };
    let mut bytes = Vec::with_capacity(USUAL + PAYMENT * payments);
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
    asset(&transaction.asset, out);
    bytes
}

/// The wire bytes after the body: signature, second signature, signatures.
pub(super) fn signatures(transaction: &Transaction, out: &mut Vec<u8>) {
    for signature in [&transaction.signature, &transaction.second_signature].into_iter().flatten() {
        out.extend_from_slice(signature);
    }
    for signature in &transaction.signatures {
        out.extend(signature.to_bytes());
    }
}

fn asset(asset: &Asset, out: &mut Vec<u8>) {
    match asset {
        Asset::Transfer { amount, expiration, recipient } => {
            out.extend(amount.value().to_le_bytes());
            out.extend(expiration.to_le_bytes());
            out.extend(recipient.as_bytes());
        }
        Asset::SecondSignature { public_key } => out.extend(public_key.as_bytes()),
        Asset::DelegateRegistration { username } => text(out, Some(username)),
        Asset::Vote(vote) => vote_bytes(out, vote),
        Asset::MultiSignature { min, public_keys } => {
            out.extend([*min, count(public_keys.len())]);
            out.extend(public_keys.iter().flat_map(|key| key.as_bytes()));
        }
        Asset::MultiSignatureLegacy { min, lifetime, keysgroup } => {
            out.extend([*min, count(keysgroup.len()), *lifetime]);
            out.extend(keysgroup.iter().flat_map(|key| key.as_bytes()));
        }
        Asset::Ipfs { multihash } => out.extend(multihash),
        Asset::MultiPayment { payments } => {
            out.extend(u16::try_from(payments.len()).expect("more payments than a count can say").to_le_bytes());
            payments.iter().for_each(|payment| payment_bytes(out, payment));
        }
        Asset::DelegateResignation | Asset::BusinessResignation => {}
        Asset::HtlcLock { amount, secret_hash, expiration, recipient } => {
            out.extend(amount.value().to_le_bytes());
            out.extend(secret_hash);
            expiration_bytes(out, *expiration);
            out.extend(recipient.as_bytes());
        }
        Asset::HtlcClaim { lock, unlock_secret } => {
            out.extend(lock.0);
            out.extend(unlock_secret);
        }
        Asset::HtlcRefund { lock } => out.extend(lock.0),
        magistrate => magistrate_asset(magistrate, out),
    }
}

/// The types of group 2. Registration and update of a bridgechain have their members in different orders.
fn magistrate_asset(asset: &Asset, out: &mut Vec<u8>) {
    match asset {
        Asset::BusinessRegistration { name, website, vat, repository } => {
            texts(out, [Some(name), Some(website), vat.as_ref(), repository.as_ref()]);
        }
        Asset::BusinessUpdate { name, website, vat, repository } => {
            texts(out, [name.as_ref(), website.as_ref(), vat.as_ref(), repository.as_ref()]);
        }
        Asset::BridgechainRegistration { name, seed_nodes, genesis_hash, repository, asset_repository, ports } => {
            text(out, Some(name));
            list(out, seed_nodes);
            out.extend(genesis_hash);
            texts(out, [Some(repository), asset_repository.as_ref()]);
            port_bytes(out, ports);
        }
        Asset::BridgechainResignation { bridgechain } => out.extend(bridgechain),
        Asset::BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository } => {
            out.extend(bridgechain);
            list(out, seed_nodes.as_deref().unwrap_or_default());
            match ports {
                Some(ports) => port_bytes(out, ports),
                None => out.push(0),
            }
            texts(out, [repository.as_ref(), asset_repository.as_ref()]);
        }
        _ => unreachable!("the core types are encoded before"),
    }
}

fn vote_bytes(out: &mut Vec<u8>, vote: &Vote) {
    out.extend([1, u8::from(vote.is_for())]);
    out.extend(vote.delegate().as_bytes());
}

fn payment_bytes(out: &mut Vec<u8>, payment: &Payment) {
    out.extend(payment.amount.value().to_le_bytes());
    out.extend(payment.recipient.as_bytes());
}

fn expiration_bytes(out: &mut Vec<u8>, expiration: Expiration) {
    let (kind, value) = expiration.numbers();
    out.push(kind);
    out.extend(value.to_le_bytes());
}

fn port_bytes(out: &mut Vec<u8>, ports: &IndexMap<String, u16>) {
    out.push(count(ports.len()));
    for (name, port) in ports {
        text(out, Some(name));
        out.extend(port.to_le_bytes());
    }
}

fn list(out: &mut Vec<u8>, items: &[String]) {
    out.push(count(items.len()));
    items.iter().for_each(|item| text(out, Some(item)));
}

fn texts<const N: usize>(out: &mut Vec<u8>, values: [Option<&String>; N]) {
    values.into_iter().for_each(|value| text(out, value.map(String::as_str)));
}

/// One byte of length and the text; nothing is a length of 0.
fn text(out: &mut Vec<u8>, value: Option<&str>) {
    let value = value.unwrap_or_default();
    out.push(count(value.len()));
    out.extend(value.as_bytes());
}

fn count(length: usize) -> u8 {
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
        self.version_one_asset(&mut out);
        out
    }

    fn version_one_asset(&self, out: &mut Vec<u8>) {
        match &self.asset {
            Asset::SecondSignature { public_key } => out.extend(public_key.as_bytes()),
            Asset::DelegateRegistration { username } => out.extend(username.as_bytes()),
            Asset::Vote(vote) => out.extend(vote.to_string().as_bytes()),
            Asset::MultiSignatureLegacy { min, lifetime, keysgroup } => {
                out.extend([*min, *lifetime]);
                keysgroup.iter().for_each(|key| out.extend(format!("+{key}").as_bytes()));
            }
            _ => debug_assert!(self.kind() != Kind::Vote, "votes have their bytes above"),
        }
    }
}
