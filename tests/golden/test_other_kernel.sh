#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Kernels beside the one that the model was built against: which presets, and what only one side counts.
#   tests/golden/test_other_kernel.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
recorded=$(dirname "$0")/../../analysis/evidence/kernel-6.12
programs=$(dirname "$0")/../kernel/cases
has=$recorded/6.12.95.has

validate() {
	file=$1
	shift
	"$kvmsim" validate --matrix "$file" --programs "$programs" "$@"
}

for packed in "$recorded"/*.csv.gz; do
	name=$(basename "$packed" .gz)
	gzip -dc "$packed" >"$dir/$name"
	check "$name" 0 ' 0 different, 0 not modelled' validate "$dir/$name" --kernel 6.12.95 --has "$has" --check
done
quick=$dir/quick-6.12.95.csv
check 'the kernel and its presets' 0 'Kernel 6.12.95, presets 6.12-shadow and 6.12-tdp.' \
	validate "$quick" --kernel 6.12.95 --has "$has" --case N
check '6.1 does otherwise' 1 'setup stat:tlb_flush: predicted 0, measured 1' validate "$quick" --case N

# The nearest presets.
nearest() { # RELEASE SHADOW TDP
	check "the nearest to $1" 1 "Kernel $1, presets $2 and $3." validate "$dir/altered.csv" --case N --kernel "$1"
}
awk -F, -v OFS=, '$10 ~ "^res:ndirty" && $11 > 0 && !done { $11++; done = 1 }
	$10 == "ev:kvm_page_fault" && $1 == "N" { $11++ } { print }' "$quick" >"$dir/altered.csv"
nearest 6.5.0-rc1 6.1-shadow 6.2-tdp
nearest 6.8 6.12-shadow 6.12-tdp
nearest 7.1 6.18-shadow 6.13-tdp
nearest 5.17.3 6.1-shadow 5.16-tdp
nearest 4.19 6.1-shadow 5.16-tdp
nearest 3.10 3.12 5.16-tdp
nearest 2.6.38 2.6.36 5.16-tdp

# A row that differs, in what both count.
check 'a count that is one more' 1 'ev:kvm_page_fault: predicted' validate "$dir/altered.csv" --case N \
	--kernel 6.12.95 --has "$has"

# A tracepoint that the kernel lacks, and one that has no such fields.
grep -v ',ev:kvm_mmu_set_spte' "$quick" | grep -v ',"ev:kvm_mmu_set_spte' >"$dir/without.csv"
grep -v '^ev:kvm_mmu_set_spte' "$has" >"$dir/without.has"
check 'a tracepoint is lacking' 1 ' different' validate "$dir/without.csv" --kernel 6.12 --has "$has"
check 'and is said to' 0 'the kernel has no ev:kvm_mmu_set_spte: ' validate "$dir/without.csv" --kernel 6.12 \
	--has "$dir/without.has"
grep -v '"ev:kvm_mmu_set_spte\[' "$quick" >"$dir/bare.csv"
sed 's/^\(ev:kvm_mmu_set_spte\)\[\]/\1/' "$has" >"$dir/bare.has"
check 'its fields are lacking' 1 ' different' validate "$dir/bare.csv" --kernel 6.12 --has "$has"
check 'and are said to' 0 'the kernel has no ev:kvm_mmu_set_spte: ' validate "$dir/bare.csv" --kernel 6.12 \
	--has "$dir/bare.has"
check 'the rest is compared' 1 'ev:kvm_mmu_set_spte: predicted' validate "$dir/without.csv" --kernel 6.12 \
	--has "$dir/bare.has"

# What only the kernel counts is named; without --has it is a failure, as for the kernel of one's own.
{ cat "$quick" && sed -n '/^N,npt0-long64,.*,ev:kvm_exit,/s/ev:kvm_exit/ev:kvm_new_one/p' "$quick"; } >"$dir/more.csv"
check 'a tracepoint of its own' 0 'the model has no ev:kvm_new_one: ' validate "$dir/more.csv" --kernel 6.12 \
	--has "$has"
check 'not without --has' 1 'the model has no ev:kvm_new_one: ' validate "$dir/more.csv" --kernel 6.12
check 'as JSON' 0 '"on_one_side": [' validate "$dir/more.csv" --kernel 6.12 --has "$has" --json

{ cat "$has" && echo kvm_entry; } >"$dir/wrong.has"
check 'names that cannot be read' 3 "expected ev:NAME or stat:NAME, found 'kvm_entry'" validate "$quick" \
	--kernel 6.12 --has "$dir/wrong.has"
check 'no such file' 3 'none.has' validate "$quick" --kernel 6.12 --has "$dir/none.has"
check 'no version' 2 'a version was expected' validate "$quick" --kernel newest
check '--has alone' 2 'about another --kernel' validate "$quick" --has "$has"

# Sequences: events of a tracepoint that the kernel lacks are left out of the model's.
trace=$(dirname "$0")/../../analysis/evidence/kernel/trace-U_crossing-npt0-long64.txt.gz
sequence() { "$kvmsim" validate --first-divergence --programs "$programs" "$@"; }
gzip -dc "$trace" | grep -v ' kvm_mmu_set_spte: ' >"$dir/crossing.txt"
check 'events are lacking' 1 'kvm_mmu_set_spte' sequence "$dir/crossing.txt"
check 'and left out' 0 'equal' sequence --kernel 6.1 --has "$dir/without.has" "$dir/crossing.txt"
the_end
