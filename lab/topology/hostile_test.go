package topology

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/cputime"
)

// A text that nests or repeats as much as it can is refused in a time of a
// processor that grows with its length, with a bounded number of problems.
func TestHostileFiles(t *testing.T) {
	const most = 32 << 10
	texts := []string{
		"", "\x00", strings.Repeat("\t", 256<<10), "switches: \xff\n", "a: 1\n---\nb: 2\n",
		"name: " + strings.Repeat("a", most),
		"switches: [&a {name: s1}" + strings.Repeat(",*a", most/3) + "]",
		"switches: &a [*a, *a]",
		"switches: {<<: {name: s1}}",
	}
	for _, unit := range []string{"\t", "- ", "[", "{a: ", "a: b\n", "&a ", "*a ", "!a ", "---\n", "'", "- {a: 1}\n", "name: x\n", "\r", "#"} {
		for _, begin := range []string{"", "a: \""} {
			texts = append(texts, begin+strings.Repeat(unit, most/len(unit)))
		}
	}
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	var wide strings.Builder // many aliases of something with many keys that there are not
	for i := range 2000 {
		fmt.Fprintf(&wide, "k%d: 1,", i)
	}
	texts = append(texts, bomb, "switches: [&a {"+wide.String()+"}"+strings.Repeat(",*a", 2000)+"]")
	for _, text := range texts {
		start := cputime.Used()
		_, err := Parse("f", []byte(text))
		if took := cputime.Used() - start; took > 5*time.Second {
			t.Errorf("%.40q…: %v", text, took)
		}
		if err == nil || strings.Count(err.Error(), "\n") > maxProblems || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%.40q…: %.300v", text, err)
		}
	}
}

// A million nodes are refused at once, with the bound, in little memory.
func TestMillionNodes(t *testing.T) {
	const million = 1_000_000
	list := func(begin, each, end string, n int) string {
		var b strings.Builder
		b.WriteString(begin)
		for i := range n {
			fmt.Fprintf(&b, each, i)
		}
		b.WriteString(end)
		return b.String()
	}
	for name, test := range map[string]struct{ text, want string }{
		"switches":     {list("switches: [", "{name: s%d},", "]\n", million), "a lab file has at most 1000000"},
		"lines":        {list("switches:\n", "- name: s%x\n", "", million), "a lab file has at most"},
		"hosts":        {list("switches: [{name: s}]\nhosts: [", "{name: %x,switch: s},", "]\n", million*7/10), "a lab file has at most 1000000"},
		"links":        {list("switches: [{name: s}, {name: t}]\nlinks: [", "{a: s,b: t,mtu: %d}", "]\n", million/2), "a lab file has at most 1000000"},
		"JSON":         {list(`{"switches":[`, "{\"name\":\"%x\"},", "]}", million*9/10), "a lab file has at most 1000000"},
		"too many yet": {list("switches: [", "{name: s%d},", "]\n", 66_000), "the topology has 66000 switches; allowed: at most 65534"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := cputime.Used()
			_, err := Parse("f", []byte(test.text))
			took := cputime.Used() - start
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%.200v, want %s", err, test.want)
			}
			if alloc := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 5*time.Second || alloc > 600 {
				t.Errorf("it took %v and %d MiB", took, alloc)
			}
		})
	}
}

// The time to read a large file, and to compare it with a running lab, grows with its
// length, whatever is alike in it.
func TestLargeFiles(t *testing.T) {
	for name, text := range map[string]string{
		"programs": "switches: [{name: s}]\nhosts: [{name: h, switch: s, run: [" + strings.Repeat("true,", 20_000) + "]}]\n",
		"links":    "switches: [{name: s}, {name: t}]\nlinks: [" + strings.Repeat("{a: s, b: t},", 50_000) + "]\n",
		"nodes": "switches:\n" + strings.Join(slices.Collect(func(yield func(string) bool) {
			for i := range 30_000 {
				if !yield(fmt.Sprintf("- {name: r%d, kind: router, loopback6: \"2001:db8::%x\"}", i, i+1)) {
					return
				}
			}
		}), "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			start := cputime.Used()
			was := parseText(t, text, Running{})
			if d := Compare(was, parseText(t, text, Running{Topology: was})); !d.None() {
				t.Errorf("the same file differs: %.300v", d)
			}
			if took := cputime.Used() - start; took > 8*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A drawing that nests or repeats as much as it can is read or refused in a time of a
// processor that grows with its length.
func TestHostileDrawings(t *testing.T) {
	many := func(form string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, strings.ReplaceAll(form, "%d", "%[1]d"), i)
		}
		return b.String()
	}
	for name, test := range map[string]struct{ text, want string }{
		"nested.graphml":   {"<graphml>" + strings.Repeat("<graph><node id='a'>", 50_000), "more than 64 elements in one another"},
		"wide.graphml":     {"<graphml>" + strings.Repeat("<a/>", mostItems+1), "more than 1000000 elements"},
		"entities.graphml": {`<!DOCTYPE a [<!ENTITY b "c"><!ENTITY d "&b;&b;">]><graphml>&d;</graphml>`, "invalid character entity"},
		"two.graphml":      {"<graphml/><graphml/>", "2 elements at its top"},
		"pieces.graphml":   {"<graphml><key>" + strings.Repeat("x<!---->", 500_000) + "</key></graphml>", "0 graphs"},
		"keys.graphml": {"<graphml>" + many("<key id='k%d' for='node' attr.name='label'><default>x</default></key>", 20_000) +
			"<graph>" + many("<node id='%d'><data key='k%d'>y</data></node>", 20_000) + "</graph></graphml>", ""},
		"arcs.graphml": {"<graphml><graph edgedefault='directed'><node id='a'/><node id='b'/>" +
			strings.Repeat("<edge source='a' target='b'/>", 30_000) + strings.Repeat("<edge source='b' target='a'/>", 30_000) + "</graph></graphml>", ""},
		"pairs.gml": {"graph [" + strings.Repeat(" a 1", mostItems+1) + "]", "more than 1000000 keys"},
	} {
		start := cputime.Used()
		_, err := Read(name, []byte(test.text), ReadOptions{})
		if took := cputime.Used() - start; took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), name+":")) {
			t.Errorf("%s: %.300v, want %s", name, err, test.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/formats/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if lab, _, err := Import("f", text, ReadOptions{}); err == nil {
			_, _ = Parse("f", []byte(lab))
		}
	})
}
