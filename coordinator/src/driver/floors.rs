//! The cuts of the committed depths: the lowest scores that stayed in the beam. From the cuts, the search estimates the
//! floor of the next depth. Candidates below the floor are dropped immediately.

use hatebeam_runs::Manifest;
use hatebeam_search::RecentCuts;

pub(super) fn cuts_of(manifest: &Manifest) -> RecentCuts {
    let mut cuts = RecentCuts::default();
    for record in manifest.records() {
        cuts.add(record.count, record.worst_eval, manifest.spec.width);
    }
    cuts
}
