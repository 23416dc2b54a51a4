package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/cmd/weft/policy"
	"github.com/weft-sdn/weft/cmd/weft/run"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file is told by its keys, and every mistake has its line.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, text string
		kind       string
		want       []string // beginnings of lines without the file's name; none: right
	}{
		{"weft.yaml", "southbound:\n  listen: [tcp:0.0.0.0:6653]\n  plain: true\nforwarding: {mode: proactive}\nhosts:\n  limit: 5\n", "configuration", nil},
		{"empty.yaml", "", "file", []string{": the file is empty: a configuration has"}},
		{"empty.yaml", "# nothing\n---\n", "file", []string{": the file has comments only: a configuration has"}},
		{"cut.yaml", "name: x\n", "file", []string{": the file has a name only: a plan has workers, a topology has switches"}},
		{"cut.yaml", "name: x\nworkers:\n", "plan", []string{":2: workers: there are none; add one, such as"}},
		{"weft.yaml", "{}\n", "configuration", nil},
		{"weft.yaml", "southbound:\n  lisen: []\n", "configuration", []string{":2: unknown key southbound.lisen; allowed: "}},
		{"weft.yaml", "\nsouthbound:\n  echo_interval: soon\n", "configuration", []string{":3: southbound.echo_interval: want a duration"}},
		{"weft.yaml", "forwarding:\n  mode: magic\n", "configuration", []string{":2: service forwarding: mode: \"magic\": want"}},
		{"weft.yaml", "gateway:\n  listen: 0.0.0.0:8181\n", "configuration", []string{":2: service gateway: listen: 0.0.0.0:8181 is not a loopback address"}},
		{"weft.yaml", "nonsense: {}\n", "configuration", []string{":1: settings for \"nonsense\", which is not among"}},
		{"weft.yaml", "services: [southbound, nonsense]\n", "configuration", []string{":1: services: unknown service \"nonsense\"; allowed: southbound"}},
		{"weft.yaml", "services: [southbound, forwarding]\n", "configuration", []string{":1: service forwarding calls "}},
		{"weft.yaml", "southbound: [\n", "configuration", []string{":1: not well-formed YAML"}},
		{"weft.yaml", "- a\n", "configuration", []string{":1: want keys with values"}},
		{"lab.yaml", "switches: [{name: s1}, {name: s2}]\nlinks: [{a: s1, b: s2}]\nhosts: [{name: h1, switch: s1}]\n", "topology", nil},
		{"lab.yaml", "switches: [{name: s1}]\nhosts:\n  - {name: h1, switch: s9}\n", "topology", []string{":3: "}},
		{"lab.yaml", "switches: [{name: s1}]\nlinks:\n  - {a: s1, b: s1}\n  - {a: s1, b: s8}\n", "topology", []string{":3: ", ":4: "}},
		{"lab.yaml", "switches: [{name: s1}]\nhosts: {}\nlnks: []\n", "topology", []string{":3: "}},
		{"lab.yaml", "switches: [\n", "topology", []string{":1: "}},
		{"hosts.yaml", "hosts:\n  - {name: h1}\n", "topology", []string{":"}},
		{"net.graphml", "<graphml>", "topology", []string{":"}},
		{"net.clab.yml", "topology: {nodes: {s1: {kind: ovs-bridge}}}\n", "topology", nil},
		{"net.clab.yml", "topology: {nodes: {s1: {kind: ovs-bridge}}, links: [{endpoints: [\"s1:a\"]}]}\n", "topology", []string{":1: "}},
		{"net.gns3", "{\"project_id\": \"1\", \"topology\": {\"nodes\": []}}", "topology", []string{":1: "}},
	} {
		path := writeFile(t, c.name, c.text)
		status, out, errs := weftCommand("check", path)
		if c.want == nil {
			if status != 0 || !strings.HasPrefix(out, path+": a "+c.kind+" without mistakes") {
				t.Errorf("%q: status %d, %s%s", c.text, status, out, errs)
			}
			continue
		}
		if status != 1 || !strings.Contains(errs, "mistake") {
			t.Errorf("%q: status %d, %s", c.text, status, errs)
		}
		rest := out
		for _, want := range c.want {
			_, after, ok := strings.Cut(rest, path+want)
			if !ok {
				t.Errorf("%q: got %s; want %s%s", c.text, out, path, want)
			}
			rest = after
		}
		var results []planner.CheckResult
		_, out, _ = weftCommand("check", path, "-o", "json")
		if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 || results[0].Kind != c.kind || results[0].OK {
			t.Errorf("%q: %v %s", c.text, err, out)
		}
	}
	if status, _, errs := weftCommand("check", "/nowhere"); status != 2 || !strings.Contains(errs, `"/nowhere": neither a file`) {
		t.Errorf("no file: status %d, %s", status, errs)
	}
}

