#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# validate --first-divergence: the model's events against what kernels traced (the reference's cases E, F
# and I in trace-*.txt.gz here, and analysis/evidence/kernel/trace-*.txt.gz), and against such files with a
# known fault.
#   tests/golden/test_sequence.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
recorded=$(dirname "$0")/../../analysis/evidence/kernel
programs=$(dirname "$0")/../kernel/cases

sequence() {
	"$kvmsim" validate --first-divergence --programs "$programs" "$@"
}

for file in "$(dirname "$0")"/trace-*.txt.gz "$recorded"/trace-*.txt.gz; do
	check "${file##*/}" 0 'equal line by line' sequence "$file"
done

# one of them for the faults
whole=$dir/whole.txt
gzip -dc "$recorded/trace-A-npt0-long64.txt.gz" >"$whole"
check 'not compressed' 0 'equal line by line' sequence "$whole"
check 'two files' 0 'case A, npt0-flat32' sequence "$whole" "$recorded/trace-A-npt0-flat32.txt.gz"
check 'as JSON' 0 '"equal": ' sequence --json "$whole"
sed 's/$/\r/' "$whole" >"$dir/crlf.txt"
check 'CRLF' 0 'equal line by line' sequence "$dir/crlf.txt"
{ cat "$whole"; cat "$whole"; } | sed '1s/.*/# tracer: nop/' >"$dir/twice.txt"
check 'VMs that the case has no more of' 1 'case A has no VM with the phases of this one' \
	sequence "$dir/twice.txt"

# each a single field of one event, of many events
altered() { # NAME SED-EXPRESSION FIELD
	sed "$2" "$whole" >"$dir/altered.txt"
	check "$1 differs" 1 ", event $3" sequence "$dir/altered.txt"
}
# shellcheck disable=SC2016 # awk's
first() { # EVENT: number of its first line in a phase
	awk -v e="$1: " '/: PHASE/ { in_phase = 1 } in_phase && index($0, e) { print NR; exit }' "$whole"
}
n=$(first kvm_mmu_set_spte)
altered 'an spte without D' "${n}s/e67 (rwxu)/e27 (rwxu)/" "15: spte"
altered 'a gfn' "${n}s/ gfn [0-9a-f]* / gfn 77 /" "15: gfn"
altered 'an entry of the table' "${n}s/8\$/0/" "15: index"
altered 'a frame of the host does not, but then' "${n}s/ spte [0-9a-f]*e67/ spte 12345e67/;$((n + 1))s/level 1/level 2/" \
	"16: level"
n=$(first kvm_page_fault)
altered 'an error code' "${n}s/error_code 0x10/error_code 0x14/" '6: error'
altered 'an instruction' "${n}s/rip 0x1040/rip 0x1041/" '6: rip'
n=$(first kvm_mmu_get_page)
altered 'a role' "${n}s/ wux / w-x /" '3: access'
altered 'a page that was there' "${n}s/new/existing/" '3: created'
altered 'an event less' "${n}d" 3
altered 'an event more' "${n}p" 4
altered 'an event that the model has not' "${n}s/kvm_mmu_get_page: .*/kvm_eoi: apicid 0 vector 1/" 3
check 'both contexts' 1 '+ model' sequence "$dir/altered.txt"
check 'the event itself' 1 '-      ' sequence --context 0 "$dir/altered.txt"
check 'and without more' 1 2 sh -c "'$kvmsim' validate --first-divergence --context 0 \
	'$dir/altered.txt' >'$dir/c'; rc=\$?; grep -c '^[-+] .* kvm_' '$dir/c'; exit \$rc"
