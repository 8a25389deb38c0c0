#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# KVMSIM_KERNEL with kernels that are at hand: Debian's backported one; a tree with the modules of
# patches/, which must be equal; and one with modules whose prefetch is smaller, which must be told.
#   tests/kernel/any_test.sh    Exit 0: as it should be, or skipped with the reason; 1: not
set -u
cd "$(dirname "$0")/../.." || exit 1
src=tests/kernel
cache=build/kernel
for part in modules debian patched backports; do
	# shellcheck source=/dev/null
	. "$src/$part.sh"
done

passed=0 failed=0 skipped=0
# What validate.sh says of a kernel: its exit status, and a text that must be in what it prints.
expect() { # NAME STATUS TEXT TREE PLAN
	KVMSIM_KERNEL=$4 "$src/validate.sh" "$5" >"$work/out" 2>&1
	rc=$?
	cat "$work/out"
	if grep -q '^kernel: skipped: ' "$work/out"; then
		skipped=$((skipped + 1))
	elif [ $rc -eq "$2" ] && grep -qF -e "$3" "$work/out"; then
		passed=$((passed + 1))
	else
		echo "any kernel: $1: status $rc where $2 was expected, and '$3' in the output"
		failed=$((failed + 1))
	fi
}
skip() {
	echo "any kernel: skipped: $*"
	skipped=$((skipped + 1))
}

# Debian's newer kernel, unpacked and kept.
backported() {
	tree=$cache/backports
	[ ! -d "$tree" ] || return 0
	backports_update || return 1
	image=$(backports_apt apt-cache depends linux-image-cloud-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1)
	[ -n "$image" ] || none "$backports has no linux-image-cloud-amd64" || return 1
	mkdir "$work/image" && backports_unpack "$work/image" "$image" && mv "$work/image" "$tree"
}

# Debian's image with the modules of $patched, as an unpacked package.
tree_of() { # NAME
	tree=$work/$1
	mkdir -p "$tree/boot" "$tree/lib/modules/$abi" && cp "$vmlinuz" "$tree/boot/" &&
		cp "$stock"/*.ko "$tree/lib/modules/$abi/" && cp "$patched"/*.ko "$tree/lib/modules/$abi/"
}

# The same patches with half the group of sptes that a fault fills.
mutate() {
	mkdir "$work/mutation" && cp "$src"/patches/*.patch "$work/mutation/" &&
		sed -i 's/pte_prefetch_num = PTE_PREFETCH_NUM;/pte_prefetch_num = PTE_PREFETCH_NUM \/ 2;/' \
			"$work"/mutation/*.patch &&
		! diff -q -r "$src/patches" "$work/mutation" >/dev/null || none "no prefetch to halve in $src/patches" ||
		return 1
	# shellcheck disable=SC2034 # of patched_modules()
	patches=$work/mutation kind=mutated
}

mkdir -p "$cache" && work=$(mktemp -d "$cache/any.XXXXXX") || exit 1
kbuild=''
trap 'rm -rf "$work" ${kbuild:+"$kbuild"}' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
reason=''

if backported; then
	expect backports 0 'passed: ' "$tree" "$src/any.plan"
else
	skip "backports: $reason"
fi
if debian_kernel && patched_modules; then
	tree_of patched && expect patched 0 'passed: ' "$tree" "$src/any.plan"
	if mutate && patched_modules; then
		tree_of mutated && expect mutated 1 'setup stat:pages_4k: predicted 24, measured 20' "$tree" "$src/any.plan"
	else
		skip "mutated: $reason"
	fi
else
	skip "patched: $reason"
fi
echo "any kernel: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
