#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# kvmsim record qemu: on a QEMU that only plays lines, for all that can go wrong; and where QEMU and
# the guest are there (kvmsim record qemu --build), on the real one, with pages that are known.
#   test_record_qemu.sh BUILDDIR
# shellcheck source=tests/golden/lib.sh
. "$(dirname "$0")/lib.sh"
kvmsim=$(realpath "$kvmsim")
users_cache=${XDG_CACHE_HOME-}
XDG_CACHE_HOME=$dir/cache
export XDG_CACHE_HOME
out=$dir/x.kvt

record() { # CODE [OPTION]...: with the fake QEMU and guest
	want_code=$1
	shift
	run "$want_code" record qemu --qemu "$dir/qemu" --image "$dir/guest" -o "$out" "$@"
}
nothing_left() { # of a recording that failed
	[ -z "$(find "$dir" -name 'x.*' ! -name x.txt; find "$dir/cache" -name 'run.*')" ]
}

# ---- usage ----
bad 'no scenario' 2 record qemu -o "$out"
bad 'no output' 2 record qemu --scenario find
bad 'an unknown scenario' 2 record qemu --scenario tbench -o "$out"
bad 'an unknown option' 2 record qemu --scenario find -o "$out" --frob
bad 'no value' 2 record qemu --scenario
bad 'an argument' 2 record qemu --scenario find -o "$out" more
bad 'a depth that there is not' 2 record qemu --scenario x11perf -o "$out" --depth 20
bad 'too much memory' 2 record qemu --scenario find -o "$out" --memory 4096
bad 'a short epoch' 2 record qemu --scenario find -o "$out" --epoch 999
bad 'a guest that is built and to be built' 2 record qemu --build --image "$dir"
for tests in '' cold,hot 'cold,' ',cold' coldwarm; do
	bad "find, tests '$tests'" 2 record qemu --scenario find -o "$out" --tests "$tests"
done
for tests in 'rect100 quiet' 'rect100,;' -rect100 nonsense rect10000 rect "$(yes rect10 | head -n 64 | paste -sd,)"; do
	bad "x11perf, tests '$tests'" 2 record qemu --scenario x11perf -o "$out" --tests "$tests"
done
for tests in 0 1,0 10x 1000001 -1; do
	bad "tcp_rr, tests '$tests'" 2 record qemu --scenario tcp_rr -o "$out" --tests "$tests"
done
for tests in '' 2 O4 O -O2 'O2,' Ofast; do
	bad "compile, tests '$tests'" 2 record qemu --scenario compile -o "$out" --tests "$tests"
done
for tests in 0 65 4x '4,'; do
	bad "dbench, tests '$tests'" 2 record qemu --scenario dbench -o "$out" --tests "$tests"
done
bad 'an unknown network device' 2 record qemu --scenario tcp_rr -o "$out" --nic ne2000
bad 'a network device for find' 2 record qemu --scenario find -o "$out" --nic virtio
bad 'no page' 2 record qemu --scenario pages -o "$out" --tests 0

# ---- what is missing ----
bad 'no QEMU' 3 record qemu --scenario find -o "$out" --qemu "$dir/none" --image "$dir/none"
ok 'no QEMU: the package and how' says '(qemu-system-x86).*scripts/setup.sh guest' err
# Programs that building needs, by a PATH that has none of them.
mkdir "$dir/few"
for tool in sh mmdebstrap; do
	printf '#!/bin/sh\necho "E: no network here" >&2\nexit 1\n' >"$dir/few/$tool"
	chmod +x "$dir/few/$tool"
