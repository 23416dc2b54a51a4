package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
)

var (
	counted    = regexp.MustCompile(`(duration|n_packets|n_bytes|idle_age|hard_age)=[^, ]*,? ?`)
	tabled     = regexp.MustCompile(`(table[=:])(\d+)`)
	generation = regexp.MustCompile(`(0x5745..)..`)
	oldTable   = regexp.MustCompile(`table=[1-5],`)
)

// formerly returns an entry as a former version had it, before there were gaps between the
// tables; false if that had no such table, or no way on from there.
func formerly(entry string) (string, bool) {
	table, had := 0, true
	entry = tabled.ReplaceAllStringFunc(counted.ReplaceAllString(entry, ""), func(text string) string {
		m := tabled.FindStringSubmatch(text)
		number, _ := strconv.Atoi(m[2])
		was := 0
		for _, x := range flow.Tables() {
			is, to := int(x.Number) == number, int(x.Number) > number && m[1] == "table:"
			if number > 0 && (is || to) && x.Was > 0 {
				was = int(x.Was)
				break
			}
		}
		if m[1] == "table=" {
			table, had = was, number == 0 || was > 0
		} else {
			had = had && was > table
		}
		return m[1] + strconv.Itoa(was)
	})
	return entry, had
}

// moveBack gives all switches the entries that they have as a former version had them.
func moveBack(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, s := range l.Topology().Switches {
		lines, err := l.OfctlDumpFlows(context.Background(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		var former []string
		for _, line := range lines {
			if was, had := formerly(line); had {
				former = append(former, was)
			}
		}
		file := filepath.Join(t.TempDir(), "flows")
		if err := os.WriteFile(file, []byte(strings.Join(former, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		ofctl(t, l, s.Name, "replace-flows", file)
		if n := present(t, l, s.Name, "table=50,"); n > 0 {
			t.Fatalf("%d entries of switch %s are in table 50 yet", n, s.Name)
		}
	}
}

// lasting returns the entries of every switch, without what says which run of the
// controller has written them.
func lasting(t *testing.T, l *lab.Lab) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for e := range entries(t, l) {
		all[generation.ReplaceAllString(e, "$1")] = true
	}
	return all
}

// movedOn waits until no entry is in a table of the former version.
func movedOn(t *testing.T, l *lab.Lab) {
	t.Helper()
	eventually(t, "no entries in old tables", func() bool {
		for e := range entries(t, l) {
			if oldTable.MatchString(fmt.Sprintf("table=%s,", strings.Fields(e)[2])) {
				return false
			}
		}
		return true
	})
}

// TestTablesMove starts on switches whose entries are in the tables of a former
// version: they are removed, those of today are there, and traffic passes.
func TestTablesMove(t *testing.T) {
	t.Parallel()
	c := start(t, options{})
	l := up(t, "ring:4", c)
	settled(c, l)
	pingAll(t, l, false)
	keepNeighbours(t, l)
	call(c, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{{
		Dpid: dpid(t, l, "s1"), Priority: 20000, GotoTable: uint32(flow.TableFirewall), Cookie: "a1", Match: map[string]string{"eth_type": "0x0800"}}}})
	before := lasting(t, l)
	from, to, _ := distant(c, l)
	c.stop()
	moveBack(t, l)
	result := steady(l, from, to, 5000, 2*time.Millisecond)
	time.Sleep(time.Second)
	c = start(t, options{store: c.store, address: c.address})
	settled(c, l)
	movedOn(t, l)
	r := <-result
	t.Logf("%d of %d lost", r.Lost(), r.Sent)
	if r.Error != "" || r.Lost() > r.Sent/100 {
		t.Errorf("%d of %d packets lost, want at most 1 in 100; %s", r.Lost(), r.Sent, r.Error)
	}
	pingAll(t, l, false)
	after := lasting(t, l)
	for e := range before {
		if !after[e] {
			t.Errorf("gone: %s", e)
		}
	}
	agree(c, l)
	explain(c)
}
