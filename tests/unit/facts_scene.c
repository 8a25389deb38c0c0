// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/unit/facts_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct facts *f;
struct host_result result;
struct tables tables;

void begin(void)
{
	f = facts_create();
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	memset(&tables, 0, sizeof(tables));
	result = (struct host_result){.sections = {HOST_KIND_TRACE_TEXT}, .n_sections = 1};
}

void feed(const struct host_event *e)
{
	const struct host_sink *s = facts_sink(f);

	CU_ASSERT_EQUAL(s->event(s->ctx, e), 0);
}

#define US 1000ull

struct host_event at(uint64_t us, int64_t tid, int64_t cpu, enum host_event_id id)
{
	struct host_event e = {.id = id, .time_ns = us * US, .tid = tid, .tgid = -1, .cpu = cpu};
	const char *name = host_event_name(id);

	memset(e.v, 0xee, sizeof(e.v)); /* what is not there must not be read */
	if (name)
		e.name = (struct host_text){name, strlen(name)};
	return e;
}

void plain(uint64_t us, int64_t tid, int64_t cpu, enum host_event_id id)
{
	struct host_event e = at(us, tid, cpu, id);

	feed(&e);
}

void leave(uint64_t us, int64_t tid, int64_t cpu, const char *reason, uint64_t info1,
	   uint64_t info2)
{
	struct host_event e = at(us, tid, cpu, HOST_kvm_exit);

	e.reason = (struct host_text){reason, strlen(reason)};
	host_set(&e, HOST_F_rip, 0x1000);
	host_set(&e, HOST_F_info1, info1);
	host_set(&e, HOST_F_info2, info2);
	feed(&e);
}

void enter(uint64_t us, int64_t tid, int64_t cpu, int64_t vcpu)
{
	struct host_event e = at(us, tid, cpu, HOST_kvm_entry);

	if (vcpu >= 0)
		host_set(&e, HOST_F_vcpu, (uint64_t)vcpu);
	feed(&e);
}

void fault(uint64_t us, int64_t tid, uint64_t address, uint64_t code)
{
	struct host_event e = at(us, tid, 0, HOST_kvm_page_fault);

	host_set(&e, HOST_F_address, address);
	host_set(&e, HOST_F_error_code, code);
	feed(&e);
}

void userspace(uint64_t us, int64_t tid, uint64_t number, const char *word)
{
	struct host_event e = at(us, tid, 0, HOST_kvm_userspace_exit);

	e.reason = (struct host_text){word, strlen(word)};
	host_set(&e, HOST_F_reason, number);
	feed(&e);
}

void loss(int64_t cpu, uint64_t count, bool header)
{
	struct host_loss l = {.cpu = cpu, .count = count, .header = header};
	const struct host_sink *s = facts_sink(f);

	CU_ASSERT_EQUAL(s->loss(s->ctx, &l), 0);
}

void elision(void)
{
	const struct host_sink *s = facts_sink(f);

	CU_ASSERT_EQUAL(s->elision(s->ctx), 0);
}

struct facts_given given;

json_t *done(void)
{
	struct host_facts h = {"x", f, &tables, &result, given};
	json_t *j;

	facts_finish(f);
	j = facts_json(&h);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	facts_free(f);
	f = NULL;
	return j;
}

/* One key as compact JSON text, keys sorted. */
void says(json_t *j, const char *key, const char *text)
{
	json_t *v = json_object_get(j, key);
	char *got = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;

	if (!got || strcmp(got, text) != 0)
		printf("%s: %s instead of %s\n", key, got ? got : "nothing", text);
	CU_ASSERT(got && !strcmp(got, text));
	free(got);
}
