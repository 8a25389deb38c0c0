// SPDX-License-Identifier: GPL-2.0-or-later
#include "traces/host/exit_reasons.h"

#include <stddef.h>
#include <string.h>

struct named {
	uint32_t reason;
	struct host_text name;
};
#define NAMED(number, text) {number, {text, sizeof(text) - 1}},

/* All ascending. */
static const struct named vmx[] = {
#define VMX NAMED
#define SVM(number, text)
#define USER(number, text)
#include "traces/host/exit_reasons.def"
};
static const struct named svm[] = {
#define VMX(number, text)
#define SVM NAMED
#define USER(number, text)
#include "traces/host/exit_reasons.def"
};

static const struct named user[] = {
#define VMX(number, text)
#define SVM(number, text)
#define USER NAMED
#include "traces/host/exit_reasons.def"
};

static struct host_text find(const struct named *table, size_t n, uint32_t reason)
{
	size_t low = 0, high = n;

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

struct host_text userspace_exit_name(uint32_t reason)
{
	return find(user, sizeof(user) / sizeof(*user), reason);
}

struct host_text exit_reason_name(enum exit_isa isa, uint32_t reason)
{
	if (isa == EXIT_ISA_VMX)
		return find(vmx, sizeof(vmx) / sizeof(*vmx), reason & 0xffff);
	if (isa == EXIT_ISA_SVM)
		return find(svm, sizeof(svm) / sizeof(*svm), reason);
	return (struct host_text){0};
}

bool exit_reason_number(enum exit_isa isa, const char *name, uint32_t *reason)
{
	const struct named *table = isa == EXIT_ISA_VMX ? vmx : svm;
	size_t n = isa == EXIT_ISA_VMX ? sizeof(vmx) / sizeof(*vmx) : sizeof(svm) / sizeof(*svm);
	size_t len = strlen(name);

	for (size_t i = 0; isa != EXIT_ISA_UNKNOWN && i < n; i++) {
		if (table[i].name.len == len && !memcmp(table[i].name.at, name, len)) {
			*reason = table[i].reason;
			return true;
		}
	}
	return false;
}
