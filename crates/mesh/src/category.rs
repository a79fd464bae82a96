//! Access categories of 802.11, and the packets that belong to each.
//!
//! Sources: IEEE Std 802.11-2012, 9.2.4.2 and table 9-1 (user priorities and categories); RFC 8325,
//! section 4.3 (user priority by DSCP; code points that it does not list are best effort); RFC
//! 8622, section 10 (LE is background). CS6 and CS7 are voice, which RFC 8325 specifies for a
//! network that trusts the hosts that mark these packets.

/// Access category: its frames have a queue and an access to the medium (EDCA) of their own. A
/// greater category is more urgent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Category {
    /// Background, AC_BK.
    Background,
    /// Best effort, AC_BE.
    #[default]
    BestEffort,
    /// Video, AC_VI.
    Video,
    /// Voice, AC_VO.
    Voice,
}

impl Category {
    /// Number of categories.
    pub const COUNT: usize = 4;
    /// All categories, the most urgent first.
    pub const URGENT_FIRST: [Category; Category::COUNT] =
        [Category::Voice, Category::Video, Category::BestEffort, Category::Background];

    /// Returns the category of IP packets with the code point `dscp` of differentiated services, 0
    /// to 63.
    pub fn of_dscp(dscp: u8) -> Category {
        match dscp {
            // The code points are LE and CS1.
            1 | 8 => Category::Background,
            // The code points are CS3, AF31 to AF33, CS4, AF41 to AF43 and CS5.
            24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 | 40 => Category::Video,
            // The code points are VOICE-ADMIT, EF, CS6 and CS7.
            44 | 46 | 48 | 56 => Category::Voice,
            _ => Category::BestEffort,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_the_user_priority_of_rfc_8325() {
        // RFC 8325, figure 1, with the user priorities of a trusted network; table 9-1 of the
        // standard gives their categories.
        let listed = [
            (56, 7),
            (48, 7),
            (46, 6),
            (44, 6),
            (40, 5),
            (34, 4),
            (36, 4),
            (38, 4),
            (32, 4),
            (26, 4),
            (28, 4),
            (30, 4),
            (24, 4),
            (18, 3),
            (20, 3),
            (22, 3),
            (16, 0),
            (10, 0),
            (12, 0),
            (14, 0),
            (0, 0),
            (8, 1),
        ];
        let by_priority = |priority| match priority {
            1 | 2 => Category::Background,
            0 | 3 => Category::BestEffort,
            4 | 5 => Category::Video,
            _ => Category::Voice,
        };
        for dscp in 0..64 {
            let priority = listed.iter().find(|entry| entry.0 == dscp).map_or(0, |entry| entry.1);
            // RFC 8622 added LE later than RFC 8325.
            let expected = if dscp == 1 { Category::Background } else { by_priority(priority) };
            assert_eq!(Category::of_dscp(dscp), expected, "{dscp}");
        }
    }
}
