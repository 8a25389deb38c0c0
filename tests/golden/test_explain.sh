#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim explain, against the manuals' tables: Intel volume 3, table 28-7 (EPT), figure 4-12 (#PF),
# table 28-5 (I/O), 28-3 (CR), appendix C; AMD volume 2, 15.25.6 (NPF), 15.10.2 (IOIO), appendix C.
#   tests/golden/test_explain.sh BUILDDIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# ARGUMENT... | WORDS: the output, blanks squeezed, has each line of standard input
says() {
	run 0 explain "$@" || return 1
	tr -s ' \n' ' ' <"$dir/out" >"$dir/flat"
	while read -r words; do
		grep -qF -- "$words" "$dir/flat" || { echo "lacks: $words" >>"$dir/out"; return 1; }
	done
}

ok 'EPT: nothing mapped' says error_code 0x181 <<'W'
exit qualification of an EPT violation
0 data read 0x1
3 readable 0x0
8 final 0x1
Nothing was mapped there yet.
W
ok 'EPT: a logged page' says error_code 18a <<'W'
1 data write 0x1
3 readable 0x1
4 writable 0x0
A store to a page that is mapped read-only.
fast_page_fault()
W
ok 'EPT: A and D of the guest'\''s tables' says error_code 0x8a --ept <<'W'
8 final 0x0
had to store (A or D bits)
W
ok 'NPF: by its high bits' says error_code 0x100000006 <<'W'
EXITINFO1 of a nested page fault
1 W/R 0x1 a store
32 final 0x1
Nothing was mapped there yet.
W
ok 'NPF: the guest'\''s tables' says error_code 0x200000007 <<'W'
33 table 0x1
mapped read-only
W
ok '#PF: an MMIO spte' says error_code 0xd <<'W'
page-fault error code
3 RSVD 0x1
handle_mmio_page_fault()
W
ok '#PF: forced' says error_code 0x181 --pf <<'W'
7 ? 0x1 no such bit in the manual
8 ? 0x1 no such bit in the manual
W
ok '#PF: a fetch is no store' says error_code 0x12 --pf <<'W'
Impossible: I/D with W/R: a fetch is no store.
W
ok 'exit: by number, IN from the serial port' says exit 30 0x3fd0008 <<'W'
exit IO_INSTRUCTION: VMX exit reason 30
31:16 port 0x3fd
3 direction 0x1 IN
2:0 size 0x0 one byte
W
ok 'exit: SVM, OUT of one byte' says exit IOIO 0x3f80210 <<'W'
SVM exit code 0x7b
0 TYPE 0x0 OUT
31:16 PORT 0x3f8
one byte
W
ok 'exit: MOV to CR3 from RCX' says exit CR_ACCESS 0x103 <<'W'
3:0 register 0x3
5:4 access 0x0 MOV to CR
11:8 operand 0x1
W
ok 'exit: a nested fault with its address' says exit EXIT_NPF 100000007 7d82008 <<'W'
SVM exit code 0x400
gpa 0x7d82008
P 0x1
W
ok 'exit: 0x400 is SVM'\''s' says exit 0x400 <<'W'
exit NPF
W
ok 'exit: on both' says exit hlt <<'W'
VMX exit reason 12; SVM exit code 0x78
W
ok 'error_code: --vmx is EPT' says error_code 0x1 --vmx <<'W'
error_code 0x1: exit qualification of an EPT violation
W
ok 'error_code: --svm is NPF' says error_code 0x1 --svm <<'W'
error_code 0x1: EXITINFO1 of a nested page fault
Impossible: neither final nor table
W
ok 'exit: not modelled' says exit HLT <<'W'
kvmsim: not modelled
W
ok 'exit: modelled' says exit PML_FULL <<'W'
VMX exit reason 62
kvmsim: dirty policy pml
W
ok 'exit: a failed entry' says exit 0x80000021 <<'W'
exit INVALID_STATE: VMX exit reason 33
31 entry failure 0x1
W
ok 'exit: a number above SVM'\''s first thousand' says exit VMGEXIT_MMIO_READ <<'W'
SVM exit code 0x80000001
W
# spte.h: MMU-present 11, host-writable 57 and MMU-writable 58 in EPT, 9 and 10 elsewhere
ok 'spte: a logged page of EPT' says spte 0x6000000012ab975 <<'W'
an EPT entry
0 R 0x1
5:3 memory type 0x6 write-back
51:12 frame 0x12ab
58 MMU-writable 0x1
whose W was taken
W
ok 'spte: the same of the common format' says spte 0x12abe25 --npf <<'W'
0 P 0x1
5 A 0x1
10 MMU-writable 0x1
whose W was taken
W
ok 'spte: 5a0' says spte 5a0 <<'W'
REMOVED_SPTE
W
reasons=$(dirname "$0")/../../traces/host/exit_reasons.def
all_exits() {
	sed -n 's/^[VS][MV][XM](\([0-9a-fx]*\), .*/\1/p' "$reasons" >"$dir/exits"
	[ "$(wc -l <"$dir/exits")" -gt 150 ] || return 1
	while read -r n; do
		case $n in 0x*) kind=--svm ;; *) kind=--vmx ;; esac
		"$kvmsim" explain exit "$n" $kind >"$dir/out" 2>&1 || return 1
		grep -q 'kvmsim:' "$dir/out" || return 1
	done <"$dir/exits"
}
ok 'every exit has words' all_exits
ok 'event without its head' says 'kvm_exit: reason EPT_VIOLATION rip 0x40a1c8 info 18a 0' <<'W'
VMX exit reason 48
W
ok 'event with its system' says kvm:kvm_entry: vcpu 3 <<'W'
vcpu 3 number of the vCPU
W
ok 'event: a lock' says 'contention_begin: 0xffff9d81 (flags=READ|SPIN)' <<'W'
spinning, to read
W
ok 'event: sptes' says 'kvm_tdp_mmu_spte_changed: as id 0 gfn 12ab level 1 old_spte 6000000012abb77 new_spte 6000000012ab975' <<'W'
old 0x6000000012abb77: an EPT entry
9 D 0x1 dirty
Maps a page, writable.
new 0x6000000012ab975: an EPT entry
whose W was taken
W
ok 'event: kvm_exit' says 'v-7 [001] 9.000001: kvm_exit: reason EPT_VIOLATION rip 0x40a1c8 info 18a 0' <<'W'
rip 0x40a1c8
VMX exit reason 48
4 writable 0x0
W
ok 'event: kvm_page_fault' says 'v-7 [001] 9.000001: kvm_page_fault: address 3fa12b8000 error_code 181' <<'W'
address 0x3fa12b8000
3 readable 0x0
W
printf '%s\n' 'v-7 [001] 9.000001: kvm_entry: vcpu 5' 'prose' \
	'v-7 [001] 9.000002: kvm_userspace_exit: reason KVM_EXIT_MMIO (6)' >"$dir/in"