check 'as JSON, too' 1 '"first_divergence": {' sequence --json "$dir/altered.txt"
# and of the events that it has none of: other MMUs', devices', roots in use
altered_in() { # TRACE NAME TEXT-OF-A-LINE SED-EXPRESSION FIELD: the first line in a phase with that text
	gzip -dc "$1" >"$dir/kernel.txt"
	awk -v t="$3" '/: PHASE/ { in_phase = 1 } in_phase && index($0, t) { print NR; exit }' \
		"$dir/kernel.txt" >"$dir/line"
	sed "$(cat "$dir/line")$4" "$dir/kernel.txt" >"$dir/altered.txt"
	check "$2 differs" 1 ": $5" sequence "$dir/altered.txt"
	check "$2 is in line $(cat "$dir/line")" 1 " $(cat "$dir/line")  " \
		sequence --context 0 "$dir/altered.txt"
}
golden=$(dirname "$0")
changed=kvm_tdp_mmu_spte_changed
e_tdp0=$golden/trace-E_caching1-npt1-tdp0.txt.gz
e_tdp1=$golden/trace-E_caching1-npt1-tdp1.txt.gz
e_shadow=$golden/trace-E_caching1-npt0-long64.txt.gz
altered_in "$golden/trace-F_2vcpu.txt.gz" 'the users of a root found' 'root 1 sync existing' \
	's/root 1/root 2/' roots
altered_in "$recorded/trace-V_slots-npt1-tdp0.txt.gz" 'the users of a root that is zapped' 'root 1 sync' \
	's/root 1/root 0/' roots
altered_in "$recorded/trace-A-npt1-tdp1.txt.gz" 'an spte of the TDP MMU' "$changed" 's/827$/867/' spte
altered_in "$recorded/trace-A-npt1-tdp1.txt.gz" 'what an spte was that goes' 'e67 new_spte' \
	's/e67 new_spte/c67 new_spte/' old_spte
altered_in "$recorded/trace-J-npt1-tdp1.txt.gz" 'that it goes' 'e67 new_spte 0' 's/new_spte 0/new_spte 1/' spte
altered_in "$e_tdp1" "an MMIO spte of the TDP MMU's" 'new_spte 8' 's/80000e/80001e/' spte
altered_in "$e_tdp1" 'a generation, its high bits' mark_mmio_spte 's/gen 4/gen 104/' mmio_gen
altered_in "$e_tdp0" 'a generation' mark_mmio_spte 's/gen 4/gen 6/' mmio_gen
altered_in "$e_shadow" 'an MMIO spte that is looked at' check_mmio_spte \
	's/spte 8\([0-9a-f]*\) kvm/spte 9\1 kvm/' mmio_spte
altered_in "$e_shadow" 'whether it is good' check_mmio_spte 's/valid 1/valid 0/' valid
altered_in "$recorded/trace-M_nx-npt0-long64.txt.gz" 'NX' 'spte 80000' 's/spte 80000/spte /' spte
n=$(first kvm_mmu_set_spte)
altered 'an spte that the host may not write to' "${n}s/e67 (rwxu)/c67 (rwxu)/" "15: spte"
altered 'an spte that the MMU may not make writable' "${n}s/e67 (rwxu)/a67 (rwxu)/" "15: spte"
# interrupts of the host are left out, and said
n=$(first kvm_page_fault)
{
	head -n "$((n - 2))" "$whole"
	sed -n "$((n - 1))p" "$whole" | sed 's/reason PF excp/reason interrupt/'
	sed -n "$((n - 2))p" "$whole"
	tail -n "+$((n - 1))" "$whole"
} >"$dir/timer.txt"
check 'interrupts of the host' 0 'left out: 2 lines, host interrupts' sequence "$dir/timer.txt"