// All mistakes of a file are reported at once, whichever step finds them.
func TestCheckTellsAll(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"weft.yaml", "forwarding:\n  mod: reactive\n  mode: fast\n  max_routes: 0\nhosts:\n  port_limit: x\n  age: 1ns\n", []string{
			":2: unknown key forwarding.mod;", "did you mean mode?", `:3: service forwarding: mode: "fast"`, ":4: service forwarding: max_routes: 0",
			":6: hosts.port_limit: want a whole number", ":7: service hosts: age is 1ns",
		}},
		{"plan.yaml", "name: p\ntransprt: grpc\nworkers:\n  a:\n    services: [southbound, discvery]\n    replicas: x\nconfig:\n  southbound: {echo_intervall: 1s}\n", []string{
			":2: unknown key transprt;", "did you mean transport?", `unknown service "discvery";`, "did you mean discovery?",
			":6: workers.a.replicas: want a whole number", "did you mean echo_interval?",
		}},
		{"lab.yaml", "switches:\n  - {name: s1, fail_mod: x}\n  - {name: s2, dpid: 0}\nlinks:\n  - {a: s1, b: s9}\n", []string{
			":2: unknown key \"fail_mod\"", "did you mean fail_mode?", ":3: ", ":5: the link s1 to s9 ends at the unknown switch",
		}},
	} {
		path := writeFile(t, c.name, c.text)
		_, out, _ := weftCommand("check", path)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, out)
			}
		}
	}
}