"$kvmsim" explain - <"$dir/in" >"$dir/out" 2>"$dir/err"
ok 'events of standard input' sh -c 'grep -q "vcpu *5 " "$1" && grep -q KVM_EXIT_MMIO "$1"' - "$dir/out"
printf '%s\n' 'v-7 [001] 9.000001: kvm_exit: reason npf rip 0x1 info 100000007 7d82008' \
	'v-8 [000] 9.000002: kvm_page_fault: address 7d82008 error_code 7' \
	'v-7 [001] 9.000003: kvm_page_fault: address 7d82008 error_code 7' >"$dir/in"
"$kvmsim" explain --json - <"$dir/in" >"$dir/out" 2>"$dir/err"
ok 'JSON of events; a code is known by the same thread'\''s exit' python3 -c '
import json, sys
o = json.load(open(sys.argv[1]))
assert [e["line"] for e in o] == [1, 2, 3], o
assert [e["error_code"]["value"] for e in o[1:]] == ["0x7", "0x100000007"], o
text = json.dumps(o, indent=2) + "\n"
assert open(sys.argv[1]).read() == text, "looks otherwise than the other verbs JSON"
' "$dir/out"
ok 'JSON' sh -c '"$1" explain error_code 0x181 --json | python3 -c "
import json, sys
o = json.load(sys.stdin)
assert o[\"value\"] == \"0x181\", o
assert [f[\"bits\"] for f in o[\"fields\"] if f[\"value\"] == \"0x1\"] == [\"0\", \"7\", \"8\"], o"' - "$kvmsim"

ok 'no such exit' run 2 explain exit NO_SUCH
ok 'no such exit of that kind' run 2 explain exit NPF --vmx
ok 'no number' run 2 explain error_code xyz
ok 'too large' run 2 explain error_code 0x12345678901234567
ok 'nothing' run 2 explain
ok 'no spte' run 2 explain spte 0xg
ok 'forms of an exit' run 2 explain exit HLT --ept
ok 'form and kind' run 2 explain error_code 1 --vmx --npf
ok 'two forms' run 2 explain error_code 1 --pf --npf
ok 'no event' run 3 explain 'just some prose'
if [ -w /dev/full ]; then
	ok 'output that cannot be written' sh -c 'echo "v-7 [001] 9.000001: kvm_entry: vcpu 5" |
		"$1" explain - >/dev/full 2>/dev/null; [ $? -eq 4 ]' - "$kvmsim"
fi
ok 'nothing on standard input' sh -c '"$1" explain - </dev/null 2>/dev/null; [ $? -eq 3 ]' - "$kvmsim"
# Every event by its name alone, and lines with the word in front.
for e in $(sed -nE 's/^HOST_(EVENT|REST)\((.*)\)$/\2/p' "$(dirname "$0")/../../traces/host/events.def"); do
	ok "event $e" run 0 explain event "$e"
	ok "event $e: words" [ "$(wc -l <"$dir/out")" -gt 1 ]
done
ok 'event: a line' says event 'kvm_page_fault: vcpu 0 rip 0x4 address 0x5000 error_code 0x18a' <<'W'
kvm_page_fault
A store to a page that is mapped read-only.
W
bad 'event: of no kernel' 3 explain event kvm_wonder
bad 'event: none' 2 explain event
the_end