done
PATH=$dir/few run 3 record qemu --build
ok 'nothing to build with' says 'missing here: .*xz (xz-utils).*scripts/setup.sh guest' err
ok 'nothing to build with: one line' one_line
if command -v cpio >/dev/null && command -v xz >/dev/null && command -v mke2fs >/dev/null; then
	rm "$dir/few/sh"
	not_built() { [ -z "$(find "$dir/cache" -name 'run.*' -o -name 'guest-*')" ]; }
	build() { # CODE OPTION...: with no guest in the cache, and a mmdebstrap that fails
		PATH=$dir/few:$PATH run "$@"
	}
	alone='unshare --mount --pid --fork --kill-child'
	[ "$(id -u)" -eq 0 ] || alone="$alone --map-root-user --map-auto"
	can=1
	$alone true 2>/dev/null || can=
	if [ -n "$can" ] || [ "$(id -u)" -eq 0 ]; then
		build 3 record qemu --build
		ok 'building fails' says 'building the guest failed: no network here$' err
	else
		build 3 record qemu --build
		ok 'a user without a range of ids' says 'no namespace for building: .*/etc/subuid' err
	fi
	ok 'building fails: nothing left' not_built
	build 4 record qemu --scenario find -o "$dir/none/x.kvt"
	ok 'no place for the trace: before building' one_line
	echo old >"$out"
	build 4 record qemu --scenario find -o "$out" --text "$dir/none/x.txt"
	ok 'no place for the text: before building' one_line
	ok 'no place for the text: says so' says 'none/x.txt: cannot create' err
	ok 'an older trace stays' [ "$(cat "$out")" = old ]
	rm "$out"
	build 4 record qemu --scenario find -o "$dir"
	ok 'the trace is a folder: before building' one_line

	# One that mounts, starts a session of its own, won't end, and leaves its folder.
	cat >"$dir/few/mmdebstrap" <<END
#!/bin/sh
trap '' INT TERM HUP
root=\$(mktemp -d)
mkdir "\$root/sys"
mount -t tmpfs none "\$root/sys"
chown 1:1 "\$root"
setsid sh -c 'trap "" INT TERM HUP; echo "\$0" >"$dir/root"; while :; do sleep 1; done' "\$root" &
wait
END
	for signal in INT TERM; do
		if [ -z "$can" ]; then
			echo "record_qemu: building ends, SIG$signal: skipped: no namespaces for this user"
			skipped=$((skipped + 1))
			continue
		fi
		rm -f "$dir/root"
		PATH=$dir/few:$PATH env --default-signal=INT "$kvmsim" record qemu --build >"$dir/out" 2>"$dir/err" &
		pid=$!
		written "$dir/root"
		kill -$signal $pid
		wait $pid
		ok "building ends, SIG$signal: status" [ $? -eq 130 ]
		ok "building ends, SIG$signal: says so" says 'interrupted; the guest was not written$' err
		ok "building ends, SIG$signal: two lines" [ "$(wc -l <"$dir/err")" -eq 2 ]
		root=$(cat "$dir/root")
		ok "building ends, SIG$signal: in the cache" [ "${root#"$dir"/cache/}" != "$root" ]
		ok "building ends, SIG$signal: nothing left" not_built
		ok "building ends, SIG$signal: no folder left" [ ! -e "$root" ]
		ok "building ends, SIG$signal: no mount left" [ -z "$(grep -F "$root" /proc/mounts)" ]
		ok "building ends, SIG$signal: no process left" \
			[ -z "$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -F -f "$dir/root")" ]
	done
fi
if ! command -v cpio >/dev/null; then
	echo "record_qemu: recordings: skipped: no cpio here; scripts/setup.sh guest installs it"
	skipped=$((skipped + 1))
	the_end
	exit
fi

# A QEMU that knows only its version and how to write $dir/lines.
cat >"$dir/qemu" <<'END'
#!/bin/sh
dir=$(dirname "$0")
if [ "$1" = --version ]; then
	echo "$(cat "$dir/version" 2>/dev/null || echo 'QEMU emulator version 7.2.22 (Debian)')"
	exit 0
fi
echo $$ >"$dir/pid"
for a; do echo "$a"; done >"$dir/args"
cat "$dir/lines" >&3
[ ! -f "$dir/hang" ] || exec sleep 1000
[ ! -f "$dir/complain" ] || { cat "$dir/complain" >&2; exit 1; }
END
chmod +x "$dir/qemu"
bad 'no guest' 3 record qemu --scenario find -o "$out" --qemu "$dir/qemu" --image "$dir/none"
mkdir -p "$dir/guest/modules"
echo 'Debian bookworm, linux-image-6.1.0-1-amd64, a root of 10 inodes' >"$dir/guest/about"
for name in virtio_pci virtio_blk crc32c_generic ext4 e1000 virtio_net; do
	printf 'depends=\0' >"$dir/guest/modules/$name.ko"