// A topology may be named as for weft lab up; what is odd about it is said, and
// is no mistake.
func TestCheckTopologies(t *testing.T) {
	apart := writeFile(t, "lab.yaml", "switches: [{name: s1}, {name: s2}, {name: s3}]\nlinks: [{a: s1, b: s2}, {a: s2, b: s1}]\n")
	gml := writeFile(t, "zoo.gml", "graph [ node [ id 1 ] edge [ source 1 target 1 ] ]")
	status, out, errs := weftCommand("check", "ring:4", "demo", apart, gml, "gml:"+gml)
	if status != 0 {
		t.Fatalf("status %d, %s%s", status, out, errs)
	}
	for _, want := range []string{
		"ring:4: a topology without mistakes: 4 switches, 4 links, 4 hosts\n", "demo: a topology without",
		apart + ": odd: the network is in 2 parts", apart + ": odd: 2 parallel links join s1 and s2", gml + ": odd: a link from n1 to itself was left out",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if status, out, errs := weftCommand("check", "/nowhere", "ring:3"); status != 2 || !strings.Contains(out, "ring:3: a topology") || !strings.Contains(errs, "/nowhere") {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}

func TestFlowFile(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	path := writeFile(t, "flows.yaml", `
# two entries
- dpid: 1
  priority: 50000
  match: {in_port: 1, eth_type: 0x0800, ipv4_dst: 10.0.0.0/24, eth_src: 02:00:00:00:00:01}
  actions: [set_field:02:00:00:00:00:09->eth_dst, "output:3"]
- {dpid: "0x2", table: 1, idle_timeout: 0x10, clear_actions: true, actions: []}
`)
	status, _, errs := weftCommand("flow", "add", "-f", path, "--no-wait")
	if status != 0 {
		t.Fatalf("status %d, %s", status, errs)
	}
	if got := n.last().added.Flows; len(got) != 2 || !n.last().added.NoWait || got[0].Dpid != "1" || got[0].Priority != 50000 || got[0].Match["eth_type"] != "0x0800" ||
		got[0].Match["eth_src"] != h1 || len(got[0].Actions) != 2 || got[1].Priority != 32768 || got[1].IdleTimeout != 16 || !got[1].ClearActions {
		t.Errorf("got %v", got)
	}
	// JSON is YAML, and what weft get flows prints can be added and deleted again.
	for _, form := range []string{"json", "yaml"} {
		_, out, _ := weftCommand("get", "flows", "--owner", "routes", "-o", form)
		path = writeFile(t, "flows."+form, out)
		if status, _, errs := weftCommand("flow", "delete", "-f", path); status != 0 || len(n.last().deleted.Flows) != 3 || n.last().deleted.Flows[0].Owner != "" {
			t.Errorf("%s: status %d, %s, %v", form, status, errs, n.last().deleted)
		}
	}
	weftCommand("flow", "delete", "--all", "--switch", "2")
	if n.last().deleted.AllOf != s2 {
		t.Errorf("all of one: %v", n.last().deleted)
	}
	weftCommand("flow", "delete", "--all")
	if n.last().deleted.AllOf != "all" {
		t.Errorf("all: %v", n.last().deleted)
	}
	weftCommand("flow", "add", "-s", "1", "-m", "in_port=1", "-m", "eth_type=0x0806", "-a", "output:2", "-a", "controller", "--write-action", "output:3",
		"-t", "1", "--goto-table", "2", "--idle-timeout", "5", "--hard-timeout", "6")
	if f := n.last().added.Flows[0]; f.Dpid != s1 || len(f.Match) != 2 || len(f.Actions) != 2 || len(f.WriteActions) != 1 || f.GotoTable != 2 || f.IdleTimeout != 5 || f.HardTimeout != 6 || f.Table != 1 {
		t.Errorf("by flags: %v", f)
	}
}

// CVE-2020-18683, input of a static flow pusher is not checked: every mistake of
// a file is told with its line before anything is sent.
func TestCVE_2020_18683_BrokenFlowFiles(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	for text, want := range map[string]string{
		"- dpid: 1\n  prio: 5\n":                      ":2: unknown key \"prio\"; allowed: dpid, table",
		"- dpid: 1\n  priority: high\n":               ":2: priority: want a whole number",
		"- dpid: 1\n  priority: 99999999999\n":        ":2: priority: want a whole number",
		"- dpid: 1\n  priority: 70000\n":              ":1: flow entry: priority 70000: want 0 to 65535",
		"- dpid: 1\n  priority: [1]\n":                ":2: priority: want one value",
		"- dpid: x/z\n":                               ":1: switch",
		"- {}\n":                                      "want a flow entry",
		"- dpid: 1\n  match: in_port=1\n":             ":2: match: want keys with values",
		"- dpid: 1\n  match:\n    in_port: [1]\n":     ":3: match: want one value for in_port",
		"- dpid: 1\n  match: {ipv4_dst: 10.0.0.1}\n":  "eth_type=0x0800",
		"- dpid: 1\n  match: {ip_dst: 10.0.0.1}\n":    "ip_dst",
		"- dpid: 1\n  actions: output:1\n":            ":2: actions: want a list",
		"- dpid: 1\n  actions: [output:nowhere]\n":    "nowhere",
		"- dpid: 1\n  actions: [{output: 1}]\n":       ":2: actions: want a list of texts",
		"- dpid: 1\n  clear_actions: perhaps\n":       ":2: clear_actions: want true or false",
		"- dpid: 1\n  table: 3\n  goto_table: 2\n":    "want a table after table 3",
		"- dpid: 1\n  duration: long\n":               ":2: duration: want a number",
		"- dpid: 1\n  packets: many\n":                ":2: packets: want a whole number",
		"- just text\n":                               ":1: want a flow entry",
		"flows: []\n":                                 ": no flow entries in it",
		"":                                            ": no flow entries in it",
		"- [\n":                                       "not well-formed YAML or JSON",
		`{"flows":[{"flow":{"dpid":"1","x":1}}]}`:     ":1: unknown key \"x\"",
		"- dpid: 1\n  a: 1\n- dpid: 1\n  b: 1\n":      ":4: unknown key \"b\"",
		"- dpid: 1\n  cookie: 'not hex'\n  prio: 1\n": ":3: unknown key",
		"- dpid: 1\n  metadata: 'x/y'\n":              "want value/mask",
	} {
		path := writeFile(t, "flows.yaml", text)
		status, out, errs := weftCommand("flow", "add", "-f", path)
		if status != 1 || out != "" || !strings.Contains(errs, want) || !strings.Contains(errs, path) {
			t.Errorf("%q: status %d, %s%s; want %q", text, status, out, errs, want)
		}
	}
	if n.last().added != nil {
		t.Errorf("sent: %v", n.last().added)
	}
}

// The files in the help texts are right.
func TestFilesInHelp(t *testing.T) {
	status, out, errs := weftCommand("check", writeFile(t, "weft.yaml", indented(run.UpCommand().Long)))
	if status != 0 || !strings.Contains(out, "a configuration without mistakes") {
		t.Errorf("weft up: %s%s", out, errs)
	}
	flows, err := policy.ReadFlowFile(writeFile(t, "flows.yaml", indented(policy.FlowFileForm)), nil)
	if err != nil || len(flows) != 1 || len(flows[0].Actions) != 2 {
		t.Errorf("weft flow: %v %v", flows, err)
	}
}

// indented returns the indented lines of a text.
func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "  "); ok {
			b.WriteString(rest)
		}
	}
	return b.String()
}
