//! Transactions of every type with values drawn by proptest.

use dposlab::protocol::{
    Address, Arktoshi, KeyPair, Nonce, PublicKey, SignedTransaction, Timestamp, Transaction, TransactionId, Vote,
    crypto::CryptoMode::Real,
    transaction::{Asset, BridgechainRegistration, BridgechainUpdate, Expiration, Payment, TransactionBuilder},
};
use indexmap::IndexMap;
use proptest::{collection::vec, option, prelude::*};

/// A transaction and the keys that vouch for it.
#[derive(Clone, Debug)]
pub struct Sample {
    pub signed: SignedTransaction,
    pub second: Option<PublicKey>,
    /// Minimum and keys of a wallet that signs by its participants alone.
    pub wallet: Option<(u8, Vec<PublicKey>)>,
}

impl Sample {
    /// Returns true if every signature there is holds.
    pub fn holds(&self, transaction: &SignedTransaction) -> bool {
        let first = match &self.wallet {
            None => transaction.verified(Real),
            // A wallet's transaction counts exactly its participants: none may be added or replaced.
            Some((min, keys)) => {
                transaction.transaction().signature.is_none()
                    && transaction.transaction().signatures.len() == usize::from(*min)
                    && transaction.verify_multi(*min, keys, Real) == Ok(true)
            }
        };
        first && self.second.as_ref().is_none_or(|key| transaction.verify_second(key, Real))
    }
}

pub fn keys() -> impl Strategy<Value = KeyPair> {
    any::<u64>().prop_map(|number| KeyPair::from_passphrase(&format!("sample {number}"), Real))
}

fn key() -> impl Strategy<Value = PublicKey> {
    keys().prop_map(|keys| *keys.public())
}

fn address() -> impl Strategy<Value = Address> {
    key().prop_map(|key| key.address(23))
}

pub fn amount() -> impl Strategy<Value = Arktoshi> {
    prop_oneof![1..1000u64, 1..=Arktoshi::MAX.value()].prop_map(|value| Arktoshi::new(value).unwrap())
}

fn hash() -> impl Strategy<Value = [u8; 32]> {
    any::<[u8; 32]>()
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]{1,8}(( - |[ ._-])[a-zA-Z0-9]{1,8}){0,2}[.]?"
}

fn uri() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9+.-]{0,8}:(//)?[!-~]{3,40}"
}

fn vat() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9]{8,15}"
}

fn seed_nodes() -> impl Strategy<Value = Vec<String>> {
    vec(prop_oneof!["[1-9]\\.[0-9]\\.[0-9]{2}\\.2[0-4][0-9]", "2001:db8::[1-9a-f][0-9a-f]{0,3}"], 1..10).prop_map(
        |mut nodes| {
            nodes.retain(|node| node.parse::<std::net::IpAddr>().is_ok());
            nodes.sort();
            nodes.dedup();
            if nodes.is_empty() { vec!["1.2.3.4".to_owned()] } else { nodes }
        },
    )
}

/// Names that are whole numbers come first and ascending, as an object of JavaScript has them.
fn ports() -> impl Strategy<Value = IndexMap<String, u16>> {
    (vec(("[a-z@/.~_-]{1,20}", any::<u16>()), 0..6), any::<u16>(), any::<bool>()).prop_map(|(others, port, number)| {
        let numbered = number.then(|| ("7".to_owned(), port));
        let core_api = [("@arkecosystem/core-api".to_owned(), port)];
        numbered.into_iter().chain(others).chain(core_api).collect()
    })
}

pub fn asset() -> impl Strategy<Value = Asset> {
    let expiration = any::<(bool, u32)>()
        .prop_map(|(height, value)| if height { Expiration::BlockHeight(value) } else { Expiration::EpochTime(value) });
    let payment = (amount(), address()).prop_map(|(amount, recipient)| Payment { amount, recipient });
    let core = prop_oneof![
        (amount(), any::<u32>(), address()).prop_map(|(amount, expiration, recipient)| Asset::Transfer {
            amount,
            expiration,
            recipient
        }),
        key().prop_map(|public_key| Asset::SecondSignature { public_key }),
        "[a-z0-9!@$&_.]{1,20}".prop_map(|username| Asset::DelegateRegistration { username }),
        (key(), any::<bool>()).prop_map(|(key, plus)| Asset::Vote(if plus {
            Vote::For(key)
        } else {
            Vote::Against(key)
        })),
        vec(any::<u8>(), 1..60)
            .prop_map(|digest| Asset::Ipfs { multihash: [vec![0x12, digest.len() as u8], digest].concat() }),
        vec(payment, 2..20).prop_map(|payments| Asset::MultiPayment { payments }),
        Just(Asset::DelegateResignation),
        (amount(), hash(), expiration, address()).prop_map(|(amount, secret_hash, expiration, recipient)| {
            Asset::HtlcLock { amount, secret_hash, expiration, recipient }
        }),
        (hash(), hash())
            .prop_map(|(lock, unlock_secret)| Asset::HtlcClaim { lock: TransactionId(lock), unlock_secret }),
        hash().prop_map(|lock| Asset::HtlcRefund { lock: TransactionId(lock) }),
    ];
    prop_oneof![4 => core, 3 => magistrate()]
}

