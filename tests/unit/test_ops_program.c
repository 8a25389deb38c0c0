// SPDX-License-Identifier: GPL-3.0-or-later
#include <stdio.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "workloads/matrix_layout.h"
#include "workloads/ops_program.h"

static struct ops_program program;
static char error[256];

static int parse(const char *text)
{
	return ops_parse(&program, text, "x.ops", error, sizeof(error));
}

static void expressions(void)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{"7", 7},
		{"0x1f", 31},
		{"2+3*4", 14},
		{"(2+3)*4", 20},
		{"10-2-3", 5},
		{"1|2+4", 7},
		{"a", 5},
		{"a*a-b", 22},
		{"all", 700},
		{"test(2)", 0x10002000},
		{"test(a+1)|leaf", 0x10006067},
		{"test(0)|ro", 0x10000065},
		{"test(0)|clean", 0x10000007},
		{"test(0)|undirty", 0x10000027},
		{"pte(513)+1", 0x22009},
		{"table(1)|dir", 0x22027},
		{"pde(512+2)", 0x13010},
		{"mmio(b)", 0xe0003000},
		{"spare(1)", 0x69000},
		{"lowpte(low(0)+1)", 0x20008},
	};
	static const char *const bad[] = {"",	    "c",       "1+",	   "+1",  "test",
					  "test()", "tset(1)", "(1",	   "1)",  "test(1",
					  "1 2",    "A",       "test(1)2", "1||2"};
	struct ops_values v = {.slot_pages = 700, .variable = {5, 3}};
	const bool known[26] = {true, true};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		CU_ASSERT_TRUE(ops_expression(good[i].text, known));
		CU_ASSERT_EQUAL(ops_value(good[i].text, &v), good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CU_ASSERT_FALSE(ops_expression(bad[i], known));
}

struct walk {
	char text[512];
};

static int each(void *ctx, const struct ops_statement *s, const struct ops_values *v)
{
	struct walk *w = ctx;
	size_t used = strlen(w->text);

	snprintf(w->text + used, sizeof(w->text) - used, "%u", (unsigned)s->what);
	for (unsigned i = 0; i < s->n_args; i++) {
		used = strlen(w->text);
		snprintf(w->text + used, sizeof(w->text) - used, ",%llu",
			 (unsigned long long)ops_value(s->arg[i], v));
	}
	strcat(w->text, ";");
	return s->what == OPS_RUN ? ops_walk_run(&program, s, v, each, ctx) : 0;
}

/* Loops in loops, around runs and in them, with bounds that depend on the outer variable. */
static void loops(void)
{
	struct walk w = {""};
	char expected[512];

	CU_ASSERT_EQUAL(parse("case loops # a comment\n"
			      "vm vcpus=2 logged\n\n"
			      "setup\n"
			      "for k 1 2\n"
			      "\tround k\n"
			      "\trun inside vcpu=1\n"
			      "\t\tfor i k 2\n"
			      "\t\t\twrite4 i k\n"
			      "\t\tend\n"
			      "\tend\n"
			      "end\n"
			      "for k 2 1\n"
			      "\tround none\n"
			      "end\n"
			      "round none\n"),
			0);
	CU_ASSERT_STRING_EQUAL(program.name, "loops");
	CU_ASSERT_EQUAL(program.statement[0].vcpus, 2);
	CU_ASSERT_TRUE(program.statement[0].logged);
	CU_ASSERT_EQUAL(ops_walk(&program, 10, each, &w), 0);
	snprintf(expected, sizeof(expected), "%d;%d;%d,1;%d;%d,1,1;%d,2,1;%d,2;%d;%d,2,2;%d;",
		 OPS_VM, OPS_SETUP, OPS_ROUND, OPS_RUN, OPS_ACCESS, OPS_ACCESS, OPS_ROUND, OPS_RUN,
		 OPS_ACCESS, OPS_ROUND);
	CU_ASSERT_STRING_EQUAL(w.text, expected);
}

static void statements(void)
{
	const struct ops_statement *s = program.statement;

	CU_ASSERT_EQUAL(parse("case s\nvm\nslot over 2 mmio(1) 5 read-only log\nrun r\ncr3 pml4\n"
			      "xchg8 pte(1) 7\nhlt\nend\nnumber 3\n"),
			0);
	CU_ASSERT_EQUAL(program.n, 8);
	CU_ASSERT_EQUAL(s[1].what, OPS_SLOT);
	CU_ASSERT_STRING_EQUAL(s[1].phase, "over");
	CU_ASSERT_EQUAL(s[1].flags, OPS_SLOT_LOG | OPS_SLOT_READ_ONLY);
	CU_ASSERT_EQUAL(s[1].n_args, 3);
	CU_ASSERT_EQUAL(s[2].end, 6);
	CU_ASSERT_EQUAL(s[3].access, MX_OP_MOV_CR3);
	CU_ASSERT_STRING_EQUAL(s[3].arg[1], "pml4");
	CU_ASSERT_EQUAL(s[4].access, MX_OP_XCHG8);
	CU_ASSERT_EQUAL(s[5].access, MX_OP_HLT);
}