done
touch "$dir/guest/busybox" "$dir/guest/vmlinuz" "$dir/guest/root.img"
cat >"$dir/lines" <<'END'
# probe epoch 30000000 ram 262144
# ram 10 10
# vram 13d080 fd000 4096
# guest kernel 6.1.0-1-amd64
# guest screen 1024x768, depth 16
# guest phase 1 rect100
100 0 M 1 0
110 0 S 5
120 0 V fd000
# epoch 1 1 1 full
30000100 0 S 5
# epoch 1 1 0 cut
40000000 0 M 0 0
# guest done
# end 3 7
END
cp "$dir/lines" "$dir/all"

# ---- a recording ----
ok 'a recording' record 0 --scenario x11perf --tests rect100 --text "$dir/x.txt"
ok 'nothing on stderr' quiet
ok 'the text is what the plugin wrote' cmp -s "$dir/all" "$dir/x.txt"
grep -v '^#' "$dir/all" >"$dir/i.tr"
ok 'an import of the text' run 0 import -o "$dir/i.kvt" "$dir/i.tr"
"$kvmsim" info --epochs "$out" | sed '1,/^Epoch/d' >"$dir/recorded"
"$kvmsim" info --epochs "$dir/i.kvt" | sed '1,/^Epoch/d' >"$dir/imported"
ok 'the same epochs' [ -s "$dir/recorded" ]
ok 'the same epochs as an import' cmp -s "$dir/recorded" "$dir/imported"
ok 'info' run 0 info "$out"
ok 'info: the guest' says 'Linux 6.1.0-1-amd64 (Debian bookworm, linux-image-6.1.0-1-amd64' out
ok 'info: how' says 'QEMU 7.2.22 TCG, plugin interface 1' out
ok 'info: what' says 'x11perf: rect100' out
cp "$dir/x.md" "$dir/out"
ok 'the note: epochs' says '1 phase, 2 epochs of 30000000 guest instructions, 3 first stores' out
ok 'the note: the phase' says '^| 1 | rect100 | 39 | 2, 1 | 1 / 1 / 1 | 1 / 1 / 1 |$' out
ok 'the note: what was left out' says '7 first stores went to memory of neither slot' out
cp "$dir/args" "$dir/out"
ok 'QEMU: the plugin' says '/plugin1.so,fd=3,epoch=30000000,ram=262144$' out
ok 'QEMU: no network' [ -z "$(grep -e '-net' "$dir/args")" ]
ok 'the folder of the run is gone' [ -z "$(find "$dir/cache" -name 'run.*')" ]
rm "$out" "$dir/x.md"

# ---- transactions ----
cat >"$dir/lines" <<'END'
# probe epoch 30000000 ram 262144
# ram 10 10
# guest kernel 6.1.0-1-amd64
# guest phase 1 2
100 0 M 1 0
110 0 S 5
120 0 w febc3 e1000-mmio+818
130 0 r febc0 e1000-mmio+c0
140 0 r febc0 e1000-mmio+c0
150 0 p ffffffff81000000
# epoch 1 1 0 cut
400 0 M 0 0
# guest done
# accesses 4 3
# end 1 0
END
ok 'transactions' record 0 --scenario tcp_rr --tests 2
cp "$dir/args" "$dir/out"
ok 'QEMU: an e1000' says '^e1000,netdev=net,romfile=$' out
ok 'QEMU: no way out' says '^user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:7-cmd:cat$' out
ok 'QEMU: devices' says '/plugin1.so,fd=3,epoch=30000000,ram=262144,devices=1$' out
ok 'QEMU: no icount' [ -z "$(grep icount "$dir/args")" ]
cp "$dir/x.md" "$dir/out"
ok 'the note: a register' says '^| read | febc0 e1000-mmio+c0 | 2 | 1.000 |$' out
ok 'the note: port I/O' says '^| port | ffffffff81000000 | 1 | 0.500 |$' out
ok 'the note: the APIC' says '^3 accesses of the local APIC (1.500 per transaction)' out
ok 'transactions: info' run 0 info "$out" --per 2
ok 'info: a register' says '^0xfebc00c0  *2  *1.000$' out
ok 'info: all' says '^all  *2  *1  *1  *2.000$' out
ok 'virtio-legacy' record 0 --scenario tcp_rr --tests 2 --nic virtio-legacy
cp "$dir/args" "$dir/out"
ok 'QEMU: virtio-legacy' says '^virtio-net-pci,disable-modern=on,disable-legacy=off,vectors=0,netdev' out
rm "$out" "$dir/x.md"

