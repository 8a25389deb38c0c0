# shellcheck shell=sh
# SPDX-License-Identifier: GPL-3.0-or-later
# x11perf draws, one of its tests per phase, on an X server without a copy of the frame buffer in
# RAM: what it draws goes to video RAM.
tell_vram
driver=modesetting
[ "$(parameter depth)" = 24 ] || driver=fbdev
cat >/run/xorg.conf <<END
Section "ServerFlags"
 Option "AutoAddDevices" "false"
 Option "AutoAddGPU" "false"
EndSection
Section "Device"
 Identifier "device"
 Driver "$driver"
 Option "AccelMethod" "none"
 Option "ShadowFB" "off"
EndSection
Section "Monitor"
 Identifier "monitor"
EndSection
Section "Screen"
 Identifier "screen"
 Device "device"
 Monitor "monitor"
 DefaultDepth $(parameter depth)
 SubSection "Display"
  Depth $(parameter depth)
  Modes "1024x768"
 EndSubSection
EndSection
END
export DISPLAY=:0
Xorg :0 -nolisten tcp -novtswitch -sharevts vt1 -ac -s 0 -config /run/xorg.conf \
	-logfile /run/Xorg.log >/run/Xorg.out 2>&1 &
tries=0
until xset q >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 120 ] || { cat /run/Xorg.log; give_up 'the X server does not start'; }
	sleep 1
done
tell screen "$(xrandr | sed -n 's/.*current \([0-9]*\) x \([0-9]*\),.*/\1x\2/p'), depth $(parameter depth)," \
	"$(cat /sys/class/graphics/fb0/bits_per_pixel) bits per pixel"
k=1
for test in $(parameter tests | tr , ' '); do
	# shellcheck disable=SC2046 # one number
	phase $k "$test" x11perf -display :0 -repeat 1 -time $(parameter seconds) "-$test"
	k=$((k + 1))
done
