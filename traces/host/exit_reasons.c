// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/exit_reasons.h"

#include <stddef.h>

struct named {
	uint32_t reason;
	struct host_text name;
};
#define NAMED(number, text) {number, {text, sizeof(text) - 1}},

/* Both ascending. */
static const struct named vmx[] = {
#define VMX NAMED
#define SVM(number, text)
#include "traces/host/exit_reasons.def"
};
static const struct named svm[] = {
#define VMX(number, text)
#define SVM NAMED
#include "traces/host/exit_reasons.def"
};

struct host_text exit_reason_name(enum exit_isa isa, uint32_t reason)
{
	const struct named *table = isa == EXIT_ISA_VMX ? vmx : svm;
	size_t low = 0, high = isa == EXIT_ISA_VMX   ? sizeof(vmx) / sizeof(*vmx)
			       : isa == EXIT_ISA_SVM ? sizeof(svm) / sizeof(*svm)
						     : 0;

	if (isa == EXIT_ISA_VMX)
		reason &= 0xffff;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (table[mid].reason == reason)
			return table[mid].name;
		if (table[mid].reason < reason)
			low = mid + 1;
		else
			high = mid;
	}
	return (struct host_text){0};
}
