//! The types as names and numbers. Source: protocol.md 3.4.

/// The 17 types as names, in the order (group, number); what tables are keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Transfer,
    SecondSignature,
    DelegateRegistration,
    Vote,
    MultiSignature,
    Ipfs,
    MultiPayment,
    DelegateResignation,
    HtlcLock,
    HtlcClaim,
    HtlcRefund,
    BusinessRegistration,
    BusinessResignation,
    BusinessUpdate,
    BridgechainRegistration,
    BridgechainResignation,
    BridgechainUpdate,
}

/// Name and key of every kind, in the order of [`Kind::ALL`].
const NAMES: [(&str, &str); 17] = [
    ("Transfer", "transfer"),
    ("SecondSignature", "secondSignature"),
    ("DelegateRegistration", "delegateRegistration"),
    ("Vote", "vote"),
    ("MultiSignature", "multiSignature"),
    ("Ipfs", "ipfs"),
    ("MultiPayment", "multiPayment"),
    ("DelegateResignation", "delegateResignation"),
    ("HtlcLock", "htlcLock"),
    ("HtlcClaim", "htlcClaim"),
    ("HtlcRefund", "htlcRefund"),
    ("BusinessRegistration", "businessRegistration"),
    ("BusinessResignation", "businessResignation"),
    ("BusinessUpdate", "businessUpdate"),
    ("BridgechainRegistration", "bridgechainRegistration"),
    ("BridgechainResignation", "bridgechainResignation"),
    ("BridgechainUpdate", "bridgechainUpdate"),
];

/// The number of core types. The others are of group 2.
const CORE: usize = 11;

impl Kind {
    /// All of them, ascending by group and number.
    pub const ALL: [Kind; 17] = [
        Kind::Transfer,
        Kind::SecondSignature,
        Kind::DelegateRegistration,
        Kind::Vote,
        Kind::MultiSignature,
        Kind::Ipfs,
        Kind::MultiPayment,
        Kind::DelegateResignation,
        Kind::HtlcLock,
        Kind::HtlcClaim,
        Kind::HtlcRefund,
        Kind::BusinessRegistration,
        Kind::BusinessResignation,
        Kind::BusinessUpdate,
        Kind::BridgechainRegistration,
        Kind::BridgechainResignation,
        Kind::BridgechainUpdate,
    ];

    /// Type group (1 core, 2 magistrate) and type number.
    pub fn numbers(self) -> (u32, u16) {
        match self as usize {
            index if index < CORE => (1, index as u16),
            index => (2, (index - CORE) as u16),
        }
    }

    /// The kind of a type group and number, if it exists.
    pub fn from_numbers(group: u32, number: u16) -> Option<Self> {
        match (group, usize::from(number)) {
            (1, number) if number < CORE => Some(Self::ALL[number]),
            (2, number) if number < Self::ALL.len() - CORE => Some(Self::ALL[CORE + number]),
            _ => None,
        }
    }

    /// `Transfer`, `SecondSignature`, …
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// `transfer`, `secondSignature`, … as the fee tables have it.
    pub fn key(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// Returns true if the type can carry a vendor field.
    pub fn has_vendor_field(self) -> bool {
        matches!(self, Self::Transfer | Self::MultiPayment | Self::HtlcLock)
    }

    /// Returns true if the type is one of the three around hash time locks.
    pub fn is_htlc(self) -> bool {
        matches!(self, Self::HtlcLock | Self::HtlcClaim | Self::HtlcRefund)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_both_ways() {
        for kind in Kind::ALL {
            let (group, number) = kind.numbers();
            assert_eq!(Kind::from_numbers(group, number), Some(kind));
        }
        assert_eq!(Kind::HtlcRefund.numbers(), (1, 10));
        assert_eq!(Kind::BusinessRegistration.numbers(), (2, 0));
        assert_eq!(Kind::BridgechainUpdate.key(), "bridgechainUpdate");
        assert_eq!(Kind::from_numbers(1, 11), None);
        assert_eq!(Kind::from_numbers(2, 6), None);
        assert_eq!(Kind::from_numbers(0, 0), None);
    }
}