static void refused(void)
{
	static const struct {
		const char *text, *message;
	} bad[] = {
		{"vm\n", "x.ops:1: expected case NAME"},
		{"case a\n", "x.ops:1: expected statements"},
		{"case a\nsetup\n", "x.ops:2: expected vm first, found 'setup'"},
		{"case a\nvm\nread 1\n", "x.ops:3: expected a statement, found 'read'"},
		{"case a\nvm\nrun p\nslot s 1 2 3\nend\n",
		 "x.ops:4: expected an access, for or end, found 'slot'"},
		{"case a\nvm\nrun p\nread 1\n", "x.ops:4: a block without end, from line 3 on"},
		{"case a\nvm\nend\n", "x.ops:3: end of nothing"},
		{"case a\nvm\nfor ab 1 2\nend\n",
		 "x.ops:3: expected for VARIABLE FIRST LAST, the variable one small letter"},
		{"case a\nvm\nfor k 1 2\nfor k 1 2\nend\nend\n",
		 "x.ops:4: 'k' is the variable of a loop around this one"},
		{"case a\nvm\nround k\n", "x.ops:3: expected an expression, found 'k'"},
		{"case a\nvm\nslot s 1 2\n", "x.ops:3: expected 3 values after 'slot'"},
		{"case a\nvm\nrun\nend\n", "x.ops:3: expected the name of the phase after 'run'"},
		{"case a\nvm nonsense\n", "x.ops:2: expected 0 values after 'vm'"},
		{"case a\nvm\nrun p\nwrite4 1\nend\n", "x.ops:4: expected 2 values after 'write4'"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CU_ASSERT_EQUAL(parse(bad[i].text), -1);
		CU_ASSERT_STRING_EQUAL(error, bad[i].message);
	}
}

/* What KVM takes, at the edge of what it takes; and what only a guest that pages has. */
static void checked(void)
{
	static const struct {
		const char *text;
		bool paging;
		const char *message; /* NULL: it is fine */
	} cases[] = {
		{"case a\nvm\nsetup\nlimit l 64\n", true, NULL},
		{"case a\nvm\nsetup\nlimit l 63\n", true,
		 "x.ops:4: a limit of 63 shadow pages: expected 64 or more"},
		{"case a\nvm logged\nsetup\nget g 1\nslot off 1 test(0) all\n", true, NULL},
		{"case a\nvm logged\nsetup\nslot off 1 test(0) all\nget g 1\n", true,
		 "x.ops:5: slot 1 is not logged"},
		/* beside slot 1; moved away, made smaller once deleted */
		{"case a\nvm\nsetup\nslot s 2 test(700) 512\nslot m 2 mmio(0) 512\n"
		 "slot d 2 0 0\nslot s 2 test(701) 1 read-only log\nget g 2\n",
		 true, NULL},
		{"case a\nvm\nsetup\nslot d 1 0 0\nget g 1\n", true, "x.ops:5: there is no slot 1"},
		/* each VM begins anew */
		{"case a\nfor i 1 2\nvm\nsetup\nslot s 2 mmio(0) 1\nend\n", true, NULL},
		{"case a\nvm\nsetup\nfor i 1 2\nslot s i+1 mmio(0) 1\nend\n", true,
		 "x.ops:5: slot 3 would overlap slot 2"},
		{"case a\nvm\nsetup\nrun r\nfor i 1 4095\nhlt\nend\nend\n", true, NULL},
		{"case a\nvm vcpus=2\nsetup\nrun r vcpu=1\nfor i 1 2047\nhlt\nend\nend\n", true,
		 NULL},
		{"case a\nvm vcpus=2\nsetup\nrun r vcpu=1\nfor i 1 2048\nhlt\nend\nend\n", true,
		 "x.ops:6: more accesses than the list of vCPU 1 has room for, 2047"},
		{"case a\nvm\nsetup\nrun r\nread 0xffffffff\ncr3 0x100000000\nend\n", true, NULL},
		{"case a\nvm\nsetup\nrun r\nwrite4 0 1\nend\n", false, NULL},
		{"case a\nvm\nsetup\nrun r\nxchg8 0 1\nend\n", false,
		 "x.ops:5: a guest that does not page has no such access"},
		{"case a\nvm\nsetup\nset low(511)+4088 1\ncopy low(511) low(0)\n", true, NULL},
		{"case a\nvm\nsetup\nset low(512) 1\n", true, "x.ops:4: 0x200000 is not in slot 0"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CU_ASSERT_EQUAL_FATAL(parse(cases[i].text), 0);
		strcpy(error, "");
		CU_ASSERT_EQUAL(ops_check(&program, 700, cases[i].paging, error, sizeof(error)),
				cases[i].message ? -1 : 0);
		CU_ASSERT_STRING_EQUAL(error, cases[i].message ? cases[i].message : "");
	}
}

static CU_TestInfo tests[] = {{"expressions", expressions}, {"loops", loops},
			      {"statements", statements},   {"refused", refused},
			      {"checked", checked},	    CU_TEST_INFO_NULL};

TEST_MAIN("ops_program", tests)