fn magistrate() -> impl Strategy<Value = Asset> {
    prop_oneof![
        (name(), uri(), option::of(vat()), option::of(uri())).prop_map(|(name, website, vat, repository)| {
            Asset::BusinessRegistration { name, website, vat, repository }
        }),
        Just(Asset::BusinessResignation),
        (name(), option::of(uri()), option::of(vat()), option::of(uri())).prop_map(
            |(name, website, vat, repository)| Asset::BusinessUpdate { name: Some(name), website, vat, repository }
        ),
        (name(), seed_nodes(), hash(), uri(), option::of(uri()), ports()).prop_map(
            |(name, seed_nodes, genesis_hash, repository, asset_repository, ports)| {
                BridgechainRegistration { name, seed_nodes, genesis_hash, repository, asset_repository, ports }.into()
            }
        ),
        hash().prop_map(|bridgechain| Asset::BridgechainResignation { bridgechain }),
        (hash(), option::of(seed_nodes()), option::of(ports()), uri(), option::of(uri())).prop_map(
            |(bridgechain, seed_nodes, ports, repository, asset_repository)| {
                let repository = Some(repository);
                BridgechainUpdate { bridgechain, seed_nodes, ports, repository, asset_repository }.into()
            }
        ),
    ]
}

fn builder() -> impl Strategy<Value = TransactionBuilder> {
    (asset(), 0..=i64::MAX as u64, amount(), option::of("\\PC{0,15}")).prop_map(|(asset, nonce, fee, text)| {
        let free = matches!(asset, Asset::HtlcClaim { .. } | Asset::HtlcRefund { .. });
        let builder =
            TransactionBuilder::new(asset).network(23).nonce(Nonce(nonce)).vendor_field(text.unwrap_or_default());
        builder.fee(if free { Arktoshi::ZERO } else { fee })
    })
}

/// Version 2, signed in every way there is.
pub fn sample() -> impl Strategy<Value = Sample> {
    let plain = (builder(), keys(), any::<bool>()).prop_map(|(builder, keys, ecdsa)| {
        let signed = if ecdsa { builder.sign_ecdsa(&keys) } else { builder.sign(&keys) };
        Sample { signed, second: None, wallet: None }
    });
    let twice = (builder(), keys(), keys(), any::<bool>()).prop_filter_map(
        "a second key is registered without one",
        |(builder, keys, second, ecdsa)| {
            let signed = if ecdsa { builder.sign_ecdsa(&keys) } else { builder.sign(&keys) };
            let registers = matches!(signed.asset(), Asset::SecondSignature { .. });
            let signed = signed.second_sign(&second);
            (!registers).then_some(Sample { signed, second: Some(*second.public()), wallet: None })
        },
    );
    prop_oneof![4 => plain, 2 => twice, 1 => registration(), 1 => wallet()]
}

fn members() -> impl Strategy<Value = (u8, Vec<KeyPair>)> {
    (any::<u64>(), 1..=5usize, any::<u8>()).prop_map(|(seed, count, min)| {
        let keys = (0..count).map(|n| KeyPair::from_passphrase(&format!("member {n} of {seed}"), Real)).collect();
        (1 + min % count as u8, keys)
    })
}

fn registration() -> impl Strategy<Value = Sample> {
    members().prop_map(|(min, members)| {
        let keys: Vec<PublicKey> = members.iter().map(|keys| *keys.public()).collect();
        let mut unsigned = Transaction::multi_signature(min, keys.clone()).sender(keys[0]);
        for (index, member) in members.iter().enumerate() {
            unsigned = unsigned.multi_sign(index as u8, member);
        }
        Sample { signed: unsigned.sign(&members[0]).finish(), second: None, wallet: None }
    })
}

fn wallet() -> impl Strategy<Value = Sample> {
    (members(), amount(), address()).prop_map(|((min, members), amount, recipient)| {
        let keys: Vec<PublicKey> = members.iter().map(|keys| *keys.public()).collect();
        let sender = dposlab::protocol::keys::multisignature_key(min, &keys).unwrap();
        let mut unsigned = Transaction::transfer(recipient, amount).sender(sender);
        for (index, member) in members.iter().enumerate().take(usize::from(min)) {
            unsigned = unsigned.multi_sign(index as u8, member);
        }
        Sample { signed: unsigned.finish(), second: None, wallet: Some((min, keys)) }
    })
}

/// The five types there were in version 1 and still can be built.
pub fn old_sample() -> impl Strategy<Value = Sample> {
    let old = |asset: &Asset| {
        let (group, number) = asset.kind().numbers();
        group == 1 && number <= 3
    };
    (asset().prop_filter("a type of version 1", old), any::<u32>(), amount(), keys()).prop_map(
        |(asset, timestamp, fee, keys)| {
            let builder = TransactionBuilder::new(asset).network(23).fee(fee).expiration(0);
            let signed = builder.version_one(Timestamp(timestamp)).sign(&keys);
            Sample { signed, second: None, wallet: None }
        },
    )
}
