package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
)

// TestPlanTable holds the README's table of plans to those that are built in.
func TestPlanTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| plan | processes | what it is |\n|---|---|---|\n")
	for _, name := range plans.Names() {
		text, err := plans.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Parse(name+".yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| [%s](deploy/plans/%[1]s.yaml) | %d | %s |\n", name, len(p.Instances()), plans.About(text))
	}
	section(t, "README.md", "plans", b.String())
}

// level is a mapping of a plan whose keys are fixed.
type level struct {
	heading string
	text    string       // a plan with a key in this mapping that there is not
	typ     reflect.Type // whose fields the keys are
	example any          // with the defaults
}

// described are the keys whose fields' comments do not say enough here.
var described = map[string]string{
	"Plan.bus":           "Where state and events of all processes meet: see below.",
	"Plan.partitions":    "Sets of switches by name, each with a southbound of its own: see below.",
	"Plan.workers":       "The processes by name: see below.",
	"Plan.apps":          "Stages that live outside Weft, by name ([apps.md](../apps.md)): see below. Observers need no place in the plan.",
	"Plan.transport":     "What carries calls and packet-ins between workers that no link is about: grpc, ws, rest, shm or nats.",
	"Plan.pipeline":      "The stages of the packet-in pipeline in order, services and apps.",
	"Plan.links":         "Exceptions to `transport`; the first that matches counts: see below.",
	"Plan.config":        "Settings of services, wherever they run: a section for each service, as in [configuration.md](../configuration.md).",
	"Plan.partial":       "True: services are left out on purpose. What others want of them is no mistake, but their calls fail and the events do not come.",
	"Partition.switches": "The DPIDs, in hexadecimal digits, and ranges of them, as `[\"1-8\", \"10\"]`; `rest` is all switches that are in no other partition. Together the partitions have every switch once.",
	"Worker.autoscale":   "Has the number of replicas follow the load ([sizing](sizing.md#autoscaling)): see below. `replicas` is then where it begins. Only for services that may run in any number.",
	"Worker.settings":    "Settings of its services that differ from `config`.",
	"Worker.env":         "Variables that are added to the environment, by name.",
	"Link.from":          "Name of the worker that sends, `*` for any.",
	"Link.to":            "Name of the worker that receives, `*` for any.",
	"Link.transport":     "What carries what goes from the one to the other: grpc, ws, rest, shm or nats.",
}

// standards are the defaults that no field holds.
var standards = map[string]string{
	"Plan.name":          "that of the file",
	"Plan.pipeline":      "discovery, hosts, apps, forwarding",
	"Plan.bus":           "embedded",
	"Plan.apps":          "none",
	"Worker.balance":     "the plan's",
	"Worker.class":       "of its most urgent service",
	"Worker.services":    "must be given",
	"Autoscale.max":      "must be given",
	"Worker.replicas":    "1, or `autoscale.min`",
	"Plan.workers":       "must be given",
	"Partition.switches": "must be given",
	"Link.from":          "must be given",
	"Link.to":            "must be given",
	"Link.transport":     "must be given",
}

// TestPlanKeys holds the table of a plan's keys to what plan.Parse takes: all
// keys, no others, their defaults, and the comments of the fields they set.
func TestPlanKeys(t *testing.T) {
	p, err := plan.Parse("plan.yaml", []byte("workers: {w: {services: [hosts]}, s: {services: [paths], autoscale: {max: 2}}}\napps: {a: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	comments := planComments(t)
	used := map[string]bool{}
	for _, l := range []level{
		{"The whole plan", "nothing: 1", reflect.TypeFor[plan.Plan](), *p},
		{"workers.NAME", "workers: {w: {nothing: 1}}", reflect.TypeFor[plan.Worker](), p.Workers[0]},
		{"workers.NAME.autoscale", "workers: {w: {autoscale: {nothing: 1}}}", reflect.TypeFor[plan.Autoscale](), *p.Workers[1].Autoscale},
		{"links, each of the list", "links: [{nothing: 1}]", reflect.TypeFor[plan.Link](), plan.Link{}},
		{"partitions.NAME", "partitions: {p: {nothing: 1}}", reflect.TypeFor[plan.Partition](), plan.Partition{}},
		{"apps.NAME", "apps: {a: {nothing: 1}}", reflect.TypeFor[plan.App](), p.Apps[0]},
		{"bus", "bus: {nothing: 1}", reflect.TypeFor[plan.Bus](), p.Bus},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| key | default | what it is |\n|---|---|---|\n", l.heading)
		for _, key := range planKeys(t, l.text) {
			field, ok := l.typ.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, strings.ReplaceAll(key, "_", "")) })
			if !ok {
				t.Errorf("%s: no field of %s is called like the key %s", l.heading, l.typ, key)
				continue
			}
			at := l.typ.Name() + "." + key
			about := described[at]
			if about == "" {
				about = sentence(comments[l.typ.Name()+"."+field.Name], field.Name, key)
			}
			if about == "" {
				t.Errorf("%s.%s has no comment", l.typ, field.Name)
			}
			standard := standards[at]
			if standard == "" {
				standard = planDefault(reflect.ValueOf(l.example).FieldByIndex(field.Index))
			}
			used[at] = true
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, standard, strings.ReplaceAll(about, "|", `\|`))
		}
	}
	for _, m := range []map[string]string{described, standards} {
		for at := range m {
			if !used[at] {
				t.Errorf("%s is described here, but plan.Parse knows no such key", at)
			}
		}
	}
	section(t, "docs/guide/plans.md", "plankeys", b.String()+"\n")
}

// planKeys returns the keys that are allowed where a plan has one too many.
func planKeys(t *testing.T, text string) []string {
	t.Helper()
	_, err := plan.Parse("plan.yaml", []byte(text))
	if err == nil {
		t.Fatalf("%s: no mistake", text)
	}
	m := regexp.MustCompile(`unknown key (?:\S+\.)?nothing; allowed: (.*)`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("%s: the message does not list the keys: %v", text, err)
	}
	return strings.Split(m[1], ", ")
}

// planDefault returns a default as one writes it in a plan.
func planDefault(v reflect.Value) string {
	if v.IsZero() && v.Kind() != reflect.Bool && v.Kind() != reflect.Int {
		return "none"
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

// planComments returns the comments of the fields of package plan's types, by
// Type.Field.
func planComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "plan/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, name := range f.Names {
						comments[spec.Name.Name+"."+name.Name] = f.Doc.Text()
					}
				}
			}
			return true
		})
	}
	return comments
}
