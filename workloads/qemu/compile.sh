# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# gcc compiles six small libraries of C, each a file of its own; a phase is all of them at one level of
# optimisation.
mkdir /tmp/compile
cd /tmp/compile || give_up 'no place for what is compiled'
compile() { # LEVEL
	for unit in c_lexer ds dxt hexwave perlin rect_pack; do
		define=STB_$(echo $unit | tr a-z A-Z)_IMPLEMENTATION
		gcc "-$1" -w -D"$define" -x c -c /usr/include/stb/stb_$unit.h -o $unit.o || return 1
	done
}
k=1
for test in $(parameter tests | tr , ' '); do
	phase $k "$test" compile "$test"
	k=$((k + 1))
done
