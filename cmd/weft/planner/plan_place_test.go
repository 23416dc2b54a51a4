package planner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// threeShards is an instance whose least cost is 60 times 300: the heavy edge stays
// within a server, the replicas may not.
const threeShards = `servers:
  s1: {cpu: 2, memory: 1GiB}
  s2: {cpu: 1, memory: 1GiB, domain: B}
shards:
  a: {cpu: 1, memory: 100MiB, class: real-time}
  b: {cpu: 0.9, memory: 100MiB}
  c: {cpu: 0.5, memory: 100MiB, on: s2, move: 5}
edges:
  - {between: [a, b], weight: 500}
  - {between: [b, c], weight: 60}
paths:
  - {name: beats, shards: [a, b], deadline: 10ms}
delays:
  - {between: [s1, s2], delay: 300us}
apart: [[a, c]]
`

func TestPlaceOfAnInstance(t *testing.T) {
	out, err := runs(t, planPlaceCommand(), "--instance", threeShards, "-o", "json", "--time", "20s")
	if err != nil {
		t.Fatal(err)
	}
	var p Placed
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !p.Feasible || !p.Proven || p.Cost == nil || *p.Cost != 60*300 || *p.Bound != *p.Cost || p.Placement["a"] != "s1" || p.Placement["b"] != "s1" || p.Placement["c"] != "s2" || len(p.Remedies) != 0 {
		t.Errorf("%s", out)
	}
	if out, err = runs(t, planPlaceCommand(), "--instance", threeShards); err != nil || !strings.Contains(out, "the least that there is, proven") {
		t.Errorf("as a table: %v\n%s", err, out)
	}
}

func TestPlaceSaysWhatWouldMakeAPlacement(t *testing.T) {
	out, err := runs(t, planPlaceCommand(), "--instance", strings.Replace(threeShards, "apart: [[a, c]]", "apart: [[a, b, c]]", 1), "-o", "json")
	var p Placed
	if json.Unmarshal([]byte(out), &p) != nil || err == nil {
		t.Fatalf("%v: %s", err, out)
	}
	if p.Feasible || !p.Proven || p.Cost != nil || len(p.Remedies) == 0 || len(p.Conflicts) == 0 || !strings.Contains(p.Remedies[0], "server") {
		t.Errorf("%s", out)
	}
}

// A search that would take long ends at its deadline with an answer.
func TestPlaceEndsInTime(t *testing.T) {
	var b strings.Builder
	b.WriteString("servers:\n")
	for i := range 8 {
		fmt.Fprintf(&b, "  s%d: {cpu: 4, memory: 4GiB}\n", i)
	}
	b.WriteString("shards:\n")
	for i := range 24 {
		fmt.Fprintf(&b, "  x%d: {cpu: 1, memory: 1GiB}\n", i)
	}
	b.WriteString("edges:\n")
	for i := range 24 {
		for j := range i {
			fmt.Fprintf(&b, "  - {between: [x%d, x%d], weight: %d}\n", j, i, 1+(7*i+5*j)%13)
		}
	}
	out, err := runs(t, planPlaceCommand(), "--instance", b.String(), "-o", "json", "--time", "3s")
	var p Placed
	if json.Unmarshal([]byte(out), &p) != nil || err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !p.Feasible || p.Proven || p.Ended != "--time 3s" || !(*p.Bound > 0 && *p.Bound < *p.Cost) {
		t.Errorf("%s", out)
	}
}

func TestMistakesInAnInstanceHaveTheirLines(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"{cpu: 2, memory: 1GiB}", "{cpu: 2}", ":2: servers.s1: want cpu and memory"},
		{"cpu: 1, memory: 1GiB, domain: B", "cpu: 0, memory: 1GiB", ":3: servers.s2.cpu: want a number"},
		{"class: real-time", "class: realtime", ":5: shards.a.class: want any, real-time"},
		{"on: s2", "on: s3", `:7: shards.c.on: there is no "s3"; there are s1, s2`},
		{"move: 5", "moves: 5", ":7: shards.c: unknown key moves"},
		{"memory: 100MiB}", "memory: much}", ":6: shards.b.memory: want an amount"},
		{"[a, b], weight: 500", "[a, d], weight: 500", `:9: edges.between: there is no "d"`},
		{"[a, b], weight: 500", "[a, a], weight: 500", ":9: edges: between a shard and itself"},
		{"[a, b], weight: 500", "[a, b, c], weight: 500", ":9: edges.between: 3 shards; want two"},
		{", weight: 60", "", ":10: edges: no weight"},
		{"deadline: 10ms", "deadline: soon", ":12: paths.deadline: want a time"},
		{"[s1, s2], delay", "[s1, s1], delay", ":14: delays: between a server and itself"},
		{"[[a, c]]", "[a, c]", ":15: apart: want a list of shards"},
		{"[[a, c]]", "all", ":15: apart: want a list"},
	} {
		_, err := runs(t, planPlaceCommand(), "--instance", strings.Replace(threeShards, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}