# ---- locks: a table, whose numbers are reckoned by hand ----
cat >"$dir/lines" <<'END'
# probe epoch 30000000 ram 262144
# ram 10 10
# guest kernel 6.1.0-1-amd64
# guest symbol ffffffff81000000 alloc_fd
# guest symbol ffffffff81000100 dput
# guest symbol ffffffff81000200 _raw_spin_lock
# guest symbol ffffffff81000240 _raw_spin_trylock
# guest symbol ffffffff81000280 _raw_spin_lock_irqsave
# guest symbol ffffffff82000000 a_lock
# guest phase 1 4
100 0 M 1 0
10 0 L ffffffff82000000 ffffffff81000010 ffffffff81000200 0 10 5 0 0
20 1 L ffffffff82000000 ffffffff81000020 ffffffff81000280 0 20 7 300 0
40 1 L ffff888000001000 ffffffff81000150 ffffffff81000240 1 4 3 0 0
60 0 L ffffffff82000000 ffffffff81000110 ffffffff81000200 0 45 9 0 0
70 0 L ffff888000002000 0 ffffffff81000280 0 1 2 0 1
# vcpu 1 0 1500 0 100
# vcpu 1 1 500 300 0
# epoch 1 0 0 cut
400 0 M 0 0
# guest done
# locks 5 1 2
# end 0 0
END
cp "$dir/lines" "$dir/locks"
table=$dir/x.csv
locks() { # CODE
	run "$1" record qemu --qemu "$dir/qemu" --image "$dir/guest" -o "$table" --scenario dbench
}
row() { # ROW SYMBOL CALLER COLUMN...: those columns of that row
	python3 - "$table" "$@" <<'END'
import csv, sys
table, *key = sys.argv[1:5]
for row in csv.DictReader(open(table)):
	if [row["row"], row["symbol"], row["caller"]] == key:
		print(" ".join(row[column] for column in sys.argv[5:]))
END
}
counts='objects vcpus taken per_million moved nested irq bh tried waited'
holds='hold_mean hold_min hold_p50 hold_max'
ok 'locks' locks 0
cp "$dir/args" "$dir/out"
ok 'QEMU: locks' says '/plugin1.so,fd=3,epoch=30000000,ram=262144,locks=1$' out
ok 'QEMU: vCPUs by turns' says '^tcg,thread=single$' out
ok 'QEMU: four of them' says '^4$' out
ok 'locks: a guest that does not know it is one' says '^max,la57=off,-hypervisor$' out
# 4 locks in 2,000 instructions of work
# shellcheck disable=SC2086 # lists of words
{
	ok 'locks: all' [ "$(row all '' '' $counts)" = '2 2 4 2000.000 2 1 1 0 1 1' ]
	ok 'locks: one' [ "$(row lock a_lock alloc_fd $counts)" = '1 2 3 1500.000 2 0 1 0 0 1' ]
	ok 'locks: its holds' [ "$(row lock a_lock alloc_fd $holds)" = '7.0 5 7 9' ]
	ok 'locks: its gaps' [ "$(row lock a_lock alloc_fd gap_mean gap_p50 inner_gap_mean)" = '25.0 20 ' ]
	ok 'locks: the other' [ "$(row lock '' dput taken tried inner_gap_p50 gap_p50)" = '1 1 4 ' ]
	ok 'locks: a caller' [ "$(row caller '' dput $counts)" = '2 2 2 1000.000 1 1 0 0 1 0' ]
	ok 'locks: in timer interrupts' [ "$(row timer '' '' $counts)" = '1 1 1 500.000 0 0 1 0 0 0' ]
	ok 'locks: nobody knows by whom' [ "$(row timer_caller '' '' $counts)" = '1 1 1 500.000 0 0 1 0 0 0' ]
}
cp "$dir/x.md" "$dir/out"
ok 'the note: a phase' says '^| 1 | 4 | 0.0 | 0.000 | 0.0 | 4 | 2000.0 | 1 |$' out
ok 'the note: what was left out' says '1 locks that were held .* 2 that were given back' out
rm "$table" "$dir/x.md"
sed 's/^# locks 5/# locks 6/' "$dir/locks" >"$dir/lines"
ok 'locks: one is lost' locks 3
ok 'locks: one is lost: says so' says 'line 22 is strange: # locks 6 1 2' err
sed '/^# locks/d' "$dir/locks" >"$dir/lines"
ok 'locks: not counted' locks 3
ok 'locks: not counted: says so' says 'the plugin did not count the locks' err
sed 's/ 45 9 0 0$/ 45 9 0 2/' "$dir/locks" >"$dir/lines"
ok 'locks: a strange line' locks 3
ok 'locks: nothing left' nothing_left
cp "$dir/all" "$dir/lines"

