#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# All rows of the runs of many vCPUs within their bounds, and the profile that calibrate fits to some of
# them is the committed one, byte for byte. A few minutes.
#   evidence.sh BUILDDIR
set -eu
kvmsim=$1/kvmsim
recipe=analysis/evidence/eager_split_dirty_log_perf.ini
out=$(mktemp)
trap 'rm -f "$out"' EXIT

"$kvmsim" validate --recipe $recipe --vcpus 96
"$kvmsim" calibrate --recipe $recipe -o "$out"
cmp "$out" model/profiles/cascadelake-2022.ini
echo 'model/profiles/cascadelake-2022.ini is what calibrate writes'
