//! The cuts of the committed depths. The floor of the next depth (a rank below which candidates are dropped
//! immediately) is estimated from them.

use hatebeam_runs::Manifest;
use hatebeam_search::RecentCuts;

pub(super) fn cuts_of(manifest: &Manifest) -> RecentCuts {
    let mut cuts = RecentCuts::default();
    for record in manifest.records() {
        cuts.add(record.count, record.worst_eval, manifest.spec.width);
    }
    cuts
}
