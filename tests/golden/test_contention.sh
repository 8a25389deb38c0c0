#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Who waits for mmu_lock: the model's table against perf's, of two vCPUs that write while their log is
# got and cleared, on this machine's KVM. How long each waits depends on what else runs here; who does,
# for what kind of lock, and who more often, does not.
. "$(dirname "$0")/lib.sh"

skip() {
	echo "contention: skipped: a recording: $1"
	skipped=$((skipped + 1))
	the_end
	exit
}
printf '[scenario]\nworkload = migration\nslots = a:0:16000\nvcpus = 2\nrounds = 20\n' >"$dir/two.ini"
ok 'predicted' run 0 replay --scenario "$dir/two.ini" --dirty manual,chunk=64 --profile kvm-pvm \
	--kernel 6.18-shadow --long-mode --running --contention --json
cp "$dir/out" "$dir/model.json"

[ -w /dev/kvm ] || skip '/dev/kvm is not there or may not be opened'
[ -d /sys/module/kvm_pvm ] || skip 'no kvm_pvm here: with nested tables faults wait otherwise'
command -v perf >/dev/null 2>&1 || skip 'there is no perf'
[ "$(nproc)" -ge 2 ] || skip 'two vCPUs need two CPUs'
timeout 60 perf lock record -o "$dir/perf.data" -- "$kvmsim" record kvm --scenario "$dir/two.ini" \
	--warm --every 500 --protocol manual --chunk 64 >"$dir/out" 2>"$dir/err" ||
	skip "$(cat "$dir/err" "$dir/out" | head -n 1)"
timeout 60 perf lock contention -i "$dir/perf.data" >"$dir/table.txt" 2>&1
grep -q ' rwlock:' "$dir/table.txt" || skip 'nobody waited for an rwlock'
ok 'the table is read' run 0 info --json "$dir/table.txt"
ok 'as the model says' python3 - "$dir/out" "$dir/model.json" <<'EOF'
import json, sys
real = [r for r in json.load(open(sys.argv[1]))['locks'] if r['type'].startswith('rwlock')]
model = [r for r in json.load(open(sys.argv[2]))['contention'] if r['lock'] == 'mmu_lock']
# What the compiler put into its callers has their names.
def who(name):
    return 'fault' if 'fault' in name else 'ioctl'
def waits(rows, name):
    sums = {}
    for r in rows:
        key = r['type'], who(r[name])
        sums[key] = sums.get(key, 0) + r['contended']
    return sums
r, m = waits(real, 'name'), waits(model, 'caller')
print(r, m)
# Shadow pages: all for writing. Beside two vCPUs a collection waits less often than they do.
assert set(r) <= set(m) == {('rwlock:W', 'fault'), ('rwlock:W', 'ioctl')}
assert m['rwlock:W', 'fault'] > m['rwlock:W', 'ioctl']
assert sum(r.values()) < 100 or r['rwlock:W', 'fault'] > r.get(('rwlock:W', 'ioctl'), 0)
EOF
the_end
