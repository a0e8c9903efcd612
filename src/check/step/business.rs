//! Businesses and bridgechains, the six types of group 2, straight from the contract's table. Source: consensus.md 4.5.

use super::account::{Account, Chain, Firm, Hex};
use crate::protocol::{Asset, Kind};
use indexmap::IndexMap;

/// The types of which a sender has at most one pending transaction. Source: consensus.md 5.2.
pub(in crate::check) const ONCE: &[Kind] =
    &[Kind::BusinessRegistration, Kind::BusinessResignation, Kind::BusinessUpdate];

/// Bytes on top of half the size in a dynamic fee. Source: consensus.md 5.3.
pub(in crate::check) fn more_bytes(kind: Kind) -> u64 {
    match kind {
        Kind::BusinessRegistration | Kind::BridgechainRegistration => 4_000_000,
        Kind::BusinessUpdate | Kind::BridgechainUpdate => 500,
        _ => 100,
    }
}

/// The preconditions.
///
/// # Errors
/// The first that does not hold.
pub(super) fn allowed(asset: &Asset, sender: &Account) -> Result<(), String> {
    if asset.kind().numbers().0 != 2 {
        return Ok(());
    }
    let firm = sender.business.as_ref();
    if let Asset::BusinessRegistration { .. } = asset {
        return if firm.is_some() { refuse("its sender is a business") } else { Ok(()) };
    }
    let Some(firm) = firm else { return refuse("its sender is no business") };
    if firm.resigned {
        return refuse("the business has resigned");
    }
    match asset {
        Asset::BusinessResignation if firm.chains.iter().any(|chain| !chain.resigned) => {
            refuse("a bridgechain of the business has not resigned")
        }
        Asset::BridgechainRegistration(new) => {
            let same_name = |chain: &Chain| chain.name.eq_ignore_ascii_case(&new.name);
            if firm.chains.iter().any(same_name) {
                return refuse("the business has a bridgechain of this name");
            }
            if firm.chains.iter().any(|chain| chain.id == Hex(new.genesis_hash)) {
                return refuse("the bridgechain is registered");
            }
            named_as_packages(&new.ports)
        }
        Asset::BridgechainResignation { bridgechain } => known(firm, bridgechain),
        Asset::BridgechainUpdate(update) => {
            known(firm, &update.bridgechain)?;
            update.ports.as_ref().map_or(Ok(()), named_as_packages)
        }
        _ => Ok(()),
    }
}

fn refuse(why: &str) -> Result<(), String> {
    Err(why.to_owned())
}

fn known(firm: &Firm, id: &[u8; 32]) -> Result<(), String> {
    match firm.chains.iter().find(|chain| chain.id == Hex(*id)) {
        None => refuse("there is no such bridgechain"),
        Some(chain) if chain.resigned => refuse("the bridgechain has resigned"),
        Some(_) => Ok(()),
    }
}

/// `^[a-z0-9@/.~_-]{1,214}$`
fn named_as_packages(ports: &IndexMap<String, u16>) -> Result<(), String> {
    let is_name = |name: &str| {
        (1..=214).contains(&name.len())
            && name
                .bytes()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"@/.~_-".contains(&letter))
    };
    match ports.keys().find(|name| !is_name(name)) {
        Some(name) => Err(format!("port '{name}' is not named as a package")),
        None => Ok(()),
    }
}

/// The effects on the sender.
pub(super) fn take_effect(asset: &Asset, sender: &mut Account) {
    if let Asset::BusinessRegistration { name, website, vat, repository } = asset {
        sender.business = Some(Firm {
            name: name.clone(),
            website: website.clone(),
            vat: vat.clone(),
            repository: repository.clone(),
            resigned: false,
            chains: Vec::new(),
        });
    }
    let Some(firm) = &mut sender.business else { return };
    match asset {
        Asset::BusinessResignation => firm.resigned = true,
        Asset::BusinessUpdate { name, website, vat, repository } => {
            set(&mut firm.name, name.as_ref());
            set(&mut firm.website, website.as_ref());
            set_optional(&mut firm.vat, vat.as_ref());
            set_optional(&mut firm.repository, repository.as_ref());
        }
        Asset::BridgechainRegistration(new) => {
            firm.chains.push(Chain {
                id: Hex(new.genesis_hash),
                genesis_hash: Hex(new.genesis_hash),
                name: new.name.clone(),
                seed_nodes: new.seed_nodes.clone(),
                repository: new.repository.clone(),
                asset_repository: new.asset_repository.clone(),
                ports: listed(&new.ports),
                resigned: false,
            });
        }
        Asset::BridgechainResignation { bridgechain } => {
            for chain in firm.chains.iter_mut().filter(|chain| chain.id == Hex(*bridgechain)) {
                chain.resigned = true;
            }
        }
        Asset::BridgechainUpdate(update) => {
            for chain in firm.chains.iter_mut().filter(|chain| chain.id == Hex(update.bridgechain)) {
                set(&mut chain.seed_nodes, update.seed_nodes.as_ref());
                set(&mut chain.repository, update.repository.as_ref());
                set_optional(&mut chain.asset_repository, update.asset_repository.as_ref());
                set(&mut chain.ports, update.ports.as_ref().map(listed).as_ref());
            }
        }
        _ => {}
    }
}

fn listed(ports: &IndexMap<String, u16>) -> Vec<(String, u16)> {
    ports.iter().map(|(name, port)| (name.clone(), *port)).collect()
}

fn set<T: Clone>(member: &mut T, given: Option<&T>) {
    if let Some(given) = given {
        *member = given.clone();
    }
}

fn set_optional<T: Clone>(member: &mut Option<T>, given: Option<&T>) {
    if let Some(given) = given {
        *member = Some(given.clone());
    }
}
