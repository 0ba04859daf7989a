//! Estimated floors: the cuts of the last depths, from which the floor of the next one is estimated.

use hatebeam_runs::Manifest;
use hatebeam_search::RecentCuts;

/// Returns the cuts of the committed depths.
pub(super) fn cuts_of(manifest: &Manifest) -> RecentCuts {
    let mut cuts = RecentCuts::default();
    for record in manifest.records() {
        cuts.add(record.count, record.worst_eval, manifest.spec.width);
    }
    cuts
}
