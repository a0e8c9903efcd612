//! Facts about a kind of fault that the rest of the program needs, declared beside the kind.

/// The facts of a kind of fault. A new kind takes one of the constants and changes what is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The nodes that it names break the rules or cannot keep them. Invariants exempt them.
    pub deviant: bool,
    /// The relays of the nodes that it names may refuse the block of their own delegate, although that follows the rules. Several nodes
    /// forge for one delegate, and the block of another one came first. Or a delegate leaves out a transaction on which a later one of
    /// its block depends. The checker does not count this as a breach.
    pub may_forge_in_vain: bool,
    /// Delegates forge other blocks, or at other times, than the rules say. The possible blocks are then unknown.
    pub irregular: bool,
    /// The duration of the fault.
    pub lasting: Lasting,
    /// The timing of the nodes that it names.
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
    pub const NETWORK: Self = Self {
        deviant: false,
        may_forge_in_vain: false,
        irregular: false,
        lasting: Lasting::Spell,
        timing: Timing::True,
    };
    /// Nodes omit something, which the rules allow.
    pub const OMISSION: Self = Self::NETWORK;
    /// Delegates leave transactions out of their blocks.
    pub const CENSORSHIP: Self = Self { may_forge_in_vain: true, ..Self::OMISSION };
    /// Nodes break the rules, or cannot keep them.
    pub const BREACH: Self = Self { deviant: true, ..Self::NETWORK };
    /// Delegates break the rules of forging.
    pub const IRREGULAR: Self = Self { irregular: true, ..Self::BREACH };
    /// Several honest nodes forge for one delegate.
    pub const PAIRED: Self = Self { may_forge_in_vain: true, irregular: true, ..Self::NETWORK };
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
