//! Businesses and bridgechains, the types of group 2. Source: consensus.md 4.5.

use super::ApplyError;
use crate::{
    ledger::{
        Wallet,
        wallet::{Bridgechain, Business},
    },
    protocol::{Asset, transaction::BridgechainRegistration},
};
use indexmap::IndexMap;
use std::sync::Arc;

/// The preconditions of the six types on the sender.
pub(super) fn check(asset: &Asset, sender: &Wallet) -> Result<(), ApplyError> {
    match asset {
        Asset::BusinessRegistration { .. } if sender.business.is_some() => Err(ApplyError::BusinessAlreadyRegistered),
        Asset::BusinessResignation => {
            let business = live_business(sender)?;
            let all_resigned = business.bridgechains.values().all(|bridgechain| bridgechain.resigned);
            if all_resigned { Ok(()) } else { Err(ApplyError::BridgechainsAreNotResigned) }
        }
        Asset::BusinessUpdate { .. } => live_business(sender).map(|_| ()),
        Asset::BridgechainRegistration(registration) => {
            let business = live_business(sender)?;
            let same_name = |bridgechain: &Bridgechain| bridgechain.name.eq_ignore_ascii_case(&registration.name);
            if business.bridgechains.values().any(same_name) {
                return Err(ApplyError::BridgechainAlreadyRegistered);
            }
            if business.bridgechains.contains_key(&registration.genesis_hash) {
                return Err(ApplyError::GenesisHashAlreadyRegistered);
            }
            check_ports(&registration.ports)
        }
        Asset::BridgechainResignation { bridgechain } => live_bridgechain(sender, bridgechain),
        Asset::BridgechainUpdate(update) => {
            live_bridgechain(sender, &update.bridgechain)?;
            update.ports.as_ref().map_or(Ok(()), check_ports)
        }
        _ => Ok(()),
    }
}

fn live_business(sender: &Wallet) -> Result<&Business, ApplyError> {
    match sender.business.as_deref() {
        None => Err(ApplyError::BusinessIsNotRegistered),
        Some(business) if business.resigned => Err(ApplyError::BusinessIsResigned),
        Some(business) => Ok(business),
    }
}

fn live_bridgechain(sender: &Wallet, genesis_hash: &[u8; 32]) -> Result<(), ApplyError> {
    match live_business(sender)?.bridgechains.get(genesis_hash) {
        None => Err(ApplyError::BridgechainIsNotRegistered),
        Some(bridgechain) if bridgechain.resigned => Err(ApplyError::BridgechainIsResigned),
        Some(_) => Ok(()),
    }
}

/// `^[a-z0-9@/.~_-]{1,214}$`
fn check_ports(ports: &IndexMap<String, u16>) -> Result<(), ApplyError> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"@/.~_-".contains(&byte);
    let valid = |name: &String| (1..=214).contains(&name.len()) && name.bytes().all(allowed);
    if ports.keys().all(valid) { Ok(()) } else { Err(ApplyError::PortKeyMustBeValidPackageName) }
}

/// Applies the changes of the six types to the sender's wallet. Other types change nothing here.
pub(super) fn apply(asset: &Asset, sender: &mut Wallet) {
    match asset {
        Asset::BusinessRegistration { name, website, vat, repository } => {
            sender.business = Some(Arc::new(Business {
                name: name.clone(),
                website: website.clone(),
                vat: vat.clone(),
                repository: repository.clone(),
                resigned: false,
                bridgechains: IndexMap::new(),
            }));
        }
        _ => {
            if let Some(business) = sender.business_mut() {
                change(asset, business);
            }
        }
    }
}

fn change(asset: &Asset, business: &mut Business) {
    match asset {
        Asset::BusinessResignation => business.resigned = true,
        Asset::BusinessUpdate { name, website, vat, repository } => {
            replace(&mut business.name, name);
            replace(&mut business.website, website);
            business.vat = vat.clone().or(business.vat.take());
            business.repository = repository.clone().or(business.repository.take());
        }
        Asset::BridgechainRegistration(registration) => {
            let BridgechainRegistration { name, seed_nodes, genesis_hash, repository, asset_repository, ports } =
                &**registration;
            let bridgechain = Bridgechain {
                name: name.clone(),
                seed_nodes: seed_nodes.clone(),
                genesis_hash: *genesis_hash,
                repository: repository.clone(),
                asset_repository: asset_repository.clone(),
                ports: ports.clone(),
                resigned: false,
            };
            business.bridgechains.insert(*genesis_hash, bridgechain);
        }
        Asset::BridgechainResignation { bridgechain } => {
            if let Some(found) = business.bridgechains.get_mut(bridgechain) {
                found.resigned = true;
            }
        }
        Asset::BridgechainUpdate(update) => {
            if let Some(found) = business.bridgechains.get_mut(&update.bridgechain) {
                replace(&mut found.seed_nodes, &update.seed_nodes);
                replace(&mut found.ports, &update.ports);
                replace(&mut found.repository, &update.repository);
                found.asset_repository = update.asset_repository.clone().or(found.asset_repository.take());
            }
        }
        _ => {}
    }
}

fn replace<T: Clone>(old: &mut T, new: &Option<T>) {
    if let Some(new) = new {
        old.clone_from(new);
    }
}
