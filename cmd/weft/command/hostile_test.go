package command

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/policy"
	"github.com/weft-sdn/weft/internal/cputime"
)

// Files of entries and of rules that nest or repeat as much as they can are refused
// in a time of a processor that grows with their length, with a bounded number of
// mistakes.
func TestHostileFiles(t *testing.T) {
	const most = 16 << 10
	texts := []string{
		"\x00", strings.Repeat("\t", 256<<10), "- dpid: \xff\n", "- &a {dpid: 1}\n- *a\n",
		"- name: " + strings.Repeat("a", most), "- dpid: 1\n  dpid: 1\n",
		"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n",
	}
	for _, unit := range []string{"\t", "- ", "[", "{a: ", "a: b\n", "- {a: 1}\n", "- *a\n", "'", "[],", "\r"} {
		texts = append(texts, strings.Repeat(unit, most/len(unit)), "a: \""+strings.Repeat(unit, most/len(unit)))
	}
	for _, text := range texts {
		path := writeFile(t, "f.yaml", text)
		for name, read := range map[string]func() error{
			"flows": func() error { _, err := policy.ReadFlowFile(path, nil); return err },
			"rules": func() error { _, err := policy.ReadFirewallFile(path, nil); return err },
			"check": func() error { _, err := planner.CheckFile(path); return err },
		} {
			start := cputime.Used()
			err := read()
			if took := cputime.Used() - start; took > 5*time.Second {
				t.Errorf("%s: %.40q…: %v", name, text, took)
			}
			if name != "check" && (err == nil || strings.Count(err.Error(), "\n") > policy.MaxErrors || !strings.HasPrefix(err.Error(), path)) {
				t.Errorf("%s: %.40q…: %.300v", name, text, err)
			}
		}
	}
}

// A file may have several documents.
func TestFilesOfSeveralDocuments(t *testing.T) {
	flows, err := policy.ReadFlowFile(writeFile(t, "f.yaml", "dpid: 1\n---\n- dpid: 2\n- dpid: 3\n---\n"), nil)
	if err != nil || len(flows) != 3 {
		t.Errorf("%d entries, %v", len(flows), err)
	}
	rules, err := policy.ReadFirewallFile(writeFile(t, "r.yaml", "rules: [{id: a, action: deny}]\n---\n- {id: b, action: allow}\n"), nil)
	if err != nil || len(rules) != 2 {
		t.Errorf("%d rules, %v", len(rules), err)
	}
}
