// SPDX-License-Identifier: GPL-3.0-or-later
#include <string.h>

#include "tests/unit/harness.h"
#include "tests/unit/trace_util.h"
#include "traces/event_reader.h"

/* A host's events in a native trace, from FORMAT.md, by hand. */

static bool is(struct host_text t, const char *s)
{
	return t.len == strlen(s) && !memcmp(t.at, s, t.len);
}

/* Three rows: a page fault at 1000 ns of "qemu", tid 7, CPU 2, gpa 0x5000, code 2; an event of
 * another subsystem at 900 ns by the same; a loss of 300 events on CPU 1. */
static void reads_columns_made_by_hand(void)
{
	static const char *const strings[] = {"qemu",	"kvm_page_fault", "irq_raise",	"@time",
					      "@where", "address",	  "error_code", "@cpu",
					      "@count", "made_later"};
	uint8_t raw[512], *p = raw;
	struct event_block *b = event_block_new();
	struct event_row row;

	*p++ = 10;
	for (int i = 0; i < 10; i++)
		*p++ = strlen(strings[i]);
	for (int i = 0; i < 10; i++)
		p = (uint8_t *)stpcpy((char *)p, strings[i]);
	p += unhex("01"	      /* one context: */
		   "0e010401" /* 7, -1, 2, qemu */
		   "03"	      /* shapes */
		   /* event, damaged, in a hardirq, 6 decimals, 4 flags, kvm_page_fault, 5 columns
		    */
		   "000d060402000005"
		   "0405"   /* @time @where */
		   "06070a" /* address error_code made_later */
		   "0000060400030002"
		   "0504" /* irq_raise: @where @time */
		   "0101000000000002"
		   "0809"   /* loss of the header: @cpu @count */
		   "000102" /* one row of each */
		   "d00f"   /* time 1000 */
		   "c701"   /* -100 */
		   "0000"   /* both in context 0 */
		   "80c001" /* address 0x3000, signed: 0x6000 */
		   "04"	    /* error code 2 */
		   "05"	    /* made_later: -3, passed over */
		   "02"	    /* CPU 1 */
		   "d804",  /* 300 */
		   p);
	CU_ASSERT_PTR_NULL(event_block_decode(b, raw, p - raw, 3));
	CU_ASSERT_FATAL(event_block_next(b, &row));
	CU_ASSERT_EQUAL(row.kind, EVENT_ROW_EVENT);
	CU_ASSERT_EQUAL(row.event.id, HOST_kvm_page_fault);
	CU_ASSERT(is(row.event.name, "kvm_page_fault"));
	CU_ASSERT_EQUAL(row.event.time_ns, 1000);
	CU_ASSERT_EQUAL(row.event.tid, 7);
	CU_ASSERT_EQUAL(row.event.tgid, -1);
	CU_ASSERT_EQUAL(row.event.cpu, 2);
	CU_ASSERT(is(row.event.comm, "qemu"));
	CU_ASSERT_EQUAL(row.event.have, 1ull << HOST_F_address | 1ull << HOST_F_error_code);
	CU_ASSERT_EQUAL(row.event.v[HOST_F_address], 0x3000);
	CU_ASSERT_EQUAL(row.event.v[HOST_F_error_code], 2);
	CU_ASSERT_TRUE(row.event.damaged);
	CU_ASSERT_FALSE(row.event.role_unreliable);
	CU_ASSERT_EQUAL(row.event.time_decimals, 6);
	CU_ASSERT_EQUAL(row.event.flags_width, 4);
	CU_ASSERT_EQUAL(row.event.context, HOST_CONTEXT_HARDIRQ);
	CU_ASSERT_EQUAL(row.event.line, 0);
	CU_ASSERT_EQUAL(row.event.reason.len, 0);
	CU_ASSERT_FATAL(event_block_next(b, &row));
	CU_ASSERT_EQUAL(row.event.id, HOST_OTHER);
	CU_ASSERT(is(row.event.name, "irq_raise"));
	CU_ASSERT_EQUAL(row.event.time_ns, 900);
	CU_ASSERT_EQUAL(row.event.have, 0);
	CU_ASSERT_FATAL(event_block_next(b, &row));
	CU_ASSERT_EQUAL(row.kind, EVENT_ROW_LOSS);
	CU_ASSERT_EQUAL(row.loss.cpu, 1);
	CU_ASSERT_EQUAL(row.loss.count, 300);
	CU_ASSERT_TRUE(row.loss.header);
	CU_ASSERT_FALSE(event_block_next(b, &row));

	/* one byte less, one row more, one byte more */
	CU_ASSERT_PTR_NOT_NULL(event_block_decode(b, raw, p - raw - 1, 3));
	CU_ASSERT_PTR_NOT_NULL(event_block_decode(b, raw, p - raw, 4));
	CU_ASSERT_STRING_EQUAL(event_block_decode(b, raw, p - raw + 1, 3),
			       "the block has bytes left over");
	CU_ASSERT_FALSE(event_block_next(b, &row));
	event_block_free(b);
}

static CU_TestInfo tests[] = {{"reads_columns_made_by_hand", reads_columns_made_by_hand},
			      CU_TEST_INFO_NULL};
TEST_MAIN("event_columns", tests)
