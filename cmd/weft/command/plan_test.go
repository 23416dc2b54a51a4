package command

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
)

// Every built-in plan runs all services, fits them, settings included, and can
// be drawn, written and read again.
func TestBuiltInPlans(t *testing.T) {
	for _, name := range plans.Names() {
		text, err := plans.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		path := writeFile(t, name+".yaml", string(text))
		if status, out, errs := weftCommand("check", path); status != 0 || out != path+": a plan without mistakes\n" {
			t.Errorf("weft check %s: status %d, %s%s", name, status, out, errs)
		}
		p, err := plan.Parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range usualSpecs() {
			if !p.Has(s.Name) {
				t.Errorf("plan %s: service %s is in no worker", name, s.Name)
			}
		}
		for _, format := range []string{"text", "svg", "json", "yaml"} {
			status, out, errs := weftCommand("plan", "show", name, "-o", format)
			if status != 0 || errs != "" {
				t.Fatalf("weft plan show %s -o %s: status %d, %s", name, format, status, errs)
			}
			switch format {
			case "text":
				if !strings.HasPrefix(out, fmt.Sprintf("%s: %d services in ", name, len(usualSpecs()))) || !strings.Contains(out, "packet-in") {
					t.Errorf("plan %s: %s", name, out)
				}
			case "svg":
				d := xml.NewDecoder(strings.NewReader(out))
				for err == nil {
					_, err = d.Token()
				}
				if !errors.Is(err, io.EOF) {
					t.Errorf("plan %s: %v", name, err)
				}
				err = nil
			case "json", "yaml": // JSON is YAML
				again, err := plan.Parse(name+".yaml", []byte(out))
				if err != nil || !again.Equal(p) {
					t.Errorf("plan %s is another by -o %s: %v\n%s", name, format, err, out)
				}
			}
		}
	}
}

// usualSpecs are the services that the built-in plans have: all but those to
// which switches connect beside the southbound.
func usualSpecs() []weft.Spec {
	return slices.DeleteFunc(planner.AllSpecs(), func(s weft.Spec) bool { return s.Beside != nil })
}

func TestPlanList(t *testing.T) {
	status, out, errs := weftCommand("plan", "list")
	if status != 0 || errs != "" {
		t.Errorf("status %d, %s", status, errs)
	}
	for _, want := range []string{"NAME    PROCESSES  TRANSPORT  WHAT IT IS\n", "\nhydra   9 ", "\nmulti   2 ", "\nscale   6 ", "\nsingle  1 ", fmt.Sprintf("\nsplit   %d ", len(splitWorkers(t)))} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
	var list []planner.PlanSummary
	_, out, _ = weftCommand("plan", "list", "-o", "json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 6 || list[2].Name != "multi" || len(list[2].Workers) != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPlanMistakes(t *testing.T) {
	wrong := writeFile(t, "wrong.yaml", "workers:\n  a: {services: [paths]}\n")
	for _, c := range []struct {
		line   string
		status int
		want   string
	}{
		{"plan show duo", 2, `weft: no plan "duo": it is neither built in (5gc, hydra, multi, scale, single, split) nor a file`},
		{"plan show single -o png", 2, `weft: output "png"; allowed: text, svg, json, yaml`},
		{"plan show", 2, "want weft plan show PLAN"},
		{"plan show /", 1, "weft: read the plan: read /: is a directory"},
		{"plan show " + wrong, 1, "weft: " + wrong + ":2: workers.a.services: paths subscribes to southbound.SwitchChanged, but service southbound is in no worker; add southbound to workers.a.services"},
		{"plan draw", 2, `weft: unknown command "draw"; allowed: diff, explain, follow, history, list, make, partition, place, put, rollback, show, verify`},
		{"plan show split --number 1", 2, "weft: --number is a plan of the history; leave split out"},
		{"plan show --running --number 1", 2, "weft: --running is the plan in force; leave --number out"},
		{"plan rollback x", 2, `weft: plan "x"; want a number of weft plan history`},
		{"plan list -o text", 2, `weft: output "text"; allowed: table, json, yaml`},
	} {
		status, out, errs := weftCommand(strings.Fields(c.line)...)
		if status != c.status || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("weft %s: status %d, %s%s; want %d, %s", c.line, status, out, errs, c.status, c.want)
		}
	}
}

// weft check tells every mistake of a plan with its line, those of settings as
// well.
func TestCheckPlan(t *testing.T) {
	const all = "southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway"
	for _, c := range []struct {
		text string
		want []string // beginnings of lines without the file's name; none: right
	}{
		{"workers:\n  all: {services: [" + all + "]}\nconfig:\n  forwarding:\n    mode: proactive\n", nil},
		{"workers:\n  all: {services: [" + all + "]}\nconfig:\n  forwarding:\n\n    mode: magic\n", []string{":6: service forwarding: mode: \"magic\": want"}},
		{"workers:\n  all:\n    services: [" + all + "]\n    settings:\n      southbound: {\n        listen: [tcp:127.0.0.1:6653],\n        lisen: []}\n", []string{":7: unknown key southbound.lisen; allowed: "}},
		{"workers:\n  a: {services: [southbound], replicas: 2}\n  b: {services: [paths]}\nname: x y\n",
			[]string{":4: name: want"}},
		{"workers:\n  a: {services: [southbound], replicas: 2}\n  b: {services: [paths]}\nconfig: {paths: {a: 1}, southbound: {rate: 1}}\n",
			[]string{":2: workers.a.replicas: 2, but southbound is in it, ", ":3: workers.b.services: paths subscribes to discovery.LinkChanged", ":4: unknown key southbound.rate; allowed: ", ":4: unknown key paths.a; allowed: "}},
		{"workers: [\n", []string{":1: not well-formed YAML"}},
		{"workers: {}\nworkers: {}\n", []string{":1: ", ":2: key workers is there twice"}},
		{"partitions: {a: {switches: [rest]}}\n", []string{": workers: there are none"}},
		{indented(planner.PlanForm), nil},
	} {
		path := writeFile(t, "plan.yaml", c.text)
		status, out, errs := weftCommand("check", path)
		if c.want == nil {
			if status != 0 || out != path+": a plan without mistakes\n" {
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
	}
}