# unusable files: one line that says where
unusable() { # NAME WORDS FILE
	check "$1" 3 "$2" sequence "$3"
	ok "$1: one line" one_line
}
damage() { # NAME SED-EXPRESSION WORDS
	sed "$2" "$whole" >"$dir/damaged.txt"
	unusable "$1" "$3" "$dir/damaged.txt"
}
n=$(first kvm_mmu_set_spte)
damage 'a field that is no number' "${n}s/ gfn 1 / gfn x /" "damaged.txt:$n: kvm_mmu_set_spte: the field gfn was expected at 'x"
damage 'half a line' "${n}s/ level .*//" "damaged.txt:$n: kvm_mmu_set_spte: ') level ' was expected"
damage 'more than the line should have' "${n}s/\$/ more/" "damaged.txt:$n: kvm_mmu_set_spte: the end of the line"
damage 'no line of a trace' "${n}s/.*/nonsense/" "damaged.txt:$n: no line of a trace"
damage 'lost events' "${n}s/.*/CPU:0 [LOST 35 EVENTS]/" "damaged.txt:$n: the kernel lost events"
damage 'an unknown exit reason' "$(first kvm_exit)s/PF excp/nonsense/" 'the field reason was expected'
n=$(awk '/: ENDPHASE/ { print NR; exit }' "$whole")
damage 'no ENDPHASE' "${n}d" "a phase begins, that of line 2 has no ENDPHASE"
damage 'two ENDPHASEs' "${n}p" "damaged.txt:$((n + 1)): ENDPHASE, and no phase has begun"
damage 'a torn file' "$((n - 3)),\$d" 'ends in the phase that begins in line 2'
damage 'another mark' "${n}s/ENDPHASE/BEGIN/" "damaged.txt:$n: a mark that is neither"
damage 'a phase without its key' '2s/ nr=.*//' "damaged.txt:2: 'PHASE NAME nr=N"
damage 'no such pattern' '2s/pattern=.*/pattern=zigzag/' "damaged.txt:2: no pattern 'zigzag'"
damage 'a CASE line that says nothing' '1s/ mmu=[^ ]*//' "damaged.txt:1: 'CASE name=NAME mmu=MMU"
damage 'no such MMU' '1s/mmu=npt0-long64/mmu=npt9/' 'damaged.txt:1: '
damage 'no CASE line, and a name that says nothing' 1d "neither a line 'CASE name=...'"
damage 'no such case' '1s/name=A/name=Z/' 'the model has no case Z'
damage 'PTEs that the guest has not' '1s/guest_pte=2m/guest_pte=none/' 'has 2M or 4K page tables'
: >"$dir/empty.txt"
unusable 'an empty file' 'no phase in it' "$dir/empty.txt"
head -c 20000 /dev/zero >"$dir/zero.txt"
unusable 'zeros' 'zero.txt:1: a line of text was expected' "$dir/zero.txt"
gzip -c "$whole" | head -c 3000 >"$dir/torn.txt.gz"
unusable 'a torn gzip file' 'torn.txt.gz:' "$dir/torn.txt.gz"
unusable 'no file' 'No such file' "$dir/none.txt"
unusable 'a folder' 'Is a directory' "$dir"
sed 1d "$whole" >"$dir/A64-npt0-2m.txt"
check 'the name says what it is of' 0 'case A, npt0-long64, slot of 64 pages, guest PTEs 2m' \
	sequence "$dir/A64-npt0-2m.txt"
n=$(first kvm_entry)
altered 'where the guest is entered' "${n}s/rip 0x1040/rip 0x1041/" '4: rip'
check 'an op program' 3 'the model has no case U_crossing, and no --programs DIR was given' "$kvmsim" validate --first-divergence \
	"$recorded/trace-U_crossing-npt0-long64.txt.gz"
check 'no file named' 2 'needs a trace FILE' sequence
check 'with a matrix' 2 '--kernel, --has and --json only' sequence --matrix x.csv "$whole"
check 'a context of nothing' 2 '--context is about --first-divergence' "$kvmsim" validate --context 3
check 'a context that is no number' 2 '--context' sequence --context many "$whole"

sequence "$recorded"/trace-A-*.gz >"$dir/one"
sequence "$recorded"/trace-A-*.gz >"$dir/two"
check 'the same output' 0 same sh -c "cmp '$dir/one' '$dir/two' && echo same"

the_end
