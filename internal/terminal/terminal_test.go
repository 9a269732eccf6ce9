package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// screen is a stream to a terminal with this number of columns.
type screen struct {
	bytes.Buffer
	columns int
}

func (s *screen) Columns() int { return s.columns }

func TestTable(t *testing.T) {
	t.Parallel()
	rows := "\nMODEL\tSIZE\tPATH\nqwen/qwen3-4b\t2.5 GB\t/home/me/.lmcaddy/models/qwen\nß漢字\t-\t\nno cells\nA\tB\n1\t2\n"
	for name, tt := range map[string]struct {
		columns int
		text    string
		want    string
	}{
		"no terminal":      {0, rows, "\nMODEL          SIZE    PATH\nqwen/qwen3-4b  2.5 GB  /home/me/.lmcaddy/models/qwen\nß漢字          -\nno cells\nA  B\n1  2\n"},
		"wide enough":      {52, rows, "\nMODEL          SIZE    PATH\nqwen/qwen3-4b  2.5 GB  /home/me/.lmcaddy/models/qwen\nß漢字          -\nno cells\nA  B\n1  2\n"},
		"the widest":       {40, rows, "\nMODEL          SIZE    PATH\nqwen/qwen3-4b  2.5 GB  /home/me/.lmcadd…\nß漢字          -\nno cells\nA  B\n1  2\n"},
		"names, at last":   {29, rows, "\nMODEL       SIZE    PATH\nqwen/qwen…  2.5 GB  /home/me…\nß漢字       -\nno cells\nA  B\n1  2\n"},
		"wide characters":  {12, "漢字漢字漢字\t1\n", "漢字漢字…  1\n"},
		"what isn't shown": {0, "a\x1b[31m\tb\x00\n", "a\ufffd[31m  b\ufffd\n"},
		"variants stay":    {26, "qwen/qwen3-coder-next@q4_k_m\t1\nsome/name@" + strings.Repeat("x", 30) + "\t2\n", "qwen/qwen3-code…@q4_k_m  1\nsome/name@xxxxxxxxxxxx…  2\n"},
		"no less than 8":   {15, "abcdefghijk\tlmnopqrstuv\n", "abcdefghijk  lmnopqrstuv\n"},
		"nothing":          {80, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &screen{columns: tt.columns}
			table := NewTable(out)
			fmt.Fprint(table, tt.text)
			if out.Len() > 0 {
				t.Errorf("written before Flush: %s", out.String())
			}
			if err := table.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTable_CutFirst(t *testing.T) {
	t.Parallel()
	const rows = "NAME\tFROM\tPATH\nllama.cpp-b11669-cpu\tthe packages of Debian\t/home/me/bin\n"
	for name, tt := range map[string]struct {
		columns int
		want    string
	}{
		"wide enough":      {60, "NAME                  FROM                    PATH\nllama.cpp-b11669-cpu  the packages of Debian  /home/me/bin\n"},
		"the first":        {54, "NAME                  FROM                    PATH\nllama.cpp-b11669-cpu  the packages of Debian  /home/m…\n"},
		"the second, too":  {46, "NAME                  FROM            PATH\nllama.cpp-b11669-cpu  the packages …  /home/m…\n"},
		"the others, last": {35, "NAME             FROM      PATH\nllama.cpp-b116…  the pac…  /home/m…\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &screen{columns: tt.columns}
			table := NewTable(out)
			table.CutFirst(2, 1)
			fmt.Fprint(table, rows)
			if err := table.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	out := &screen{columns: 12}
	page := NewPage(out)
	table := NewTable(page)
	fmt.Fprintln(table, "a\tbcdefghijklmnop")
	if err := table.Flush(); err != nil || out.Len() > 0 {
		t.Fatalf("%v; written: %s", err, out.String())
	}
	page.WriteString("end\n")
	if err := page.Flush(); err != nil || out.String() != "a  bcdefghi…\nend\n" {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line    string
		columns int
		want    string
	}{
		{"hello", 5, "hello"},
		{"hello", 4, "hel…"},
		{"漢字漢字", 5, "漢字…"},
		{Dim + "hello" + Plain, 5, Dim + "hello" + Plain},
		{Dim + "hello" + Plain, 3, Dim + "he…" + Plain},
		{"he" + Dim + "llo" + Plain, 3, "he…"},
	} {
		if got := Cut(tt.line, tt.columns); got != tt.want {
			t.Errorf("%q to %d: %q, want %q", tt.line, tt.columns, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text            string
		columns, indent int
		want            string
	}{
		{"one two three four five six", 0, 2, "one two three four five six"},
		{"one two three four five six", 24, 2, "one two three four\n  five six"},
		{"one two three four five six", 22, 2, "one two three four five six"}, // too little would be left
		{"漢字漢字 漢字漢字 漢字漢字", 21, 0, "漢字漢字 漢字漢字\n漢字漢字"},
		{"averyveryveryveryveryverylongword x", 22, 0, "averyveryveryveryveryverylongword\nx"},
	} {
		if got := Wrap(tt.text, tt.columns, tt.indent); got != tt.want {
			t.Errorf("%q in %d columns: %q, want %q", tt.text, tt.columns, got, tt.want)
		}
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n := Columns(file); n != 0 || Is(file) || HasColors(file) {
		t.Errorf("a file has %d columns", n)
	}
	if n := Columns(new(bytes.Buffer)); n != 0 {
		t.Errorf("a buffer has %d columns", n)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	steps := []struct {
		after       time.Duration
		doing, text string
	}{
		{0, "fetching", "fetching 5%"},
		{50 * time.Millisecond, "fetching", "fetching 10%"},
		{60 * time.Millisecond, "fetching", "fetching 15%"},
		{6 * time.Second, "fetching", "fetching 100% of a file"},
		{0, "reading", "reading"},
	}
	for _, test := range []struct {
		columns int
		want    string
	}{
		{0, "fetching 5%\nfetching 100% of a file\nreading\n"},
		{80, "\rfetching 5%\rfetching 15%\rfetching 100% of a file\rreading                \r       \r"},
		{16, "\rfetching 5%\rfetching 15%\rfetching 100% …\rreading        \r       \r"},
	} {
		var out bytes.Buffer
		clock := time.Unix(0, 0)
		p := &Progress{out: &out, isTerminal: test.columns > 0, columns: func() int { return test.columns }, now: func() time.Time { return clock }}
		for _, step := range steps {
			clock = clock.Add(step.after)
			p.Update(step.doing, "%s", step.text)
		}
		p.End()
		p.End()
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", test.columns, diff)
		}
	}
}

func TestPrintf_CleansValues(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[2J\u202e\u009b1m\nb\tc"
	type name string
	var out strings.Builder
	_, _ = Printf(&out, "%s\t%q %d\n%v %v\n", evil, name(evil), 1, errors.New(evil), 1.5)
	_, _ = Println(&out, "x", evil)
	const line = "a\ufffd[2J\ufffd\ufffd1m\ufffdb c"
	if got, want := out.String(), line+"\t"+strconv.Quote(line)+" 1\n"+line+" 1.5\nx "+line+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out.Reset()
	table := NewTable(&out)
	table.Row(evil, "1")
	if err := table.Flush(); err != nil || out.String() != line+"  1\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\n\tb":                      "a\n\tb",
		"a\x1b]0;x\a\r\u009b1m\u2028": "a]0;x1m",
		"\u202eevil\u2066":            "evil",
		"👨\u200d👩\u200d👧":             "👨\u200d👩\u200d👧", // a family, joined
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