echo 'QEMU emulator version 10.0.2 (Debian)' >"$dir/version"
ok 'QEMU 10' record 0 --scenario find --epoch 30000000
cp "$dir/args" "$dir/out"
ok 'QEMU 10: its plugin' says '/plugin3.so,' out
rm "$out" "$dir/x.md"
for version in 'QEMU emulator version 5.2.0' 'QEMU emulator version 9.0.1' 'GNU bash, version 5.2.15'; do
	echo "$version" >"$dir/version"
	ok "$version: refused" record 3 --scenario find
	ok "$version: one line" one_line
done
rm "$dir/version"

# ---- what goes wrong ----
fails() { # NAME WORDS: the recording is of no use, and says why in one line
	ok "$1" record 3 --scenario find
	ok "$1: says why" says "$2" err
	ok "$1: one line" one_line
	ok "$1: nothing left" nothing_left
}
sed '$d' "$dir/all" >"$dir/lines"
fails 'no end' 'QEMU ended in the middle of the recording, after line 14'
grep -v done "$dir/all" >"$dir/lines"
fails 'the guest was not done' 'the guest stopped before it was done'
grep -v 'V fd000' "$dir/all" >"$dir/lines"
fails 'a line is lost' 'counted 1 pages of RAM and 1 of video RAM in this epoch, but 1 and 0 lines'
sed -n '1,4p' "$dir/all" >"$dir/lines"
echo '# guest fail the X server does not start' >>"$dir/lines"
fails 'the guest gives up' 'the guest gave up: the X server does not start'
: >"$dir/lines"
echo 'qemu: could not load plugin' >"$dir/complain"
fails 'QEMU does not start' 'QEMU: qemu: could not load plugin'
rm "$dir/complain"
sed 's/^110 0 S 5/110 0 S zz/' "$dir/all" >"$dir/lines"
ok 'a damaged line' record 0 --scenario find
ok 'a damaged line: warned' says "warning: .*1 of the recorder's lines were left out" err
echo old >"$out"
sed '$d' "$dir/all" >"$dir/lines"
ok 'an older trace' record 3 --scenario find
ok 'an older trace stays' [ "$(cat "$out")" = old ]
rm "$out" "$dir/x.md"

cp "$dir/all" "$dir/lines"
ok 'no place for the trace' run 4 record qemu --qemu "$dir/qemu" --image "$dir/guest" --scenario find \
	-o "$dir/none/x.kvt"
ok 'no place: one line' one_line
if [ -c /dev/full ]; then
	ok 'a full disk' run 4 record qemu --qemu "$dir/qemu" --image "$dir/guest" --scenario find \
		-o /dev/full
	ok 'a full disk: text' record 4 --scenario find --text /dev/full
	ok 'a full disk: nothing left' nothing_left
fi
mv "$dir/guest/modules/ext4.ko" "$dir/guest/modules/ext5.ko"
fails 'a module is missing' 'making the initrd failed: guest: the kernel has no module ext4'
mv "$dir/guest/modules/ext5.ko" "$dir/guest/modules/ext4.ko"

