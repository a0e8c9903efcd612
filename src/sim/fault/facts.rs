//! Facts about a kind of fault that the rest of the program needs, declared beside the kind.

/// The facts of a kind of fault. A new kind takes one of the constants and changes what is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The nodes that it names break the rules or cannot keep them. Invariants exempt them.
    pub deviant: bool,
    /// Several nodes forge for one delegate, each by the rules. If the block of one arrives before another forges its own, the second
    /// node's relay refuses that own block. The checker does not count this as a breach.
    pub paired: bool,
    /// Delegates forge other blocks, or at other times, than the rules say. The possible blocks are then unknown.
    pub irregular: bool,
    pub lasting: Lasting,
    pub timing: Timing,
}

/// The duration of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// From its beginning to its end.
    Spell,
    /// It is over at once, and takes no end.
    AtOnce,
    /// It is over at once and only ends other faults.
    Mending,
}

/// The timing of the nodes that a fault names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// On time.
    True,
    /// Stopped until the fault is over.
    Stopped,
    /// By a wrong clock, or late.
    Wrong,
}

impl Facts {
    /// Something happens between nodes.
    pub const NETWORK: Self =
        Self { deviant: false, paired: false, irregular: false, lasting: Lasting::Spell, timing: Timing::True };
    /// Nodes omit something, which the rules allow.
    pub const OMISSION: Self = Self::NETWORK;
    /// Nodes break the rules, or cannot keep them.
    pub const BREACH: Self = Self { deviant: true, ..Self::NETWORK };
    /// Delegates break the rules of forging.
    pub const IRREGULAR: Self = Self { irregular: true, ..Self::BREACH };
    /// Several honest nodes forge for one delegate.
    pub const PAIRED: Self = Self { paired: true, irregular: true, ..Self::NETWORK };
    /// Clients hand in transactions.
    pub const CLIENTS: Self = Self::NETWORK;

    /// These facts, for a fault that is over at once.
    pub const fn at_once(self) -> Self {
        Self { lasting: Lasting::AtOnce, ..self }
    }

    /// These facts, for nodes with this timing.
    pub const fn timed(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Returns true if the fault ends by itself, at the instant at which it begins.
    pub fn is_over_at_once(self) -> bool {
        self.lasting != Lasting::Spell
    }
}