# ---- it ends ----
gone() { ! kill -0 "$(cat "$dir/pid")" 2>/dev/null; }
sed -n '1,9p' "$dir/all" >"$dir/lines"
touch "$dir/hang"
ok 'the deadline' record 3 --scenario find --timeout 1
ok 'the deadline: says so' says 'not done in time' err
ok 'the deadline: QEMU is gone' gone
ok 'the deadline: nothing left' nothing_left
for signal in INT TERM; do
	rm -f "$dir/pid"
	# a background job of a shell ignores SIGINT unless it is told otherwise
	env --default-signal=INT "$kvmsim" record qemu --qemu "$dir/qemu" --image "$dir/guest" -o "$out" \
		--scenario find >"$dir/out" 2>"$dir/err" &
	pid=$!
	written "$dir/pid"
	kill -$signal $pid
	wait $pid
	ok "SIG$signal: status" [ $? -eq 130 ]
	ok "SIG$signal: one line" one_line
	ok "SIG$signal: QEMU is gone" gone
	ok "SIG$signal: nothing left" nothing_left
done
# timeout(1) sends two: the second must not end it before QEMU has ended, which takes its time
sed -i "2i trap '' TERM" "$dir/qemu"
rm -f "$dir/pid"
"$kvmsim" record qemu --qemu "$dir/qemu" --image "$dir/guest" -o "$out" --scenario find >"$dir/out" \
	2>"$dir/err" &
pid=$!
written "$dir/pid"
kill -TERM $pid
sleep 0.3
kill -TERM $pid
wait $pid
ok 'two signals: status' [ $? -eq 130 ]
ok 'two signals: one line' one_line
ok 'two signals: QEMU is gone' gone
ok 'two signals: nothing left' nothing_left
rm "$dir/hang"

# ---- the real one ----
if [ -n "$users_cache" ]; then
	XDG_CACHE_HOME=$users_cache
else
	unset XDG_CACHE_HOME
fi
real=$(find "${XDG_CACHE_HOME:-$HOME/.cache}/kvmsim/qemu" -path '*/guest-*/about' 2>/dev/null | head -n 1)
skip() {
	echo "record_qemu: a real guest: skipped: $*"
	skipped=$((skipped + 1))
	the_end
	exit
}
case $kvmsim in */debug/*) skip 'it runs in the optimised builds' ;; esac
command -v qemu-system-x86_64 >/dev/null || skip 'no QEMU here; scripts/setup.sh guest installs it'
[ -n "$real" ] || skip 'the guest is not built; kvmsim record qemu --build builds it'

# 40 pages of the guest's process, which it named before, and every third page of video RAM.
ok 'pages' run 0 record qemu --scenario pages --tests 40 --image "${real%/about}" -o "$out" \
	--text "$dir/x.txt"
sed -n 's/^# guest page //p' "$dir/x.txt" | sort >"$dir/named"
ok 'pages: named' [ "$(sort -u "$dir/named" | wc -l)" -eq 40 ]
stored() { # PHASE KIND: pages, each as often as there are lines
	awk -v phase="$1" -v kind="$2" '$3 == "M" { now = $4 } now == phase && $3 == kind { print $4 }' \
		"$dir/x.txt" | sort
}
vram=$(awk '$2 == "vram" { print $4 }' "$dir/x.txt")
i=0
while [ $i -lt 40 ]; do
	printf '%x\n' $((0x$vram + 3 * i))
	i=$((i + 1))
done | sort >"$dir/vram"
for phase in 1 3; do
	stored $phase V >"$dir/out"
	ok "pages: phase $phase: video RAM" cmp -s "$dir/vram" "$dir/out"
	# one line each, beside the pages of the guest's kernel
	stored $phase S | grep -xF -f "$dir/named" >"$dir/out"
	ok "pages: phase $phase: RAM" cmp -s "$dir/named" "$dir/out"
done
ok 'pages: phase 2: no video RAM' [ -z "$(stored 2 V)" ]
ok 'pages: phase 2: none of them' [ -z "$(stored 2 S | grep -xF -f "$dir/named")" ]

the_end
